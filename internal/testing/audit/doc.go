// Package audit verifies a plan independently of the scheduler, against the rules of Kubernetes, pod by pod.
//
//	Provision(snapshot, plan) -> []Problem        none: the plan can be carried out as it is
//
//	every pending pod      is placed, on a claim, or refused: exactly once
//	existing nodes         taints, labels (a label that the node lacks is absent), free resources, daemons to come
//	claims in flight       the same, for every machine that the cloud may launch for the claim
//	claims to create       the same, and: every option is available and allowed by the pool, limits, names,
//	                       requests, order of prices, minValues, reservations; and a node of a pool with lower weight
//	                       holds a pod that no pool with higher weight can hold
//	virtual pods           the same, in the cluster in which the plan of the other pods is carried out
//	the order of binding   with all nodes present, each pod in its turn: topology spread, affinity and anti-affinity
//	                       of the pod and of the pods that are already bound, host ports
//
// The machines that the cloud may launch for a claim (its outcomes) are the product of its types and their offerings,
// restricted by the requirements of the claim. Each outcome must hold all pods. A label that neither type nor
// offering determines has any value that the requirements of the claim allow if the label is well known. If it is a
// custom label, it has the value of the claim's own label, or is absent.
//
// The audit works on strings, label maps and amounts by name, as users write them. It uses no rows, no type index and
// no code of package placement: code shared with the scheduler would share its mistakes. It is simple rather than
// fast. 10,000 pods take seconds, which suits tests and checks before a plan is carried out, not a hot path.
//
// While the outcome of a claim is open, its pods count as possible in every domain where they may be, and as certain
// in none. Each check uses the count that is worse for the pod.
//
// The audit does not judge the quality of a plan: neither its price, nor whether a refused pod could have been
// placed.
package audit
