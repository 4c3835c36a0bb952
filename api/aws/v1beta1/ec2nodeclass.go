package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// EC2NodeClass configures instances on Amazon EC2.
// +kubebuilder:object:root=true
// +kubebuilder:deprecatedversion:warning="karpenter.k8s.aws/v1beta1 EC2NodeClass is converted to karpenter.k8s.aws/v1; 'kubectl karpenter migrate' rewrites manifests"
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
	// +kubebuilder:validation:XValidation:message="amiFamily must be set: AL2, AL2023, Bottlerocket, Ubuntu, Windows2019, Windows2022, Windows2025 or Custom",rule="has(self.amiFamily) || (has(self.amiSelectorTerms) && self.amiSelectorTerms.exists(x, has(x.alias)))"
	// +kubebuilder:validation:XValidation:message="amiSelectorTerms is needed with amiFamily Custom",rule="!has(self.amiFamily) || self.amiFamily != 'Custom' || (has(self.amiSelectorTerms) && size(self.amiSelectorTerms) > 0)"
	// +kubebuilder:validation:XValidation:message="amiFamily must be the family of the alias in amiSelectorTerms, or Custom",rule="!has(self.amiFamily) || self.amiFamily == 'Custom' || !has(self.amiSelectorTerms) || self.amiSelectorTerms.all(x, !has(x.alias) || x.alias.find('^[^@]+') == self.amiFamily.lowerAscii())"
	// +required
	Spec EC2NodeClassSpec `json:"spec"`
	// Status is the observed state.
	// +optional
	Status awsv1.EC2NodeClassStatus `json:"status,omitempty"`
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
	SubnetSelectorTerms []awsv1.SubnetSelectorTerm `json:"subnetSelectorTerms"`
	// SecurityGroupSelectorTerms select the security groups of the instances. A security group is selected if
	// at least one term matches it.
	// +kubebuilder:validation:XValidation:message="at least one term is needed",rule="self.size() != 0"
	// +kubebuilder:validation:XValidation:message="each term needs one of tags, id, name",rule="self.all(x, (has(x.tags) && size(x.tags) > 0) || has(x.id) || (has(x.name) && x.name != ''))"
	// +kubebuilder:validation:XValidation:message="a term with id can have nothing else",rule="self.all(x, !has(x.id) || !(has(x.tags) || has(x.name)))"
	// +kubebuilder:validation:XValidation:message="a term with name can have nothing else",rule="self.all(x, !has(x.name) || !(has(x.tags) || has(x.id)))"
	// +kubebuilder:validation:MaxItems:=30
	// +listType=atomic
	// +required
	SecurityGroupSelectorTerms []awsv1.SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms"`
	// CapacityReservationSelectorTerms select the capacity reservations that instances may use.
	// +kubebuilder:validation:XValidation:message="each term needs one of tags, id, instanceMatchCriteria",rule="self.all(x, (has(x.tags) && size(x.tags) > 0) || has(x.id) || has(x.instanceMatchCriteria))"
	// +kubebuilder:validation:XValidation:message="a term with id can have nothing else",rule="self.all(x, !has(x.id) || !(has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))"
	// +kubebuilder:validation:MaxItems:=30
	// +listType=atomic
	// +optional
	CapacityReservationSelectorTerms []awsv1.CapacityReservationSelectorTerm `json:"capacityReservationSelectorTerms,omitempty"`
	// PlacementGroupSelector selects the placement group that the instances are launched into.
	// +kubebuilder:validation:XValidation:message="set exactly one of name and id",rule="has(self.name) != has(self.id)"
	// +optional
	PlacementGroupSelector *awsv1.PlacementGroupSelector `json:"placementGroupSelector,omitempty"`
	// AMISelectorTerms select the machine images. An image is selected if at least one term matches it. Among
	// several images for an instance type, the newest is launched. Unset: the recommended images of amiFamily.
	// +kubebuilder:validation:XValidation:message="each term needs one of tags, id, name, alias, ssmParameter",rule="self.all(x, (has(x.tags) && size(x.tags) > 0) || has(x.id) || (has(x.name) && x.name != '') || has(x.alias) || (has(x.ssmParameter) && x.ssmParameter != ''))"
	// +kubebuilder:validation:XValidation:message="a term with id can have nothing else",rule="self.all(x, !has(x.id) || !(has(x.alias) || has(x.tags) || has(x.name) || has(x.owner) || has(x.ssmParameter)))"
	// +kubebuilder:validation:XValidation:message="a term with alias can have nothing else",rule="self.all(x, !has(x.alias) || !(has(x.id) || has(x.tags) || has(x.name) || has(x.owner) || has(x.ssmParameter)))"
	// +kubebuilder:validation:XValidation:message="a term with alias must be the only term",rule="!self.exists(x, has(x.alias)) || self.size() == 1"
	// +kubebuilder:validation:MaxItems:=30
	// +listType=atomic
	// +optional
	AMISelectorTerms []awsv1.AMISelectorTerm `json:"amiSelectorTerms,omitempty"`
	// AMIFamily is the image family. It determines how instances join the cluster and, without
	// amiSelectorTerms, which images they run. With Custom, userData is used unchanged.
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
	// Tags of the instances, their volumes, network interfaces and launch templates.
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
	Kubelet *awsv1.KubeletConfiguration `json:"kubelet,omitempty"`
	// BlockDeviceMappings are the disks of the instances. Unset: the default disks of the image family.
	// +kubebuilder:validation:XValidation:message="at most one mapping can have rootVolume: true",rule="self.filter(x, has(x.rootVolume) && x.rootVolume).size() <= 1"
	// +kubebuilder:validation:MaxItems:=50
	// +listType=atomic
	// +optional
	BlockDeviceMappings []awsv1.BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`
	// InstanceStorePolicy configures the use of instance store volumes. RAID0: they are joined into one volume
	// for the ephemeral storage of pods. Unset: they are not used.
	// +optional
	InstanceStorePolicy *awsv1.InstanceStorePolicy `json:"instanceStorePolicy,omitempty"`
	// NetworkInterfaces of the instances. Unset: one, or the EFA interfaces that the claim requests.
	// +kubebuilder:validation:XValidation:message="one interface of type interface at networkCardIndex 0 and deviceIndex 0 is needed",rule="self.size() == 0 || self.exists(x, x.networkCardIndex == 0 && x.deviceIndex == 0 && x.interfaceType == 'interface')"
	// +kubebuilder:validation:XValidation:message="no two interfaces can have the same networkCardIndex and deviceIndex",rule="self.all(x, self.exists_one(y, x.networkCardIndex == y.networkCardIndex && x.deviceIndex == y.deviceIndex))"
	// +kubebuilder:validation:XValidation:message="each network card can have one interface of type efa-only",rule="self.all(x, x.interfaceType != 'efa-only' || self.exists_one(y, y.interfaceType == 'efa-only' && x.networkCardIndex == y.networkCardIndex))"
	// +kubebuilder:validation:MaxItems:=150
	// +listType=atomic
	// +optional
	NetworkInterfaces []awsv1.NetworkInterface `json:"networkInterfaces,omitempty"`
	// DetailedMonitoring enables CloudWatch metrics every minute instead of every five minutes, at extra cost.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`
	// MetadataOptions configure the instance metadata service (IMDS).
	// +kubebuilder:default:={httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: required}
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`
	// ConnectionTracking configures the timeouts after which security groups drop idle connections.
	// +kubebuilder:validation:XValidation:message="set at least one of tcpEstablishedTimeout, udpStreamTimeout, udpTimeout",rule="has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)"
	// +optional
	ConnectionTracking *awsv1.ConnectionTracking `json:"connectionTracking,omitempty"`
	// CPUOptions of the instances.
	// +optional
	CPUOptions *awsv1.CPUOptions `json:"cpuOptions,omitempty"`
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

// Family is an image family. Instances of one family use the same bootstrap method to join a cluster.
// +kubebuilder:validation:Enum:={AL2,AL2023,Bottlerocket,Ubuntu,Custom,Windows2019,Windows2022,Windows2025}
type Family string

// FamilyUbuntu is the family of Canonical's images, which join a cluster like those of Amazon Linux 2. The
// other families are those of karpenter.k8s.aws/v1.
const FamilyUbuntu Family = "Ubuntu"

// MetadataOptions configure the instance metadata service
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-options.html).
type MetadataOptions struct {
	// HTTPEndpoint enables or disables the service. Defaults to enabled.
	// +kubebuilder:validation:Enum:={enabled,disabled}
	// +kubebuilder:default:=enabled
	// +optional
	HTTPEndpoint *string `json:"httpEndpoint,omitempty"`
	// HTTPProtocolIPv6 enables or disables the IPv6 endpoint of the service. Defaults to disabled.
	// +kubebuilder:validation:Enum:={enabled,disabled}
	// +kubebuilder:default:=disabled
	// +optional
	HTTPProtocolIPv6 *string `json:"httpProtocolIPv6,omitempty"`
	// HTTPPutResponseHopLimit is the maximum number of network hops of session tokens, 1 to 64. With 2, pods
	// can get tokens. Defaults to 2.
	// +kubebuilder:validation:Minimum:=1
	// +kubebuilder:validation:Maximum:=64
	// +kubebuilder:default:=2
	// +optional
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`
	// HTTPTokens is required if requests need a session token (IMDSv2), else optional. Defaults to required.
	// +kubebuilder:validation:Enum:={required,optional}
	// +kubebuilder:default:=required
	// +optional
	HTTPTokens *string `json:"httpTokens,omitempty"`
}
