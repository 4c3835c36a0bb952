package v1

import "k8s.io/apimachinery/pkg/api/resource"

// InstanceStorePolicy says what is done with the disks that come with a machine.
// +kubebuilder:validation:Enum:={RAID0}
type InstanceStorePolicy string

// InstanceStorePolicyRAID0 joins the disks to one, which holds pods' ephemeral storage.
const InstanceStorePolicyRAID0 InstanceStorePolicy = "RAID0"

// BlockDeviceMapping is one disk of a machine.
type BlockDeviceMapping struct {
	// DeviceName such as /dev/xvda.
	// +optional
	DeviceName *string `json:"deviceName,omitempty"`
	// EBS is the volume behind the disk.
	// +kubebuilder:validation:XValidation:message="set at least one of snapshotID and volumeSize",rule="has(self.snapshotID) || has(self.volumeSize)"
	// +kubebuilder:validation:XValidation:message="volumeInitializationRate needs a snapshotID",rule="!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')"
	// +optional
	EBS *BlockDevice `json:"ebs,omitempty"`
	// RootVolume says that the kubelet's data is on this disk: its size is the ephemeral
	// storage of the node.
	// +optional
	RootVolume bool `json:"rootVolume,omitempty"`
}

// BlockDevice is an EBS volume
// (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_EbsBlockDevice.html).
type BlockDevice struct {
	// DeleteOnTermination says whether the volume goes with the machine.
	// +optional
	DeleteOnTermination *bool `json:"deleteOnTermination,omitempty"`
	// Encrypted says whether the volume is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
	// IOPS is the number of operations per second that the volume provides.
	// +optional
	IOPS *int64 `json:"iops,omitempty"`
	// KMSKeyID is the key that the volume is encrypted with: an id, an alias or an ARN.
	// +optional
	KMSKeyID *string `json:"kmsKeyID,omitempty"`
	// SnapshotID is the snapshot that the volume is made of.
	// +optional
	SnapshotID *string `json:"snapshotID,omitempty"`
	// Throughput of the volume in MiB per second, for gp3.
	// +optional
	Throughput *int64 `json:"throughput,omitempty"`
	// VolumeInitializationRate in MiB per second at which the snapshot is read into the volume.
	// +kubebuilder:validation:Minimum:=100
	// +kubebuilder:validation:Maximum:=300
	// +optional
	VolumeInitializationRate *int32 `json:"volumeInitializationRate,omitempty"`
	// VolumeSize with the unit Gi (1 to 59000), G (1 to 64000), Ti (1 to 57) or T (1 to 64).
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type:=string
	// +kubebuilder:validation:Pattern:=`^(([1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi|([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G|([1-9]|[1-4][0-9]|5[0-7])Ti|([1-9]|[1-5][0-9]|6[0-4])T)$`
	// +optional
	VolumeSize *resource.Quantity `json:"volumeSize,omitempty"`
	// VolumeType of EBS
	// (https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html).
	// +kubebuilder:validation:Enum:={standard,io1,io2,gp2,sc1,st1,gp3}
	// +optional
	VolumeType *string `json:"volumeType,omitempty"`
}

// Values of NetworkInterface.InterfaceType.
const (
	InterfaceTypeInterface = "interface"
	InterfaceTypeEFAOnly   = "efa-only"
)

// NetworkInterface is one network interface of a machine.
type NetworkInterface struct {
	// NetworkCardIndex of the card that the interface is on.
	// +kubebuilder:validation:Minimum:=0
	// +required
	NetworkCardIndex int32 `json:"networkCardIndex"`
	// DeviceIndex of the interface on its card.
	// +kubebuilder:validation:Minimum:=0
	// +required
	DeviceIndex int32 `json:"deviceIndex"`
	// InterfaceType is interface, or efa-only for one that carries no IP traffic.
	// +kubebuilder:validation:Enum:={interface,efa-only}
	// +required
	InterfaceType string `json:"interfaceType"`
}

// Values of the switches of MetadataOptions and CPUOptions.
const (
	Enabled  = "enabled"
	Disabled = "disabled"
)

// Values of MetadataOptions.HTTPTokens.
const (
	HTTPTokensRequired = "required"
	HTTPTokensOptional = "optional"
)

// MetadataOptions are about the instance metadata service
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-options.html).
type MetadataOptions struct {
	// HTTPEndpoint says whether the service can be asked at all.
	// +kubebuilder:validation:Enum:={enabled,disabled}
	// +kubebuilder:default:=enabled
	// +optional
	HTTPEndpoint *string `json:"httpEndpoint,omitempty"`
	// HTTPProtocolIPv6 says whether the service answers on IPv6.
	// +kubebuilder:validation:Enum:={enabled,disabled}
	// +kubebuilder:default:=disabled
	// +optional
	HTTPProtocolIPv6 *string `json:"httpProtocolIPv6,omitempty"`
	// HTTPPutResponseHopLimit is how many network hops tokens travel: with 1, pods do not
	// get any unless they are on the host's network.
	// +kubebuilder:validation:Minimum:=1
	// +kubebuilder:validation:Maximum:=64
	// +kubebuilder:default:=1
	// +optional
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`
	// HTTPTokens says whether a session token is required (IMDSv2 only).
	// +kubebuilder:validation:Enum:={required,optional}
	// +kubebuilder:default:=required
	// +optional
	HTTPTokens *string `json:"httpTokens,omitempty"`
}

// ConnectionTracking has the timeouts of idle connections, in seconds
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/security-group-connection-tracking.html).
type ConnectionTracking struct {
	// TCPEstablishedTimeout of established TCP connections.
	// +kubebuilder:validation:Minimum:=60
	// +kubebuilder:validation:Maximum:=432000
	// +optional
	TCPEstablishedTimeout *int32 `json:"tcpEstablishedTimeout,omitempty"`
	// UDPStreamTimeout of UDP flows that have seen several packets.
	// +kubebuilder:validation:Minimum:=60
	// +kubebuilder:validation:Maximum:=180
	// +optional
	UDPStreamTimeout *int32 `json:"udpStreamTimeout,omitempty"`
	// UDPTimeout of UDP flows with traffic in one direction, or one request and answer.
	// +kubebuilder:validation:Minimum:=30
	// +kubebuilder:validation:Maximum:=60
	// +optional
	UDPTimeout *int32 `json:"udpTimeout,omitempty"`
}

// CPUOptions of a machine.
type CPUOptions struct {
	// NestedVirtualization says whether the machine can host virtual machines.
	// +kubebuilder:validation:Enum:={enabled,disabled}
	// +optional
	NestedVirtualization *string `json:"nestedVirtualization,omitempty"`
}
