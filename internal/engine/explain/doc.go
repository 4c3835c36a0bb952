// Package explain turns verdicts and plans into words: the only place where the engine's decisions become text.
//
//	plan.Verdict    --> Verdict     one clause: "needs 512Gi of memory, the largest of 40 types has 384Gi"
//	plan.Refusal    --> Refusal     why a pod has no place, pool by pool, for the FailedScheduling event
//	plan.Provision  --> Provision   what is bought and placed, and who is refused
//	                --> JSON        the same as data: codes, operands and the words
//
// Events, logs, the command line and the page say the same because they render the same value here. Clauses begin with a
// small letter, have no full stop at the end, and are joined by "; ". Pools that answer alike share a clause.
//
// Quantities are in the units that users write (500m of cpu, 1.5Gi of memory), money in USD per hour. Label keys, taints
// and fields are spelled as in the user's objects.
//
// The package is pure and decides nothing: it must not ask again whether something fits.
package explain
