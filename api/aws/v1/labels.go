package v1

// Labels of nodes. One that does not apply to an instance type is absent from its nodes. Amounts are decimal integers.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html is the source of most.
const (
	// LabelNodeClass names the EC2NodeClass.
	LabelNodeClass = Group + "/ec2nodeclass"

	LabelInstanceCategory   = Group + "/instance-category"   // the letters that the type begins with: c of c6gn.4xlarge
	LabelInstanceGeneration = Group + "/instance-generation" // 6 of c6gn.4xlarge
	LabelInstanceFamily     = Group + "/instance-family"     // c6gn of c6gn.4xlarge
	LabelInstanceSize       = Group + "/instance-size"       // 4xlarge of c6gn.4xlarge

	LabelInstanceCPU                      = Group + "/instance-cpu"                             // vCPUs
	LabelInstanceCPUManufacturer          = Group + "/instance-cpu-manufacturer"                // aws, intel, amd
	LabelInstanceCPUClockSpeed            = Group + "/instance-cpu-sustained-clock-speed-mhz"   // MHz
	LabelInstanceMemory                   = Group + "/instance-memory"                          // MiB
	LabelInstanceEBSBandwidth             = Group + "/instance-ebs-bandwidth"                   // Mbit/s at most
	LabelInstanceNetworkBandwidth         = Group + "/instance-network-bandwidth"               // Mbit/s at all times
	LabelInstanceLocalNVMe                = Group + "/instance-local-nvme"                      // GB of instance store
	LabelInstanceHypervisor               = Group + "/instance-hypervisor"                      // nitro, xen or, on metal, empty
	LabelInstanceEncryptionInTransit      = Group + "/instance-encryption-in-transit-supported" // true or false
	LabelInstanceCapabilityFlex           = Group + "/instance-capability-flex"                 // true or false
	LabelInstanceTenancy                  = Group + "/instance-tenancy"                         // TenancyDefault or TenancyDedicated
	LabelNitroSandbox                     = Group + "/nitro-sandbox"                            // true or false: Nitro enclaves
	LabelInstanceGPUName                  = Group + "/instance-gpu-name"                        // t4, a100
	LabelInstanceGPUManufacturer          = Group + "/instance-gpu-manufacturer"                // nvidia, amd
	LabelInstanceGPUCount                 = Group + "/instance-gpu-count"                       //
	LabelInstanceGPUMemory                = Group + "/instance-gpu-memory"                      // MiB of one
	LabelInstanceAcceleratorName          = Group + "/instance-accelerator-name"                // inferentia
	LabelInstanceAcceleratorManufacturer  = Group + "/instance-accelerator-manufacturer"        // aws
	LabelInstanceAcceleratorCount         = Group + "/instance-accelerator-count"               //
	LabelCapacityReservationID            = Group + "/capacity-reservation-id"                  //
	LabelCapacityReservationType          = Group + "/capacity-reservation-type"                // default or capacity-block
	LabelCapacityReservationInterruptible = Group + "/capacity-reservation-interruptible"       // true or false
	LabelPlacementGroupID                 = Group + "/placement-group-id"                       //
	LabelPlacementGroupPartition          = Group + "/placement-group-partition"                // 1 to 7

	// LabelZoneID is the id of the availability zone, the same in all accounts.
	LabelZoneID = "topology.k8s.aws/zone-id"
	// LabelEBSZone is another name of topology.kubernetes.io/zone, which volumes of the EBS driver carry.
	LabelEBSZone = "topology.ebs.csi.aws.com/zone"
)

// Values of LabelInstanceTenancy.
const (
	TenancyDefault   = "default"
	TenancyDedicated = "dedicated"
)

// WellKnownLabels are the labels of this provider that a pod may require although its pool does not mention them.
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
	// AnnotationNodeClassHash is the class's drift hash; AnnotationNodeClassHashVersion says which HashVersion made it. On
	// classes and claims.
	AnnotationNodeClassHash        = Group + "/ec2nodeclass-hash"
	AnnotationNodeClassHashVersion = Group + "/ec2nodeclass-hash-version"
	// AnnotationInstanceProfile, on a claim, is the name of the instance profile that its machine was launched with.
	AnnotationInstanceProfile = Group + "/instance-profile-name"
	// AnnotationTagged and AnnotationClusterNameTagged, on a claim, say "true" once its instance has the tags Name and
	// karpenter.sh/nodeclaim, and eks:eks-cluster-name.
	AnnotationTagged            = Group + "/tagged"
	AnnotationClusterNameTagged = "compatibility." + Group + "/cluster-name-tagged"
	// AnnotationOpenReservations, on a class, is "true" if its machines may start in open capacity reservations that match them.
	// Ours. Without it they do so only while the feature gate ReservedCapacity is off.
	AnnotationOpenReservations = "karpenter-go.github.io/open-reservations"
)

// FinalizerTermination keeps a class in the API until no claim uses it and what was made for it in AWS is gone.
const FinalizerTermination = Group + "/termination"

// Keys of the tags of what we make in AWS. Users may not set them.
const (
	TagCluster       = "eks:eks-cluster-name"   // the cluster's name
	TagClusterPrefix = "kubernetes.io/cluster/" // with the cluster's name behind; the value is owned
	TagNodePool      = "karpenter.sh/nodepool"  // the pool's name
	TagNodeClaim     = "karpenter.sh/nodeclaim" // the claim's name
	TagNodeClass     = Group + "/ec2nodeclass"  // the class's name
	TagName          = "Name"                   // the node's name, unless the class has this tag
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
