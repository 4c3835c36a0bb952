// Package node terminates a node that is being deleted: it keeps new pods away, evicts the existing pods in an order
// that allows their graceful termination, terminates the machine, and removes the node's finalizer.
//
//	node deleted (because its claim is deleted, or by a user: then the claim is deleted too)
//	     |
//	     |-- kubelet silent and machine gone? --------------------------------+
//	     v                                                                    |
//	 taint karpenter.sh/disrupted, out of the load balancers                  |
//	     v                                                                    |
//	 drain: wait for every pod that does not tolerate the taint; evict        |
//	     |  group by group: workloads, daemons, critical workloads,           |
//	     |  critical daemons; PDBs and do-not-disrupt are respected           |
//	     |  until the claim's deadline leaves a pod no more than its          |
//	     |  grace period: then it is deleted                                  |
//	     v                                                                    |
//	 volumes of drained pods detached, or the deadline passed                 |
//	     v                                                                    v
//	 machine terminated until not found -----------------------> finalizer removed
//
// The reconciler runs a list of steps (steps.go). Each evaluates the gathered state and returns that it is done, or
// when to check again. What to wait for and what to do with each pod is a function of the pods, the time and the
// deadline (drain.go, drain_policy.go). It is called twice: by the drain, which fills a queue with backoff per pod
// (evict.go), because a PDB may refuse an eviction for hours, and by the queue before each eviction. A pod that
// reaches its deadline does not wait for its backoff.
//
// In addition, Repair (repair.go, unhealthy.go) deletes the claims of nodes whose conditions show that they do not
// recover.
//
// The package must not depend on the reason of a node's removal: the claim's condition contains it, and the package
// only repeats it.
package node
