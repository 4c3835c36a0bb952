package v1

// Condition types of an EC2NodeClass. Ready is true when the first six are.
const (
	ConditionAMIsReady                 = "AMIsReady"                 // an image is found
	ConditionSubnetsReady              = "SubnetsReady"              // a subnet is found
	ConditionSecurityGroupsReady       = "SecurityGroupsReady"       // a security group is found
	ConditionInstanceProfileReady      = "InstanceProfileReady"      // the instance profile is known, or made
	ConditionPlacementGroupReady       = "PlacementGroupReady"       // none is asked for, or it is found
	ConditionValidationSucceeded       = "ValidationSucceeded"       // AWS would accept what we are to ask for
	ConditionCapacityReservationsReady = "CapacityReservationsReady" // they could be listed, if there were none
)

// Reasons of the conditions of discovery.
const (
	ReasonSubnetsNotFound                = "SubnetsNotFound"
	ReasonSecurityGroupsNotFound         = "SecurityGroupsNotFound"
	ReasonAMINotFound                    = "AMINotFound"
	ReasonUnsupportedAlias               = "UnsupportedAlias" // not for this version of Kubernetes
	ReasonPlacementGroupNotFound         = "PlacementGroupNotFound"
	ReasonPlacementGroupResolutionFailed = "PlacementGroupResolutionFailed"
	ReasonNotYetActedOn                  = "NotYetActedOn" // ours: a field is accepted and does nothing
)

// Reasons of ConditionValidationSucceeded.
const (
	ReasonClusterCIDRResolutionFailed         = "ClusterCIDRResolutionFailed"
	ReasonInvalidKubeletConfiguration         = "InvalidKubeletConfiguration"
	ReasonUnsupportedKubeletConfiguration     = "UnsupportedKubeletConfiguration" // not on this family of images
	ReasonKubeletExpressionsDisabled          = "KubeletExpressionsDisabled"
	ReasonDependenciesNotReady                = "DependenciesNotReady"
	ReasonTagValidationFailed                 = "TagValidationFailed"
	ReasonInvalidUserData                     = "InvalidUserData"      // ours: found before anything is launched
	ReasonUnknownUserDataField                = "UnknownUserDataField" // ours, and the condition is true: the node ignores a field
	ReasonUserDataSizeLimitExceeded           = "UserDataSizeLimitExceeded"
	ReasonCreateLaunchTemplateAuthCheckFailed = "CreateLaunchTemplateAuthCheckFailed"
	ReasonCreateFleetAuthCheckFailed          = "CreateFleetAuthCheckFailed"
	ReasonRunInstancesAuthCheckFailed         = "RunInstancesAuthCheckFailed"
	ReasonInstanceProfileNotFound             = "InstanceProfileNotFound"
)

// Reasons of the condition Drifted of claims of this provider, in the order in which they are looked for.
const (
	ReasonNodeClassDrift           = "NodeClassDrift" // the drift hash differs
	ReasonAMIDrift                 = "AMIDrift"
	ReasonSecurityGroupDrift       = "SecurityGroupDrift"
	ReasonSubnetDrift              = "SubnetDrift"
	ReasonCapacityReservationDrift = "CapacityReservationDrift"
	ReasonPlacementGroupDrift      = "PlacementGroupDrift"
)
