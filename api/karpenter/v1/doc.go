// Package v1 holds the wire types of the API group karpenter.sh, version v1:
// NodePool, what its owner wants nodes to look like, and NodeClaim, one machine
// asked for. They are compatible with Karpenter's API: same names, defaults and
// validation, so that existing manifests apply unchanged.
//
//	NodePool --template--> NodeClaim --launch--> Machine --registers--> Node
//	 (users write)         (we write)            (the cloud)            (the kubelet)
//
// What is here:
//
//   - the types with their CRD markers (nodepool.go, nodeclaim.go, shared.go);
//     api/crds holds the CustomResourceDefinitions generated from them;
//   - the vocabulary: labels, annotations, taints, finalizer (labels.go) and
//     condition types and reasons (conditions.go);
//   - pure functions of one object: the drift hash (hash.go), the validation that
//     a schema cannot express (validation.go), when a budget is active (budget.go).
//
// Durations keep the bytes that the user wrote (duration.go), because a GitOps tool
// compares them. Sets that a cloud provider extends (well-known labels, restricted
// domains, aliases) are values of type LabelRules and travel as arguments; nothing
// in this package changes after start-up.
//
// It must not know the cluster, the engine, any provider, or the time: functions
// that need the time take it as an argument. Nothing here does I/O.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1
