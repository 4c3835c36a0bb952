// Package plan holds decisions as data. Nothing here acts.
//
//	placement.Schedule  --> Provision{Claims, Placed, Refused}        what to buy, who goes where, who has no place and why
//	disruption.Propose  --> []Command{Candidates, Replacements}       which nodes should leave, and why
//	Step(snap, command) --> (command', []Action)                      the next phase and the writes that lead to it
//	Check(snap, ...)    --> Verdict                                   is it still safe on this, newer, snapshot?
//
// A plan can be printed, compared, stored, checked and carried out by one executor (internal/execute). A refusal is a
// value too: a Verdict is a code and operands; the package explain turns it into words, so that events, logs and the
// command line say the same.
//
// The package knows the model and nothing else of the engine: neither how a plan was found nor how it is carried out.
package plan
