// Package nodeclaim manages the lifecycle of one claim. It launches the machine, matches the node that joins, reports
// when the node is ready, deletes claims that exceed their time limits, and terminates the machine. Garbage
// collection removes what a crash left behind.
//
//	claim created
//	     |  finalizer set, before anything is launched
//	     v
//	 Launched? ----Launch----> InsufficientCapacity, NodeClassNotReady: claim deleted, its pods are planned again
//	     |                     any other error: Unknown with a reason, retried with backoff
//	     v
//	 Registered? <--- node with the claim's provider ID: labels, taints, finalizer, owner copied onto it; BeforeReady
//	     |            called; then the unregistered taint removed, in the same write
//	     v
//	 Initialized? <-- node Ready, startup and ephemeral taints gone, resources present
//	     |
//	     v
//	 claim deleted --> nodes deleted (package node drains them) --> machine terminated --> finalizer removed
//
//	 claim disappeared during its launch: its machine is terminated by the process that launched it (orphans.go)
//	 node deleted by force: not Initialized; not back after a minute: claim deleted
//	 older than its expireAfter: deleted, in any state
//	 not launched after 5 min, or not registered after 15 min: deleted
//
// Two further conditions report whether the claim still matches its pool and whether its node is quiet
// (DriftReconciler). Disruption uses them. A third condition reports whether the node has the resources that its claim
// declares (Consistency). It only informs.
//
// The reconciler gathers (claim, nodes by index), evaluates by functions without a context (evaluate.go,
// describe.go), then acts. All state is in the API, except for one memory: the provider's response to Launch is kept
// until the claim shows it, so that a stale read does not launch twice. After a crash, the idempotence of the
// provider's Launch has this effect.
//
// The package must not depend on plans, snapshots or other claims. The caller that sets BeforeReady decides which
// pods belong on a node.
package nodeclaim
