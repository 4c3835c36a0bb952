// Package nodeclaim leads one claim through its life: it buys the machine, matches the node that joins, says when it
// is ready, gives up on what never comes, and takes the machine down again. Garbage collection catches what any crash
// left behind.
//
//	claim created
//	     |  finalizer on, before anything is bought
//	     v
//	 Launched? ----Launch----> InsufficientCapacity, NodeClassNotReady: claim deleted, its pods are planned again
//	     |                     any other error: Unknown with a reason, tried again with back-off
//	     v
//	 Registered? <--- node with our provider id: labels, taints, finalizer, owner copied onto it; BeforeReady asked;
//	     |            then the unregistered taint goes, in the same write
//	     v
//	 Initialized? <-- node Ready, start-up and ephemeral taints gone, resources there
//	     |
//	     v
//	 claim deleted --> nodes deleted (package node drains them) --> machine terminated until not found --> finalizer off
//
//	 claim vanished while it was launched: its machine is terminated by the process that launched it (lost.go)
//	 node removed by force: not Initialized; not back after a minute: deleted
//	 older than its expireAfter: deleted, in whatever state it is
//	 not launched after 5 min, or not registered after 15 min: deleted
//
// Two conditions say beside that whether it still is what it should be and whether it is quiet (Ageing); disruption goes
// by them. A third, whether its node has the shape that it promises (Consistency), only informs.
//
// The reconciler gathers (claim, nodes by index), evaluates by functions without a context (evaluate.go, describe.go),
// then acts. Everything lives in the API but one memory: what the provider answered to Launch, kept until the claim
// shows it, so that a stale read buys nothing twice; after a crash the provider's own idempotence does.
//
// The package must not know plans, snapshots or other claims: which pods belong onto a node is the business of
// whoever gives BeforeReady.
package nodeclaim
