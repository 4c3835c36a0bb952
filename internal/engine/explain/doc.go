// Package explain renders verdicts and plans as text. It is the only package that does so for the engine's decisions.
//
//	plan.Verdict    --> Verdict     one clause: "needs 512Gi of memory, the largest of 40 types has 384Gi"
//	plan.Refusal    --> Refusal     why a pod is unschedulable, pool by pool, for the FailedScheduling event
//	plan.Provision  --> Provision   claims, placed pods and refused pods
//	                --> JSON        the same as data: codes, operands and the text
//
// Events, logs, the command line and the web page are consistent because they render the same value here. Clauses
// begin with a lowercase letter, have no period at the end, and are joined by "; ". Pools with equal verdicts share a
// clause.
//
// Quantities are in the units of users (500m of cpu, 1.5Gi of memory), money in USD per hour. Label keys, taints and
// fields are spelled as in the user's objects.
//
// The package is pure and makes no decisions: it must not evaluate again whether something fits.
package explain
