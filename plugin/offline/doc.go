// Package offline answers what the controller would do, without running it: from files, from a live cluster that it
// only reads, or from a capture.
//
//	files, folders, stdin ──┐
//	live cluster (lists) ───┼─> Manifests ─> InputSet ─> Decision        ─> LaunchAnswer,  PodOutcome, fleet of top
//	capture ────────────────┘   (objects)    (complete)  DisruptDecision ─> DisruptAnswer, NodeOutcome, PoolOutcome
//	                                  │
//	instance types: of a file, of the provider's embedded catalog, of AWS if the caller asks for that
//
// Objects are converted by internal/cluster/convert and decided on by internal/engine, as in the controller. An answer
// is a value that prints itself as text or as JSON. A capture stores a decision with its input, and Replay repeats it.
//
// Invalid input is an InputError, or one of the problems of an InputSet: the rest is still decided.
//
// The package writes nothing to a cluster. It must not know command lines, and it decides nothing itself.
package offline
