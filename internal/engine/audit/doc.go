// Package audit is the independent judge: it verifies a plan against Kubernetes' rules, pod by pod.
//
//	Provision(snapshot, plan) -> []Problem        none means: carried out, this plan keeps its word
//
//	every pending pod      is placed, on a claim, or refused: exactly once
//	nodes that exist       taints, labels (what a node lacks is absent), free resources, daemons still to come
//	claims in flight       the same, for everything that the cloud may make of the claim
//	claims to create       the same, and: every option can be bought and is allowed by the pool, limits, names,
//	                       requests, order of prices, minValues, reservations; and a node of a lighter pool holds a pod
//	                       that no heavier pool could take
//	the order of binding   all nodes being there, each pod at its turn: topology spread, affinity and anti-affinity of the
//	                       pod and of those who are there, host ports
//
// What the cloud may make of a claim is the product of its types and their offerings, as far as the claim's own
// requirements allow them: each such outcome must hold all pods. A label that neither type nor offering decides has any
// value that the claim's requirements allow if it is well known, the claim's own label if it is custom, else none.
//
// The judge works on strings, label maps and amounts by name, as users wrote them. It uses no rows, no type index and
// no code of placement: a judge that shares code with the judged shares its mistakes. It is naive and meant to be
// obviously right; 10,000 pods take seconds, which is for tests and for checks before acting, not for a hot path.
//
// As long as it is open what the cloud makes of a claim, its pods count in every domain where they may be and in none for
// sure, whichever is worse for the pod at its turn.
//
// It does not ask whether a plan is good: not the price, not whether a refused pod could have had a place.
package audit
