// Package plan represents decisions as data. The package performs no API writes.
//
//	placement.Schedule  --> Provision{Claims, Placed, Refused}  nodes to launch, pods per node, refused pods and why
//	disruption.Propose  --> []Command{Candidates, Replacements} nodes to remove, and why
//	guard.Step          --> (Command, []Action)                 the next phase and the writes that lead to it
//	guard.Check         --> Verdict                             whether it is still safe on this, newer, snapshot
//
// A plan can be printed, compared, stored, checked and carried out by one executor (internal/execute). A refusal is a
// value too: a Verdict is a code and operands. The package explain turns it into text, so that events, logs and the
// command line agree.
//
// The package imports the model and its value types only. It must not know how a plan is found (placement, disruption),
// whether it is safe (guard), or how it is executed. What reads a snapshot here constructs a value of this package or
// decodes a stored one: CandidateOf, DestinationOf, StaticClaim, NoTypes, CommandReader.
package plan
