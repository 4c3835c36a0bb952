package v1

// Labels of nodes. A label that does not apply to an instance type is absent from its nodes. Amounts are
// decimal integers. Most values are from
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html.
const (
	// LabelNodeClass is the name of the EC2NodeClass.
	LabelNodeClass = Group + "/ec2nodeclass"

	LabelInstanceCategory   = Group + "/instance-category"   // the first letters of the type: c of c6gn.4xlarge
	LabelInstanceGeneration = Group + "/instance-generation" // 6 of c6gn.4xlarge
	LabelInstanceFamily     = Group + "/instance-family"     // c6gn of c6gn.4xlarge
	LabelInstanceSize       = Group + "/instance-size"       // 4xlarge of c6gn.4xlarge

	LabelInstanceCPU                      = Group + "/instance-cpu"                             // vCPUs
	LabelInstanceCPUManufacturer          = Group + "/instance-cpu-manufacturer"                // aws, intel, amd
	LabelInstanceCPUClockSpeed            = Group + "/instance-cpu-sustained-clock-speed-mhz"   // MHz
	LabelInstanceMemory                   = Group + "/instance-memory"                          // MiB
	LabelInstanceEBSBandwidth             = Group + "/instance-ebs-bandwidth"                   // Mbit/s, maximum
	LabelInstanceNetworkBandwidth         = Group + "/instance-network-bandwidth"               // Mbit/s, baseline
	LabelInstanceLocalNVMe                = Group + "/instance-local-nvme"                      // GB of instance store volumes
	LabelInstanceHypervisor               = Group + "/instance-hypervisor"                      // nitro, xen or, on metal, empty
	LabelInstanceEncryptionInTransit      = Group + "/instance-encryption-in-transit-supported" // true or false
	LabelInstanceCapabilityFlex           = Group + "/instance-capability-flex"                 // true or false
	LabelInstanceTenancy                  = Group + "/instance-tenancy"                         // TenancyDefault or TenancyDedicated
	LabelNitroSandbox                     = Group + "/nitro-sandbox"                            // true or false: Nitro Enclaves
	LabelInstanceGPUName                  = Group + "/instance-gpu-name"                        // t4, a100
	LabelInstanceGPUManufacturer          = Group + "/instance-gpu-manufacturer"                // nvidia, amd
	LabelInstanceGPUCount                 = Group + "/instance-gpu-count"                       //
	LabelInstanceGPUMemory                = Group + "/instance-gpu-memory"                      // MiB of one GPU
	LabelInstanceAcceleratorName          = Group + "/instance-accelerator-name"                // inferentia
	LabelInstanceAcceleratorManufacturer  = Group + "/instance-accelerator-manufacturer"        // aws
	LabelInstanceAcceleratorCount         = Group + "/instance-accelerator-count"               //
	LabelCapacityReservationID            = Group + "/capacity-reservation-id"                  //
	LabelCapacityReservationType          = Group + "/capacity-reservation-type"                // default or capacity-block
	LabelCapacityReservationInterruptible = Group + "/capacity-reservation-interruptible"       // true or false
	LabelPlacementGroupID                 = Group + "/placement-group-id"                       //
	LabelPlacementGroupPartition          = Group + "/placement-group-partition"                // 1 to 7

	// LabelInstanceAMIID is the ID of the image. Claims and nodes have it, and instance types do not: no node is launched
	// for a pod that requires an image.
	LabelInstanceAMIID = Group + "/instance-ami-id"

	// LabelZoneID is the ID of the availability zone, which is the same in all accounts.
	LabelZoneID = "topology.k8s.aws/zone-id"
	// LabelEBSZone is an alias of topology.kubernetes.io/zone. The EBS CSI driver sets it on volumes.
	LabelEBSZone = "topology.ebs.csi.aws.com/zone"
)

// Values of LabelInstanceTenancy.
const (
	TenancyDefault   = "default"
	TenancyDedicated = "dedicated"
)

// WellKnownLabels returns the labels of this provider that a pod may require even if its pool does not mention
// them.
func WellKnownLabels() []string {
	return []string{
		LabelNodeClass,
		LabelInstanceCategory, LabelInstanceGeneration, LabelInstanceFamily, LabelInstanceSize,
		LabelInstanceCPU, LabelInstanceCPUManufacturer, LabelInstanceCPUClockSpeed, LabelInstanceMemory,
		LabelInstanceEBSBandwidth, LabelInstanceNetworkBandwidth, LabelInstanceLocalNVMe, LabelInstanceHypervisor,
		LabelInstanceEncryptionInTransit, LabelInstanceCapabilityFlex, LabelInstanceTenancy, LabelNitroSandbox,
		LabelInstanceGPUName, LabelInstanceGPUManufacturer, LabelInstanceGPUCount, LabelInstanceGPUMemory,
		LabelInstanceAcceleratorName, LabelInstanceAcceleratorManufacturer, LabelInstanceAcceleratorCount,
		LabelCapacityReservationID, LabelCapacityReservationType, LabelCapacityReservationInterruptible,
		LabelPlacementGroupID, LabelPlacementGroupPartition,
		LabelZoneID,
	}
}

// Annotations.
const (
	// AnnotationNodeClassHash is the drift hash of the class. AnnotationNodeClassHashVersion is the version of
	// the hash function. Both are set on classes and claims.
	AnnotationNodeClassHash        = Group + "/ec2nodeclass-hash"
	AnnotationNodeClassHashVersion = Group + "/ec2nodeclass-hash-version"
	// AnnotationInstanceProfile, on a claim, is the name of the instance profile of its instance.
	AnnotationInstanceProfile = Group + "/instance-profile-name"
	// AnnotationTagged and AnnotationClusterNameTagged, on a claim, are "true" when its instance has the tags
	// Name and karpenter.sh/nodeclaim, or the tag eks:eks-cluster-name, respectively.
	AnnotationTagged            = Group + "/tagged"
	AnnotationClusterNameTagged = "compatibility." + Group + "/cluster-name-tagged"
	// AnnotationRebalanceRecommended, on a claim, is when (RFC 3339) EC2 recommended to replace its spot instance and its
	// pool asked for that. Only this implementation defines it.
	AnnotationRebalanceRecommended = "karpenter-go.github.io/rebalance-recommended"
	// AnnotationOpenReservations, on a class, is "true" if its instances may use matching open capacity
	// reservations. Without it they use them only while the feature gate ReservedCapacity is off. Only this
	// implementation defines it.
	AnnotationOpenReservations = "karpenter-go.github.io/open-reservations"
	// AnnotationAutoRecovery, on a class, is "disabled" if EC2 must not move its instances to other hosts when their
	// system status checks fail: the controller replaces them. "default", or no annotation, is EC2's own default. Only
	// this implementation defines it.
	AnnotationAutoRecovery = "karpenter-go.github.io/auto-recovery"
	// AnnotationPrefixDelegation, on a class, is "true" if the VPC CNI assigns IPv4 prefixes of 16 addresses to nodes
	// (ENABLE_PREFIX_DELEGATION), so that each type has as many pods as EKS recommends for it. "false" is the default.
	// Only this implementation defines it.
	AnnotationPrefixDelegation = "karpenter-go.github.io/prefix-delegation"
	// AnnotationVolumeSize, on a class, has CEL expressions for the sizes of its EBS volumes in GiB by instance type, as
	// DEVICE=EXPRESSION separated by semicolons or lines, such as /dev/xvda=20 + 2 * vcpus. They replace volumeSize of
	// spec.blockDeviceMappings. Only this implementation defines it.
	AnnotationVolumeSize = "karpenter-go.github.io/volume-size"
)

// FinalizerTermination keeps a class in the API until no claim uses it and the AWS resources created for it are
// deleted.
const FinalizerTermination = Group + "/termination"

// Keys of the tags of the AWS resources that Karpenter creates. Users cannot set them, except Name.
const (
	TagCluster       = "eks:eks-cluster-name"   // the cluster's name
	TagClusterPrefix = "kubernetes.io/cluster/" // followed by the cluster's name; the value is "owned"
	TagNodePool      = "karpenter.sh/nodepool"  // the pool's name
	TagNodeClaim     = "karpenter.sh/nodeclaim" // the claim's name
	TagNodeClass     = Group + "/ec2nodeclass"  // the class's name
	TagName          = "Name"                   // the node's name, unless the class sets this tag
)

// Extended resources of nodes.
const (
	ResourceNVIDIAGPU          = "nvidia.com/gpu"
	ResourceAMDGPU             = "amd.com/gpu"
	ResourceHabanaGaudi        = "habana.ai/gaudi"
	ResourceNeuron             = "aws.amazon.com/neuron"
	ResourceNeuronCore         = "aws.amazon.com/neuroncore"
	ResourceEFA                = "vpc.amazonaws.com/efa"
	ResourcePodENI             = "vpc.amazonaws.com/pod-eni"
	ResourcePrivateIPv4Address = "vpc.amazonaws.com/PrivateIPv4Address"
	ResourceNitroSandbox       = "eks.amazonaws.com/nitro-sandbox"
)
