// Package neutral has everyday inputs, and changes to them that do not matter: with such a change, a plan must not
// cost more.
//
//	Purchase(seed), Fleet(seed) -> Input -> Change.Apply -> Input -> what decides (package decide) -> Outcome
//	                                                                            Outcome.Judge: same, cheaper, dearer
//
// An input is what a user would have in a folder of manifests: pools, pods, DaemonSets, budgets, nodes, and a file of
// instance types. A seed determines it. A change is a name and a function: a limit that is never reached, a pool of
// another team, a rule that selects no pod, other names. That a change is neutral follows from the documentation of
// Kubernetes and of Karpenter's API alone.
//
// The package must not know how plans are made: it imports nothing of this repository except the API types. A change is
// not left out because a plan cannot bear it.
package neutral
