// Package v1 holds the wire types of the API group karpenter.sh, version v1. A NodePool
// describes the nodes that may be launched. A NodeClaim requests one machine. The types
// are compatible with Karpenter's API (https://karpenter.sh/docs/concepts/): names,
// defaults and validation are the same, so existing manifests apply unchanged.
//
//	NodePool --template--> NodeClaim --launch--> Machine --registers--> Node
//	 (users)               (controller)          (cloud)               (kubelet)
//
// Contents:
//
//   - the types with their CRD markers (nodepool.go, nodeclaim.go, shared.go);
//     api/crds holds the CustomResourceDefinitions generated from them;
//   - labels, annotations, taints and finalizers (labels.go), condition types and
//     reasons (conditions.go);
//   - pure functions of one object: the drift hash (hash.go), validation that a schema
//     cannot express (validation.go), and the active times of a budget (budget.go).
//
// Durations keep the bytes that they were read from (duration.go), because GitOps tools
// compare them. Sets that a cloud provider extends (well-known labels, restricted
// domains, aliases) are values of type LabelRules and are passed as arguments. No state
// in this package changes after start-up.
//
// The package does not depend on the cluster, the engine, a provider or the clock:
// functions that need the time take it as an argument. The package does no I/O.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1
