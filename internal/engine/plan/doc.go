// Package plan represents decisions as data. The package performs no API writes.
//
//	placement.Schedule  --> Provision{Claims, Placed, Refused}  nodes to launch, pods per node, refused pods and why
//	disruption.Propose  --> []Command{Candidates, Replacements} nodes to remove, and why
//	Step(snap, command) --> (command', []Action)                the next phase and the writes that lead to it
//	Check(snap, ...)    --> Verdict                             whether it is still safe on this, newer, snapshot
//
// A plan can be printed, compared, stored, checked and carried out by one executor (internal/execute). A refusal is a
// value too: a Verdict is a code and operands. The package explain turns it into text, so that events, logs and the
// command line agree.
//
// The package imports the model and its value types only. It contains neither the search for a plan nor its
// execution.
package plan
