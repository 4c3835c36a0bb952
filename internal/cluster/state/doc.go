// Package state holds the objects of a cluster, and makes Snapshots of them.
//
//	Saw, Gone --objects--> convert --specs--> model.Builder --> Snapshot(now)
//	SetTypes (a pool's catalog), SetVirtual (pods that do not exist) --/
//	                          \--> Drain: what has changed, for its owner to act on
//
// Package cluster feeds it from informers, and package offline from files and captures: what a State rejects is rejected
// by both, with the same words. An event costs O(1): it changes one entry, converts one object (a node together with its
// claim) and updates the builder. Nothing is rebuilt. The result does not depend on the order of the events.
//
// The conversion of a pod depends on its claims, volumes, storage classes and on labels of namespaces; a pod is
// converted again when one of the objects that it looked up changes (dependencies.go). The CSINode contains how many
// volumes a node can attach. PodDisruptionBudgets are passed on unchanged: the snapshot evaluates which pods they select.
//
// An invalid object (a claim with invalid requirements, a pod that requires a restricted label, a second node with the
// same provider ID) is ignored, listed in Rejected and counted; all other objects are processed. A claim that is not
// launched is a node of the snapshot. Nodes and claims are matched by provider ID (machine.go).
//
// One lock guards a State, and it calls nothing while the lock is held: no function of its owner, no client, no logger.
// It reads no clock and starts no goroutine: times are arguments, and what time alone changes is applied by Snapshot and
// Advance.
//
// The parts (podSet, machines, poolSet, daemonSets, replicas, virtuals, and the small ones) share a base, and the
// conversions of pods share dependencies. Only podSet calls other parts.
//
// The package must not know where objects come from, nor placement, disruption or controllers.
package state
