// Package interruption hears that EC2 will take machines away, or that they are failing, and says what is to become of
// their claims.
//
//	SQS --long poll--> notice.Parse+                       +--> Options.Act (deletes the claim, sets its deadline)
//	                   pure      v                        |
//	                          Notice --claims by id--> Decide --> Decision --> Options.SoldOut (the offering is closed)
//	EC2 DescribeInstanceStatus   ^                      pure
//	        --every minute--> Checks.Notices
//	                          pure
//
// What a message says (package notice), whether a status counts (Checks) and what follows from it (Decide) are functions of their
// input; the two loops of Watcher, RunQueue and RunStatus, do the calls. A decision is data: the caller carries it out,
// by deleting the claim. Nothing more is needed for a replacement to be bought at the notice: provisioning plans for the
// pods of nodes that are being deleted (plan.Ahead), so what they need is launched while they still run. The decision
// also has the time at which the machine is gone in any case, so that the drain ends before it.
//
// A message is removed from the queue after it was handled, and after a crash before that it is delivered again; all that
// is done is harmless when done twice. Messages that mean nothing to us (malformed, of other services, of states that
// do not matter, about machines that are not ours) are counted and removed. What keeps a loop from working (no
// permission, expired credentials, no such queue) is told once, and again when it is over; the loops go on trying.
//
// The package must not know a Kubernetes client, nor how claims are deleted or replacements bought; claims are names and
// a few labels to it. Metrics and events are the caller's: Observer and Decision.Events have what they need.
package interruption
