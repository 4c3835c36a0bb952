package v1

import "k8s.io/apimachinery/pkg/api/resource"

// InstanceStorePolicy configures the use of instance store volumes.
// +kubebuilder:validation:Enum:={RAID0}
type InstanceStorePolicy string

// InstanceStorePolicyRAID0 joins the volumes into one volume, which holds the ephemeral storage of pods.
const InstanceStorePolicyRAID0 InstanceStorePolicy = "RAID0"

// BlockDeviceMapping is one disk of an instance.
type BlockDeviceMapping struct {
	// DeviceName is the device name, such as /dev/xvda.
	// +optional
	DeviceName *string `json:"deviceName,omitempty"`
	// EBS configures the EBS volume of the disk.
	// +kubebuilder:validation:XValidation:message="set at least one of snapshotID and volumeSize",rule="has(self.snapshotID) || has(self.volumeSize)"
	// +kubebuilder:validation:XValidation:message="volumeInitializationRate needs a snapshotID",rule="!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')"
	// +optional
	EBS *BlockDevice `json:"ebs,omitempty"`
	// RootVolume is true for the disk that holds the kubelet's data. Its size is the ephemeral storage of the
	// node.
	// +optional
	RootVolume bool `json:"rootVolume,omitempty"`
}

// BlockDevice is an EBS volume
// (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_EbsBlockDevice.html).
type BlockDevice struct {
	// DeleteOnTermination controls whether the volume is deleted with the instance.
	// +optional
	DeleteOnTermination *bool `json:"deleteOnTermination,omitempty"`
	// Encrypted controls whether the volume is encrypted.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
	// IOPS is the number of provisioned I/O operations per second.
	// +optional
	IOPS *int64 `json:"iops,omitempty"`
	// KMSKeyID is the key for the encryption of the volume: an ID, an alias or an ARN.
	// +optional
	KMSKeyID *string `json:"kmsKeyID,omitempty"`
	// SnapshotID is the ID of the snapshot from which the volume is created.
	// +optional
	SnapshotID *string `json:"snapshotID,omitempty"`
	// Throughput of the volume in MiB per second, for gp3.
	// +optional
	Throughput *int64 `json:"throughput,omitempty"`
	// VolumeInitializationRate is the rate, in MiB per second, at which the snapshot is loaded into the volume,
	// 100 to 300.
	// +kubebuilder:validation:Minimum:=100
	// +kubebuilder:validation:Maximum:=300
	// +optional
	VolumeInitializationRate *int32 `json:"volumeInitializationRate,omitempty"`
	// VolumeSize is the size with the unit Gi (1 to 59000), G (1 to 64000), Ti (1 to 57) or T (1 to 64).
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type:=string
	// +kubebuilder:validation:Pattern:=`^(([1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi|([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G|([1-9]|[1-4][0-9]|5[0-7])Ti|([1-9]|[1-5][0-9]|6[0-4])T)$`
	// +optional
	VolumeSize *resource.Quantity `json:"volumeSize,omitempty"`
	// VolumeType is the EBS volume type
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

// NetworkInterface is one network interface of an instance.
type NetworkInterface struct {
	// NetworkCardIndex is the index of the network card of the interface.
	// +kubebuilder:validation:Minimum:=0
	// +required
	NetworkCardIndex int32 `json:"networkCardIndex"`
	// DeviceIndex is the device index of the interface on its network card.
	// +kubebuilder:validation:Minimum:=0
	// +required
	DeviceIndex int32 `json:"deviceIndex"`
	// InterfaceType is interface, or efa-only for an interface without IP traffic.
	// +kubebuilder:validation:Enum:={interface,efa-only}
	// +required
	InterfaceType string `json:"interfaceType"`
}

// Values of the enabled or disabled fields of MetadataOptions and CPUOptions.
const (
	Enabled  = "enabled"
	Disabled = "disabled"
)

// Values of MetadataOptions.HTTPTokens.
const (
	HTTPTokensRequired = "required"
	HTTPTokensOptional = "optional"
)

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
	// HTTPPutResponseHopLimit is the maximum number of network hops of session tokens, 1 to 64. With 1, pods
	// cannot get tokens unless they use the host network. Defaults to 1.
	// +kubebuilder:validation:Minimum:=1
	// +kubebuilder:validation:Maximum:=64
	// +kubebuilder:default:=1
	// +optional
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`
	// HTTPTokens is required if requests need a session token (IMDSv2 only), else optional. Defaults to
	// required.
	// +kubebuilder:validation:Enum:={required,optional}
	// +kubebuilder:default:=required
	// +optional
	HTTPTokens *string `json:"httpTokens,omitempty"`
}

// ConnectionTracking configures the timeouts of idle connections, in seconds
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/security-group-connection-tracking.html).
type ConnectionTracking struct {
	// TCPEstablishedTimeout is the timeout of established TCP connections, in seconds, 60 to 432000.
	// +kubebuilder:validation:Minimum:=60
	// +kubebuilder:validation:Maximum:=432000
	// +optional
	TCPEstablishedTimeout *int32 `json:"tcpEstablishedTimeout,omitempty"`
	// UDPStreamTimeout is the timeout of UDP flows with more than one request and response, in seconds, 60 to
	// 180.
	// +kubebuilder:validation:Minimum:=60
	// +kubebuilder:validation:Maximum:=180
	// +optional
	UDPStreamTimeout *int32 `json:"udpStreamTimeout,omitempty"`
	// UDPTimeout is the timeout of UDP flows with traffic in one direction, or one request and response, in
	// seconds, 30 to 60.
	// +kubebuilder:validation:Minimum:=30
	// +kubebuilder:validation:Maximum:=60
	// +optional
	UDPTimeout *int32 `json:"udpTimeout,omitempty"`
}

// CPUOptions of an instance.
type CPUOptions struct {
	// NestedVirtualization enables or disables virtual machines on the instance.
	// +kubebuilder:validation:Enum:={enabled,disabled}
	// +optional
	NestedVirtualization *string `json:"nestedVirtualization,omitempty"`
}
