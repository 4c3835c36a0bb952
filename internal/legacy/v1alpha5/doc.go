// Package v1alpha5 translates manifests from before v1beta1 to the current API: Provisioners (karpenter.sh/v1alpha3,
// v1alpha4, v1alpha5) and AWSNodeTemplates (karpenter.k8s.aws/v1alpha1).
//
//	Provisioners, AWSNodeTemplates --Translate--> NodePools, node classes, and notes on all differences
//
// The translation follows the semantics of an object at the time when its version was served, not the current
// defaults of its fields: a TTL that is not set means never, a missing requirement means the one that the webhook of
// that version added, and budgets allow the disruption that was allowed then. Invalid input is read as its only
// plausible meaning (limits.cpu for limits.resources.cpu). Input without an equivalent is omitted. Every such step is
// a Note with the field, the action and the reason, so that users can review it.
//
// All objects are translated together, because they depend on each other: kubelet settings, which belonged to the
// Provisioner, now belong to the class, so that a template that two Provisioners use with different settings becomes
// two classes; and tags of the images that a template selects restrict the Provisioners that use it. Names are the
// same for the same objects in any order.
//
// One reader handles all versions, because their fields never conflict. The version only determines defaults.
//
// The package is pure: objects and Settings in, objects and notes out. It must not depend on where objects come from
// or how the result is used: the controller (internal/legacy/provisioner) and kubectl karpenter migrate do.
package v1alpha5
