// Package interruption receives notices that EC2 will reclaim machines, or that machines are failing, and decides what
// to do with their claims.
//
//	SQS --long poll--> notice.Parse+                       +--> Options.Act (deletes the claim, sets its deadline)
//	                   pure      v                        |
//	                          Notice --claims by ID--> Decide --> Decision --> Options.SoldOut (avoid the offering)
//	EC2 DescribeInstanceStatus   ^                      pure
//	        --every minute--> Checks.Notices
//	                          pure
//
// The content of a message (package notice), the evaluation of a status (Checks) and the resulting decision (Decide)
// are pure functions. The two loops of Watcher, RunQueue and RunStatus, make the calls. A decision is data. The caller
// applies it by deleting the claim. That is enough to launch a replacement: provisioning plans for the pods of nodes
// that are being deleted (reserve.Ahead), so the capacity for them is launched while they still run. The decision also
// has the time at which the machine is gone in any case, so that the drain ends before it.
//
// A message is deleted from the queue after it was handled. After a crash before that it is delivered again. All
// actions are idempotent. Irrelevant messages (malformed, of other services, of other states, about foreign machines)
// are counted and deleted. A problem that stops a loop (missing permission, expired credentials, missing queue) is
// reported once, and again when it is resolved. The loops keep trying.
//
// The package must not depend on a Kubernetes client, nor on how claims are deleted or replacements launched. It knows
// claims by name and a few labels. Metrics and events belong to the caller: Observer and Decision.Events have the
// necessary data.
package interruption
