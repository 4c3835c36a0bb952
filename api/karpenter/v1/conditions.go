package v1

// Condition types of a NodePool. Ready is true when the first two are; the others inform.
const (
	ConditionValidationSucceeded     = "ValidationSucceeded"     // the pool passes Validate
	ConditionNodeClassReady          = "NodeClassReady"          // the node class exists and is Ready
	ConditionNodeRegistrationHealthy = "NodeRegistrationHealthy" // recent launches became nodes
	ConditionReplacementsHealthy     = "ReplacementsHealthy"     // ours: False while a reason of disruption backs off because replacements fail
	ConditionServed                  = "Served"                  // ours, on pools of another provider: whether its controller runs, as far as one asked
)

// Condition types of a NodeClaim. Ready is true when the first three are.
const (
	ConditionLaunched             = "Launched"             // the provider has started a machine
	ConditionRegistered           = "Registered"           // its node has joined the cluster
	ConditionInitialized          = "Initialized"          // the node is ready for pods
	ConditionConsolidatable       = "Consolidatable"       // quiet for as long as the pool's consolidateAfter
	ConditionDrifted              = "Drifted"              // not what its pool now says
	ConditionDisruptionReason     = "DisruptionReason"     // being disrupted; the reason is a DisruptionReason
	ConditionDrained              = "Drained"              // the node's pods are gone
	ConditionVolumesDetached      = "VolumesDetached"      // no volume holds the node back
	ConditionInstanceTerminating  = "InstanceTerminating"  // the provider has accepted the end of the machine
	ConditionConsistentStateFound = "ConsistentStateFound" // the node has the shape that was promised
)

// Reasons of conditions of a NodePool.
const (
	ReasonNodePoolValidationFailed  = "NodePoolValidationFailed"
	ReasonNoCompatibleInstanceTypes = "NoCompatibleInstanceTypes"
	ReasonNodeClassNotFound         = "NodeClassNotFound"
	ReasonNodeClassTerminating      = "NodeClassTerminating"
	ReasonNodeClassReadinessUnknown = "NodeClassReadinessUnknown"
	ReasonRegistrationFailed        = "RegistrationFailed"
	ReasonReplacementsFailed        = "ReplacementsFailed" // of ReplacementsHealthy, False
	ReasonOtherProvider             = "OtherProvider"      // ours: no controller of the node class's provider runs
	ReasonAsked                     = "Asked"              // of Served, Unknown
	ReasonNotAnswered               = "NotAnswered"        // of Served, False: nobody took the question away
	ReasonTakenBack                 = "TakenBack"          // of Served, True: the owner wrote NodeClassReady again, without a word
)

// Reasons of conditions of a NodeClaim.
const (
	ReasonAwaitingReconciliation        = "AwaitingReconciliation"
	ReasonLaunchFailed                  = "LaunchFailed"
	ReasonNodeNotFound                  = "NodeNotFound"
	ReasonRegistrationHookPending       = "RegistrationHookPending"
	ReasonMultipleNodesFound            = "MultipleNodesFound"
	ReasonMachineTaken                  = "MachineTaken" // ours: another claim shows the same providerID
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

// ReasonTerminationFailed is the reason of InstanceTerminating, Unknown, when the provider gives none.
const ReasonTerminationFailed = "TerminationFailed"

// Reasons of the condition Drifted that do not come from a provider.
const (
	ReasonNodePoolDrifted      = "NodePoolDrifted"      // the drift hash differs
	ReasonRequirementsDrifted  = "RequirementsDrifted"  // the labels no longer satisfy the pool's requirements
	ReasonInstanceTypeNotFound = "InstanceTypeNotFound" // the instance type is no longer offered
)
