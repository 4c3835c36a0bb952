// Package offline answers what the controller would do, without running it: from files, from a live cluster that it
// only reads, or from a capture.
//
//	files, folders, stdin ──┐
//	live cluster (lists) ───┼─> Manifests ─> cluster/state ─> Decision        ─> LaunchAnswer,  PodOutcome, fleet of top
//	capture ────────────────┘   (objects)    (snapshot)       DisruptDecision ─> DisruptAnswer, NodeOutcome, PoolOutcome
//	                                  │
//	instance types: of a file, of the provider's embedded catalog, of AWS if the caller asks for that
//
// Files lack what a cluster has: defaults, status, pods of workloads, objects that others refer to. A completion adds that to
// the objects (manifests.go, missing.go, workload.go), and a mirror shows them to the state that the controller has
// (mirror.go). What the state rejects is a problem, with its words and the object's origin. An answer is a value that prints
// itself as text or as JSON. A capture stores a decision with its input, and Replay repeats it.
//
// Invalid input is an InputError, or one of the problems of the Manifests: the rest is still decided.
//
// The package writes nothing to a cluster. It must not know command lines, and it decides nothing itself.
package offline
