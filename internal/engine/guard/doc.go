// Package guard tells what is safe now. Plans are made on an older snapshot than the one on which they are executed, so
// every effect is checked on the newest snapshot first.
//
//	CheckProvision(snap, plan) --> the part of the plan that is still valid, and what was dropped
//	Check(snap, command)       --> whether the command is allowed: candidates, reason, pods, budgets
//	Step(snap, command)        --> the command's phase on this snapshot, and the writes that continue from there
//	Resume(snap)               --> the commands in progress, read from the claims
//	StaleTaintActions(snap)    --> writes that clean nodes with traces of a command that is gone
//	Undone(snap)               --> writes that pause reasons whose commands are undone soon after
//
// A Guard shares budgets and limits between the commands that are checked with it.
//
// The package must not know how plans and commands are found: a search over placements is passed to the Guard as a
// function (Judge). It performs no writes.
package guard
