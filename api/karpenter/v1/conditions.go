package v1

// Condition types of a NodePool. Ready is True when the first two are True. The others are informational.
const (
	ConditionValidationSucceeded     = "ValidationSucceeded"     // the pool passes Validate
	ConditionNodeClassReady          = "NodeClassReady"          // the node class exists and is Ready
	ConditionNodeRegistrationHealthy = "NodeRegistrationHealthy" // recently launched machines registered as nodes
	ConditionServed                  = "Served"                  // not upstream: whether the controller of another provider runs
)

// Condition types of a NodeClaim. Ready is True when the first three are True.
const (
	ConditionLaunched             = "Launched"             // the provider has started a machine
	ConditionRegistered           = "Registered"           // its node has joined the cluster
	ConditionInitialized          = "Initialized"          // the node is ready for pods
	ConditionConsolidatable       = "Consolidatable"       // no pod was added or removed during the pool's consolidateAfter
	ConditionDrifted              = "Drifted"              // the node no longer matches its pool
	ConditionDisruptionReason     = "DisruptionReason"     // the node is being disrupted; the reason is a DisruptionReason
	ConditionDrained              = "Drained"              // the node's pods are deleted
	ConditionVolumesDetached      = "VolumesDetached"      // no attached volume blocks the termination
	ConditionInstanceTerminating  = "InstanceTerminating"  // the provider has accepted the termination of the machine
	ConditionConsistentStateFound = "ConsistentStateFound" // the node has the expected capacity
)

// Reasons of conditions of a NodePool.
const (
	ReasonNodePoolValidationFailed  = "NodePoolValidationFailed"
	ReasonNoCompatibleInstanceTypes = "NoCompatibleInstanceTypes"
	ReasonNodeClassNotFound         = "NodeClassNotFound"
	ReasonNodeClassTerminating      = "NodeClassTerminating"
	ReasonNodeClassReadinessUnknown = "NodeClassReadinessUnknown"
	ReasonRegistrationFailed        = "RegistrationFailed"
	ReasonOtherProvider             = "OtherProvider" // not upstream: no controller of the node class's provider runs
	ReasonAsked                     = "Asked"         // of Served, Unknown
	ReasonNotAnswered               = "NotAnswered"   // of Served, False: no controller removed the condition in time
	ReasonTakenBack                 = "TakenBack"     // of Served, True: another implementation overwrote NodeClassReady
)

// Reasons of conditions of a NodeClaim.
const (
	ReasonAwaitingReconciliation        = "AwaitingReconciliation"
	ReasonLaunchFailed                  = "LaunchFailed"
	ReasonNodeNotFound                  = "NodeNotFound"
	ReasonRegistrationHookPending       = "RegistrationHookPending"
	ReasonMultipleNodesFound            = "MultipleNodesFound"
	ReasonMachineTaken                  = "MachineTaken" // not upstream: another claim has the same providerID
	ReasonNodeNotReady                  = "NodeNotReady"
	ReasonStartupTaintsExist            = "StartupTaintsExist"
	ReasonKnownEphemeralTaintsExist     = "KnownEphemeralTaintsExist"
	ReasonResourceNotRegistered         = "ResourceNotRegistered"
	ReasonDRADriverPoolsNotPublished    = "DRADriverPoolsNotPublished"
	ReasonDraining                      = "Draining"
	ReasonAwaitingVolumeDetachment      = "AwaitingVolumeDetachment"
	ReasonTerminationGracePeriodElapsed = "TerminationGracePeriodElapsed"
	ReasonConsistencyCheckFailed        = "ConsistencyCheckFailed"
)

// ReasonTerminationFailed is the reason of InstanceTerminating, status Unknown, if the provider returns no
// reason.
const ReasonTerminationFailed = "TerminationFailed"

// Reasons of the condition Drifted that do not come from a provider.
const (
	ReasonNodePoolDrifted      = "NodePoolDrifted"      // the drift hash differs
	ReasonRequirementsDrifted  = "RequirementsDrifted"  // the node's labels no longer satisfy the pool's requirements
	ReasonInstanceTypeNotFound = "InstanceTypeNotFound" // the instance type is no longer offered
)
