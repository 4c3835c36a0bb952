package v1

// Condition types of an EC2NodeClass. Ready is True when the first six are True.
const (
	ConditionAMIsReady                 = "AMIsReady"                 // an image matches the selector terms
	ConditionSubnetsReady              = "SubnetsReady"              // a subnet matches the selector terms
	ConditionSecurityGroupsReady       = "SecurityGroupsReady"       // a security group matches the selector terms
	ConditionInstanceProfileReady      = "InstanceProfileReady"      // the instance profile is specified, or created for the role
	ConditionPlacementGroupReady       = "PlacementGroupReady"       // the class selects no placement group, or it exists
	ConditionValidationSucceeded       = "ValidationSucceeded"       // AWS would accept the launch requests
	ConditionCapacityReservationsReady = "CapacityReservationsReady" // capacity reservations can be listed, even if there are none
)

// Reasons of the discovery conditions.
const (
	ReasonSubnetsNotFound                = "SubnetsNotFound"
	ReasonSecurityGroupsNotFound         = "SecurityGroupsNotFound"
	ReasonAMINotFound                    = "AMINotFound"
	ReasonUnsupportedAlias               = "UnsupportedAlias" // of an alias without images for this Kubernetes version
	ReasonPlacementGroupNotFound         = "PlacementGroupNotFound"
	ReasonPlacementGroupResolutionFailed = "PlacementGroupResolutionFailed"
)

// Reasons of ConditionValidationSucceeded.
const (
	ReasonClusterCIDRResolutionFailed         = "ClusterCIDRResolutionFailed"
	ReasonInvalidKubeletConfiguration         = "InvalidKubeletConfiguration"
	ReasonUnsupportedKubeletConfiguration     = "UnsupportedKubeletConfiguration" // not supported by this image family
	ReasonKubeletExpressionsDisabled          = "KubeletExpressionsDisabled"
	ReasonKubeletExpressionInvalid            = "KubeletExpressionInvalid"
	ReasonKubeletExpressionEvaluationFailed   = "KubeletExpressionEvaluationFailed" // for an instance type of the class
	ReasonDependenciesNotReady                = "DependenciesNotReady"
	ReasonTagValidationFailed                 = "TagValidationFailed"
	ReasonInvalidAnnotation                   = "InvalidAnnotation"     // not upstream: of an annotation that only this project defines
	ReasonInvalidUserData                     = "InvalidUserData"       // not upstream: detected before any launch
	ReasonUnknownUserDataField                = "UnknownUserDataField"  // not upstream; the condition is True: the node ignores a field
	ReasonUnknownTagPlaceholder               = "UnknownTagPlaceholder" // not upstream; the condition is True: a tag keeps its text
	ReasonUserDataSizeLimitExceeded           = "UserDataSizeLimitExceeded"
	ReasonCreateLaunchTemplateAuthCheckFailed = "CreateLaunchTemplateAuthCheckFailed"
	ReasonCreateFleetAuthCheckFailed          = "CreateFleetAuthCheckFailed"
	ReasonRunInstancesAuthCheckFailed         = "RunInstancesAuthCheckFailed"
	ReasonInstanceProfileNotFound             = "InstanceProfileNotFound"
	ReasonPlacementGroupTenancy               = "PlacementGroupTenancy" // not upstream: the group takes no dedicated instances
)

// ReasonSpreadGroupFull is of a Warning event on a claim that is not launched, because its spread placement group has the
// most machines that EC2 allows in every zone. It is not upstream's.
const ReasonSpreadGroupFull = "SpreadGroupFull"

// Reasons of the condition Drifted of this provider's claims, in the order of the checks.
const (
	ReasonNodeClassDrift           = "NodeClassDrift"       // the drift hash differs
	ReasonRebalanceRecommended     = "RebalanceRecommended" // not upstream: the pool replaces such instances
	ReasonAMIDrift                 = "AMIDrift"
	ReasonSecurityGroupDrift       = "SecurityGroupDrift"
	ReasonSubnetDrift              = "SubnetDrift"
	ReasonCapacityReservationDrift = "CapacityReservationDrift"
	ReasonPlacementGroupDrift      = "PlacementGroupDrift"
)
