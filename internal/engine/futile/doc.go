// Package futile finds launches of nodes that were of no use for the pods that they were for, and pauses further
// launches for these pods (package pause). A plan may be wrong about a cluster in unforeseen ways: a webhook enlarges the
// pods of a DaemonSet, a node has a taint that no NodePool names. Then the next plan launches a node for the same pods,
// and each round costs a machine.
//
//	plan --Judge--> which earlier launches were futile, counted by scope --> plan.SetPause, plan.EndPause
//	plan --Restrain--> plan without the claims that are only for pods of paused scopes
//	claims --Launched--> what the next plan judges
//
// A scope is an owner of pods, or a cause that nodes of a pool have shown. A launch counts for its scopes when the next node
// is planned for pods that they concern.
//
// The owner of a pod is its controller, or the pod itself. When a plan launches a node for pods of an owner, an earlier
// launch for the owner was futile if
//
//   - its claim is deleted, and it had a machine or has reached its expireAfter,
//   - its node has joined, runs no pods but those of DaemonSets, and the plan has none for it, or
//   - one of its pods was preempted within a minute.
//
// A virtual pod of a buffer runs where the plan has room for it. Nothing waits for that room: its launches pause after the
// first futile round. After each pause one claim is tried.
//
// A virtual pod of a workload has a node launched for it once. If its room is taken, it gets another when it exists. If the
// claim is gone before it has become a node, another is launched, as for pending pods.
//
// A taint that its NodePool does not name, or the lack of a label that it has, is a cause if the node has run no pod
// (cause.go), whichever the owners are. After three such nodes in a row, launches from the pool pause for the pods that
// cannot run on them, and for no others. Placement reads the pauses about taints from the pool, and uses other pools.
//
// What an empty node has less than its type promises is a cause too, and counts for the next choice in its pool
// (capacity.go): Restrain takes the types out of claims that could not hold the pods.
//
// Pods on a node that is being removed need a node like pending ones, and count like them.
//
// A launch in progress is not judged, nor is one that the cloud refused. When one of the pods has run for a minute, or
// has ended by itself, the owner begins anew.
//
// The package must not know how a plan is made, and decides about no node: it only withholds launches.
package futile
