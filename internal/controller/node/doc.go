// Package node takes a node that is being deleted out of the cluster without harm: it keeps new pods away, evicts the
// pods that are there in an order that lets them say goodbye, ends the machine, and lets the node go.
//
//	node deleted (by the claim's end, or by a user: then the claim is deleted too)
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
//	 volumes of pods that left detached, or the deadline passed               |
//	     v                                                                    v
//	 machine terminated until not found -------------------------------> finalizer off
//
// The reconciler walks a list of stages (stages.go); each looks at what was gathered and says done, or when to look
// again. What to wait for and what to do with each pod is a function of the pods, the time and the deadline (drain.go,
// terms.go). It is asked twice: by the drain, which fills a queue with a back-off per pod (evict.go), because a PDB may
// say no for hours, and by the queue, when the pod's turn has come. A pod whose deadline comes does not wait for its
// back-off.
//
// Beside that, Repair (repair.go, repair_rule.go) ends the claims of nodes whose conditions say that they do not recover.
//
// The package must not know why a node leaves: the claim's condition says it, and it is only repeated.
package node
