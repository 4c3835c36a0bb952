// Package legacy says in today's API what manifests of before v1beta1 say: Provisioners (karpenter.sh/v1alpha3, v1alpha4,
// v1alpha5) and AWSNodeTemplates (karpenter.k8s.aws/v1alpha1).
//
//	Provisioners, AWSNodeTemplates --Translate--> NodePools, node classes, and notes on all that is said differently
//
// It goes by what an object meant when its version was served, not by what its fields would default to today: a TTL that is
// not set means never, a requirement that is not there means what the webhook of that version put in its place, and
// budgets let happen what happened then. What was not valid is read as what it can only have meant (limits.cpu for
// limits.resources.cpu); what has no counterpart is left out. Every such step is a Note with the field, what was done and
// why, so that a person can judge it.
//
// All objects are translated together, because they depend on each other: kubelet settings, which were the Provisioner's,
// are the class's today, so that a template that two Provisioners use with different ones becomes two classes; and tags of
// images that a template selects restrict the Provisioners that use it. Names are the same for the same objects, in
// whatever order they are given.
//
// One reader serves all versions, since their fields never contradict each other; the version only decides about defaults.
//
// The package is pure: objects and Settings in, objects and notes out. It must not know where objects come from or what
// becomes of the result: the controller (internal/controller/legacy) and karpenter migrate do.
package legacy
