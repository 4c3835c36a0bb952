// Package disruption decides which nodes should leave, and why.
//
//	Snapshot --> Propose --> Proposal{Commands, Kept, Next}
//	                |
//	                +-- method empty: nodes without pods to move, quiet for consolidateAfter, within budgets
//
// A method is a function that looks at every node of ours and answers with a command or with a Verdict that says why
// the node stays; explain renders the verdicts, so that nobody has to guess. Methods are asked in a fixed order, and
// what one took from a pool's budgets is gone for the next.
//
// Emptiness makes one command per node. Nothing ties such nodes together, so that a node which cannot go after all
// (a pod came, somebody protected it) holds back no other, and a command is rolled back or carried out as a whole.
//
// Empty means: no pod that somebody would start again elsewhere. Daemons, mirror pods, finished pods and pods that are
// on their way out do not count; every other pod does, however low its priority or deletion cost. That is stricter
// than upstream, which deletes nodes whose pods are all "cheap" (priority of -33554432 or less) without asking where
// they would go.
//
// The decision is a pure function of the snapshot, the same for every order of the input: dearest node first, then by
// name. Cost: one pass over nodes and their pods, and a sort of those that are empty.
//
// The package must not know how a command is carried out: plan.Step does.
package disruption
