package v1

import (
	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// EC2NodeClass configures instances on Amazon EC2.
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
	// Spec is the desired state.
	// +kubebuilder:validation:XValidation:message="set exactly one of role and instanceProfile",rule="has(self.role) != has(self.instanceProfile)"
	// +kubebuilder:validation:XValidation:message="without an alias in amiSelectorTerms, amiFamily must be set: AL2, AL2023, Bottlerocket, Windows2019, Windows2022, Windows2025 or Custom",rule="has(self.amiFamily) || self.amiSelectorTerms.exists(x, has(x.alias))"
	// +kubebuilder:validation:XValidation:message="amiFamily must be the family of the alias in amiSelectorTerms, or Custom",rule="!has(self.amiFamily) || self.amiFamily == 'Custom' || self.amiSelectorTerms.all(x, !has(x.alias) || x.alias.find('^[^@]+') == self.amiFamily.lowerAscii())"
	// +required
	Spec EC2NodeClassSpec `json:"spec"`
	// Status is the observed state.
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

// EC2NodeClassSpec is the desired state of a class.
type EC2NodeClassSpec struct {
	// SubnetSelectorTerms select the subnets for launches. A subnet is selected if at least one term matches
	// it.
	// +kubebuilder:validation:XValidation:message="at least one term is needed",rule="self.size() != 0"
	// +kubebuilder:validation:XValidation:message="each term needs one of tags, id",rule="self.all(x, (has(x.tags) && size(x.tags) > 0) || has(x.id))"
	// +kubebuilder:validation:XValidation:message="a term with id can have nothing else",rule="self.all(x, !has(x.id) || !has(x.tags))"
	// +kubebuilder:validation:MaxItems:=30
	// +listType=atomic
	// +required
	SubnetSelectorTerms []SubnetSelectorTerm `json:"subnetSelectorTerms"`
	// SecurityGroupSelectorTerms select the security groups of the instances. A security group is selected if
	// at least one term matches it.
	// +kubebuilder:validation:XValidation:message="at least one term is needed",rule="self.size() != 0"
	// +kubebuilder:validation:XValidation:message="each term needs one of tags, id, name",rule="self.all(x, (has(x.tags) && size(x.tags) > 0) || has(x.id) || (has(x.name) && x.name != ''))"
	// +kubebuilder:validation:XValidation:message="a term with id can have nothing else",rule="self.all(x, !has(x.id) || !(has(x.tags) || has(x.name)))"
	// +kubebuilder:validation:XValidation:message="a term with name can have nothing else",rule="self.all(x, !has(x.name) || !(has(x.tags) || has(x.id)))"
	// +kubebuilder:validation:MaxItems:=30
	// +listType=atomic
	// +required
	SecurityGroupSelectorTerms []SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms"`
	// CapacityReservationSelectorTerms select the capacity reservations that instances use first.
	// +kubebuilder:validation:XValidation:message="each term needs one of tags, id, instanceMatchCriteria",rule="self.all(x, (has(x.tags) && size(x.tags) > 0) || has(x.id) || has(x.instanceMatchCriteria))"
	// +kubebuilder:validation:XValidation:message="a term with id can have nothing else",rule="self.all(x, !has(x.id) || !(has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))"
	// +kubebuilder:validation:MaxItems:=30
	// +listType=atomic
	// +optional
	CapacityReservationSelectorTerms []CapacityReservationSelectorTerm `json:"capacityReservationSelectorTerms,omitempty"`
	// PlacementGroupSelector selects the placement group that the instances are launched into.
	// +kubebuilder:validation:XValidation:message="set exactly one of name and id",rule="has(self.name) != has(self.id)"
	// +optional
	PlacementGroupSelector *PlacementGroupSelector `json:"placementGroupSelector,omitempty"`
	// AMISelectorTerms select the machine images. An image is selected if at least one term matches it. Among
	// several images for an instance type, the newest is launched.
	// +kubebuilder:validation:XValidation:message="at least one term is needed",rule="self.size() != 0"
	// +kubebuilder:validation:XValidation:message="each term needs one of tags, id, name, alias, ssmParameter",rule="self.all(x, (has(x.tags) && size(x.tags) > 0) || has(x.id) || (has(x.name) && x.name != '') || has(x.alias) || (has(x.ssmParameter) && x.ssmParameter != ''))"
	// +kubebuilder:validation:XValidation:message="a term with id can have nothing else",rule="self.all(x, !has(x.id) || !(has(x.alias) || has(x.tags) || has(x.name) || has(x.owner) || has(x.ssmParameter)))"
	// +kubebuilder:validation:XValidation:message="a term with alias can have nothing else",rule="self.all(x, !has(x.alias) || !(has(x.id) || has(x.tags) || has(x.name) || has(x.owner) || has(x.ssmParameter)))"
	// +kubebuilder:validation:XValidation:message="a term with alias must be the only term",rule="!self.exists(x, has(x.alias)) || self.size() == 1"
	// +kubebuilder:validation:MaxItems:=30
	// +listType=atomic
	// +required
	AMISelectorTerms []AMISelectorTerm `json:"amiSelectorTerms"`
	// AMIFamily is the image family, which determines how instances join the cluster. Required without an alias
	// in amiSelectorTerms. Defaults to the family of the alias. With Custom, userData is used unchanged.
	// +optional
	AMIFamily *Family `json:"amiFamily,omitempty"`
	// UserData is the user data of the instances, for their first start. It is merged with the settings that
	// the image family needs to join the cluster. With Custom, it is used unchanged.
	// +optional
	UserData *string `json:"userData,omitempty"`
	// Role is the name of the IAM role of the instances. Karpenter creates an instance profile for it. Mutually
	// exclusive with instanceProfile.
	// +kubebuilder:validation:XValidation:message="role must not be empty",rule="self != ''"
	// +optional
	Role string `json:"role,omitempty"`
	// InstanceProfile is the name of an existing IAM instance profile. Mutually exclusive with role.
	// +kubebuilder:validation:XValidation:message="instanceProfile must not be empty",rule="self != ''"
	// +optional
	InstanceProfile *string `json:"instanceProfile,omitempty"`
	// Tags of the instances, their volumes, network interfaces and launch templates. In values, the words
	// nodepool, nodeclass and cluster between double braces are replaced by names.
	// +kubebuilder:validation:XValidation:message="tag keys must not be empty",rule="self.all(k, k != '')"
	// +kubebuilder:validation:XValidation:message="the tag eks:eks-cluster-name is set by karpenter",rule="self.all(k, k != 'eks:eks-cluster-name')"
	// +kubebuilder:validation:XValidation:message="tags that begin with kubernetes.io/cluster are set by karpenter",rule="self.all(k, !k.startsWith('kubernetes.io/cluster'))"
	// +kubebuilder:validation:XValidation:message="the tag karpenter.sh/nodepool is set by karpenter",rule="self.all(k, k != 'karpenter.sh/nodepool')"
	// +kubebuilder:validation:XValidation:message="the tag karpenter.sh/nodeclaim is set by karpenter",rule="self.all(k, k != 'karpenter.sh/nodeclaim')"
	// +kubebuilder:validation:XValidation:message="the tag karpenter.k8s.aws/ec2nodeclass is set by karpenter",rule="self.all(k, k != 'karpenter.k8s.aws/ec2nodeclass')"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// Kubelet is configuration of the kubelet (kubelet.config.k8s.io/v1beta1). It is merged with the
	// configuration of the image.
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`
	// BlockDeviceMappings are the disks of the instances. Unset: the default disks of the image family.
	// +kubebuilder:validation:XValidation:message="at most one mapping can have rootVolume: true",rule="self.filter(x, has(x.rootVolume) && x.rootVolume).size() <= 1"
	// +kubebuilder:validation:MaxItems:=50
	// +listType=atomic
	// +optional
	BlockDeviceMappings []BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`
	// InstanceStorePolicy configures the use of instance store volumes. RAID0: they are joined into one volume
	// for the ephemeral storage of pods. Unset: they are not used.
	// +optional
	InstanceStorePolicy *InstanceStorePolicy `json:"instanceStorePolicy,omitempty"`
	// NetworkInterfaces of the instances. Unset: one, or the EFA interfaces that the claim requests.
	// +kubebuilder:validation:XValidation:message="one interface of type interface at networkCardIndex 0 and deviceIndex 0 is needed",rule="self.size() == 0 || self.exists(x, x.networkCardIndex == 0 && x.deviceIndex == 0 && x.interfaceType == 'interface')"
	// +kubebuilder:validation:XValidation:message="no two interfaces can have the same networkCardIndex and deviceIndex",rule="self.all(x, self.exists_one(y, x.networkCardIndex == y.networkCardIndex && x.deviceIndex == y.deviceIndex))"
	// +kubebuilder:validation:XValidation:message="each network card can have one interface of type efa-only",rule="self.all(x, x.interfaceType != 'efa-only' || self.exists_one(y, y.interfaceType == 'efa-only' && x.networkCardIndex == y.networkCardIndex))"
	// +kubebuilder:validation:MaxItems:=150
	// +listType=atomic
	// +optional
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces,omitempty"`
	// DetailedMonitoring enables CloudWatch metrics every minute instead of every five minutes, at extra cost.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`
	// MetadataOptions configure the instance metadata service (IMDS).
	// +kubebuilder:default:={httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`
	// ConnectionTracking configures the timeouts after which security groups drop idle connections.
	// +kubebuilder:validation:XValidation:message="set at least one of tcpEstablishedTimeout, udpStreamTimeout, udpTimeout",rule="has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)"
	// +optional
	ConnectionTracking *ConnectionTracking `json:"connectionTracking,omitempty"`
	// CPUOptions of the instances.
	// +optional
	CPUOptions *CPUOptions `json:"cpuOptions,omitempty"`
	// AssociatePublicIPAddress controls whether instances get a public IP address. Unset: the setting of the
	// subnet.
	// +optional
	AssociatePublicIPAddress *bool `json:"associatePublicIPAddress,omitempty"`
	// IPPrefixCount is the number of IP address prefixes of each network interface.
	// +kubebuilder:validation:Minimum:=0
	// +optional
	IPPrefixCount *int32 `json:"ipPrefixCount,omitempty"`
	// Context is passed unchanged in CreateFleet requests
	// (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleet.html).
	// +optional
	Context *string `json:"context,omitempty"`
}

// StatusConditions returns the class's conditions, with Ready as the root. Ready depends on capacity reservations if the
// class has their condition, which the controller adds while the feature gate ReservedCapacity is on. It adds missing
// conditions to the object as Unknown. For an object from a shared cache, use Condition instead.
func (c *EC2NodeClass) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	conditions := []string{
		ConditionAMIsReady,
		ConditionSubnetsReady,
		ConditionSecurityGroupsReady,
		ConditionInstanceProfileReady,
		ConditionPlacementGroupReady,
		ConditionValidationSucceeded,
	}
	for i := range c.Status.Conditions {
		if c.Status.Conditions[i].Type == ConditionCapacityReservationsReady {
			conditions = append(conditions, ConditionCapacityReservationsReady)
		}
	}
	return status.NewReadyConditions(conditions...).For(c, opts...)
}

// Condition returns the class's condition of the given type as StatusConditions returns it, or nil. It does not
// modify the class, so it is safe for objects from a shared cache.
func (c *EC2NodeClass) Condition(conditionType string) *status.Condition {
	unshared := *c // added conditions go to a separate slice
	return unshared.StatusConditions().Get(conditionType)
}

// PrefixDelegation reports whether nodes of the class have IPv4 prefixes.
func (c *EC2NodeClass) PrefixDelegation() bool {
	return c.Annotations[AnnotationPrefixDelegation] == "true"
}

// OpenReservations reports whether instances of the class may use matching open capacity reservations whether or not the
// class selects them.
func (c *EC2NodeClass) OpenReservations() bool {
	return c.Annotations[AnnotationOpenReservations] == "true"
}

// GetConditions implements status.Object.
func (c *EC2NodeClass) GetConditions() []status.Condition { return c.Status.Conditions }

// SetConditions implements status.Object.
func (c *EC2NodeClass) SetConditions(conditions []status.Condition) {
	c.Status.Conditions = karpv1.WithReasons(conditions)
}
