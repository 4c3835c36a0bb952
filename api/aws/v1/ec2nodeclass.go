package v1

import (
	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// EC2NodeClass says how machines are made on Amazon EC2.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=ec2nodeclasses,scope=Cluster,categories=karpenter,shortName={ec2nc,ec2ncs}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether machines can be launched"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Role",type="string",JSONPath=".spec.role",priority=1,description="IAM role of the machines"
type EC2NodeClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what the owner of the class wants.
	// +kubebuilder:validation:XValidation:message="set exactly one of role and instanceProfile",rule="has(self.role) != has(self.instanceProfile)"
	// +kubebuilder:validation:XValidation:message="without an alias in amiSelectorTerms, amiFamily must be set: AL2, AL2023, Bottlerocket, Windows2019, Windows2022, Windows2025 or Custom",rule="has(self.amiFamily) || self.amiSelectorTerms.exists(x, has(x.alias))"
	// +kubebuilder:validation:XValidation:message="amiFamily must be the family of the alias in amiSelectorTerms, or Custom",rule="!has(self.amiFamily) || self.amiFamily == 'Custom' || self.amiSelectorTerms.all(x, !has(x.alias) || x.alias.find('^[^@]+') == self.amiFamily.lowerAscii())"
	// +required
	Spec EC2NodeClassSpec `json:"spec"`
	// Status is what has been observed.
	// +optional
	Status EC2NodeClassStatus `json:"status,omitempty"`
}

// EC2NodeClassList is a list of EC2NodeClasses.
// +kubebuilder:object:root=true
type EC2NodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EC2NodeClass `json:"items"`
}

// EC2NodeClassSpec is what the owner of the class wants.
type EC2NodeClassSpec struct {
	// SubnetSelectorTerms select the subnets to launch into. A subnet is selected if one
	// of the terms matches it.
	// +kubebuilder:validation:XValidation:message="at least one term is needed",rule="self.size() != 0"
	// +kubebuilder:validation:XValidation:message="each term needs one of tags, id",rule="self.all(x, (has(x.tags) && size(x.tags) > 0) || has(x.id))"
	// +kubebuilder:validation:XValidation:message="a term with id can have nothing else",rule="self.all(x, !has(x.id) || !has(x.tags))"
	// +kubebuilder:validation:MaxItems:=30
	// +listType=atomic
	// +required
	SubnetSelectorTerms []SubnetSelectorTerm `json:"subnetSelectorTerms"`
	// SecurityGroupSelectorTerms select the security groups of the machines. A group is
	// selected if one of the terms matches it.
	// +kubebuilder:validation:XValidation:message="at least one term is needed",rule="self.size() != 0"
	// +kubebuilder:validation:XValidation:message="each term needs one of tags, id, name",rule="self.all(x, (has(x.tags) && size(x.tags) > 0) || has(x.id) || (has(x.name) && x.name != ''))"
	// +kubebuilder:validation:XValidation:message="a term with id can have nothing else",rule="self.all(x, !has(x.id) || !(has(x.tags) || has(x.name)))"
	// +kubebuilder:validation:XValidation:message="a term with name can have nothing else",rule="self.all(x, !has(x.name) || !(has(x.tags) || has(x.id)))"
	// +kubebuilder:validation:MaxItems:=30
	// +listType=atomic
	// +required
	SecurityGroupSelectorTerms []SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms"`
	// CapacityReservationSelectorTerms select capacity reservations that may be used.
	// Accepted, and not yet acted on.
	// +kubebuilder:validation:XValidation:message="each term needs one of tags, id, instanceMatchCriteria",rule="self.all(x, (has(x.tags) && size(x.tags) > 0) || has(x.id) || has(x.instanceMatchCriteria))"
	// +kubebuilder:validation:XValidation:message="a term with id can have nothing else",rule="self.all(x, !has(x.id) || !(has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))"
	// +kubebuilder:validation:MaxItems:=30
	// +listType=atomic
	// +optional
	CapacityReservationSelectorTerms []CapacityReservationSelectorTerm `json:"capacityReservationSelectorTerms,omitempty"`
	// PlacementGroupSelector names the placement group of the machines. Accepted, and not
	// yet acted on.
	// +kubebuilder:validation:XValidation:message="set exactly one of name and id",rule="has(self.name) != has(self.id)"
	// +optional
	PlacementGroupSelector *PlacementGroupSelector `json:"placementGroupSelector,omitempty"`
	// AMISelectorTerms select the machine images. An image is selected if one of the terms
	// matches it; of several that fit a machine the newest is launched.
	// +kubebuilder:validation:XValidation:message="at least one term is needed",rule="self.size() != 0"
	// +kubebuilder:validation:XValidation:message="each term needs one of tags, id, name, alias, ssmParameter",rule="self.all(x, (has(x.tags) && size(x.tags) > 0) || has(x.id) || (has(x.name) && x.name != '') || has(x.alias) || (has(x.ssmParameter) && x.ssmParameter != ''))"
	// +kubebuilder:validation:XValidation:message="a term with id can have nothing else",rule="self.all(x, !has(x.id) || !(has(x.alias) || has(x.tags) || has(x.name) || has(x.owner) || has(x.ssmParameter)))"
	// +kubebuilder:validation:XValidation:message="a term with alias can have nothing else",rule="self.all(x, !has(x.alias) || !(has(x.id) || has(x.tags) || has(x.name) || has(x.owner) || has(x.ssmParameter)))"
	// +kubebuilder:validation:XValidation:message="a term with alias must be the only term",rule="!self.exists(x, has(x.alias)) || self.size() == 1"
	// +kubebuilder:validation:MaxItems:=30
	// +listType=atomic
	// +required
	AMISelectorTerms []AMISelectorTerm `json:"amiSelectorTerms"`
	// AMIFamily is how machines of the selected images are told to join the cluster. With
	// an alias in AMISelectorTerms it may be left out, and is the family of the alias.
	// With Custom, userData is used as it is.
	// +optional
	AMIFamily *Family `json:"amiFamily,omitempty"`
	// UserData is given to the machines at their first start. It is merged with what the
	// family needs to join the cluster; with Custom it is all there is.
	// +optional
	UserData *string `json:"userData,omitempty"`
	// Role is the name of the IAM role of the machines; an instance profile is made for
	// it. Exclusive with InstanceProfile.
	// +kubebuilder:validation:XValidation:message="role must not be empty",rule="self != ''"
	// +optional
	Role string `json:"role,omitempty"`
	// InstanceProfile is the name of an IAM instance profile that exists. Exclusive with Role.
	// +kubebuilder:validation:XValidation:message="instanceProfile must not be empty",rule="self != ''"
	// +optional
	InstanceProfile *string `json:"instanceProfile,omitempty"`
	// Tags of the machines, their volumes, network interfaces and launch templates.
	// +kubebuilder:validation:XValidation:message="tag keys must not be empty",rule="self.all(k, k != '')"
	// +kubebuilder:validation:XValidation:message="the tag eks:eks-cluster-name is set by karpenter",rule="self.all(k, k != 'eks:eks-cluster-name')"
	// +kubebuilder:validation:XValidation:message="tags that begin with kubernetes.io/cluster are set by karpenter",rule="self.all(k, !k.startsWith('kubernetes.io/cluster'))"
	// +kubebuilder:validation:XValidation:message="the tag karpenter.sh/nodepool is set by karpenter",rule="self.all(k, k != 'karpenter.sh/nodepool')"
	// +kubebuilder:validation:XValidation:message="the tag karpenter.sh/nodeclaim is set by karpenter",rule="self.all(k, k != 'karpenter.sh/nodeclaim')"
	// +kubebuilder:validation:XValidation:message="the tag karpenter.k8s.aws/ec2nodeclass is set by karpenter",rule="self.all(k, k != 'karpenter.k8s.aws/ec2nodeclass')"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// Kubelet is configuration of the kubelet (kubelet.config.k8s.io/v1beta1), merged with
	// what the image brings.
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`
	// BlockDeviceMappings are the disks of the machines. Unset: those of the family.
	// +kubebuilder:validation:XValidation:message="at most one mapping can have rootVolume: true",rule="self.filter(x, has(x.rootVolume) && x.rootVolume).size() <= 1"
	// +kubebuilder:validation:MaxItems:=50
	// +listType=atomic
	// +optional
	BlockDeviceMappings []BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`
	// InstanceStorePolicy says what is done with disks that come with the machine. Unset:
	// nothing.
	// +optional
	InstanceStorePolicy *InstanceStorePolicy `json:"instanceStorePolicy,omitempty"`
	// NetworkInterfaces of the machines. Unset: one, or those for EFA that the claim asks for.
	// +kubebuilder:validation:XValidation:message="one interface of type interface at networkCardIndex 0 and deviceIndex 0 is needed",rule="self.size() == 0 || self.exists(x, x.networkCardIndex == 0 && x.deviceIndex == 0 && x.interfaceType == 'interface')"
	// +kubebuilder:validation:XValidation:message="no two interfaces can have the same networkCardIndex and deviceIndex",rule="self.all(x, self.exists_one(y, x.networkCardIndex == y.networkCardIndex && x.deviceIndex == y.deviceIndex))"
	// +kubebuilder:validation:XValidation:message="each network card can have one interface of type efa-only",rule="self.all(x, x.interfaceType != 'efa-only' || self.exists_one(y, y.interfaceType == 'efa-only' && x.networkCardIndex == y.networkCardIndex))"
	// +kubebuilder:validation:MaxItems:=150
	// +listType=atomic
	// +optional
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces,omitempty"`
	// DetailedMonitoring says whether CloudWatch gets figures each minute instead of every
	// five, at a price.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`
	// MetadataOptions are about the instance metadata service (IMDS) of the machines.
	// +kubebuilder:default:={httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`
	// ConnectionTracking has the timeouts after which security groups forget idle connections.
	// +kubebuilder:validation:XValidation:message="set at least one of tcpEstablishedTimeout, udpStreamTimeout, udpTimeout",rule="has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)"
	// +optional
	ConnectionTracking *ConnectionTracking `json:"connectionTracking,omitempty"`
	// CPUOptions of the machines.
	// +optional
	CPUOptions *CPUOptions `json:"cpuOptions,omitempty"`
	// AssociatePublicIPAddress says whether machines get a public address. Unset: as the
	// subnet says.
	// +optional
	AssociatePublicIPAddress *bool `json:"associatePublicIPAddress,omitempty"`
	// IPPrefixCount is the number of address prefixes of each network interface.
	// +kubebuilder:validation:Minimum:=0
	// +optional
	IPPrefixCount *int32 `json:"ipPrefixCount,omitempty"`
	// Context is passed on in CreateFleet requests, opaque to us
	// (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleet.html).
	// +optional
	Context *string `json:"context,omitempty"`
}

// StatusConditions is the set of the class's conditions, rooted at Ready. Ready does not depend on capacity
// reservations, which are not yet acted on.
// Those that are missing are added to the object as Unknown: an object that a cache shares is read with Condition.
func (c *EC2NodeClass) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions(
		ConditionAMIsReady,
		ConditionSubnetsReady,
		ConditionSecurityGroupsReady,
		ConditionInstanceProfileReady,
		ConditionPlacementGroupReady,
		ConditionValidationSucceeded,
	).For(c, opts...)
}

// Condition is the class's condition of a type as StatusConditions shows it, or nil. It leaves the class as it is, so it is the
// way to read an object that a cache shares.
func (c *EC2NodeClass) Condition(conditionType string) *status.Condition {
	unshared := *c // conditions that are added go to a slice of their own
	return unshared.StatusConditions().Get(conditionType)
}

// GetConditions implements status.Object.
func (c *EC2NodeClass) GetConditions() []status.Condition { return c.Status.Conditions }

// SetConditions implements status.Object.
func (c *EC2NodeClass) SetConditions(conditions []status.Condition) {
	c.Status.Conditions = karpv1.WithReasons(conditions)
}
