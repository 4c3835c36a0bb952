// Package launch buys EC2 instances for claims, at most one for each, and reads and ends them.
//
//	Order --filters--> Selection --> launch templates --> batch of like claims
//	                                                          |
//	   record (batch, size, attempt, place) on every member   |   not sent before all are written
//	                                                          v
//	   CreateFleet, client token = batch-attempt --answer--> instances by id  <->  members by name
//	         |  ^ the stored request again: throttled, or the answer was lost
//	         v
//	   token used by another request: look for instances by the tag of the token, adopt them, and only then go on with
//	   attempt+1 for the members that have none
//
// A claim whose record says that a purchase was begun, by a process that is gone or by another one, asks with the same
// token first: EC2 then either answers as before, or buys now, or says that the token was used by a request that differs,
// in which case the instances are found by their tag. However late the request of the other process arrives, the token
// admits one of them. Only when it is certain that nothing came of the purchase does the claim become part of another.
//
// What that leaves: where the token was used by a request that nobody has any more (its process is gone, and what is on
// sale or the class has changed since) and EC2 shows an instance of it more than Options.Settle later, a claim is bought for
// again. That is one instance for each member and attempt, no claim has its purchase on record, and so the first list that
// shows it makes it a leak (cloud.Machine, Noted).
//
// While it is open whether something was bought, and there is nothing to ask with, its claims come again; the purchase is
// decided by a search once whoever began it can no longer be asking, and Options.Settle is over.
//
// A purchase that is taken up again asks only for the claims that still have it on record. Which places those are is a tag
// of the instances, so that whoever finds them deals them in the same way.
//
// The files: filter.go, fleet.go, data.go, tags.go and refusal.go are pure; purchase.go is the picture above, search.go
// finds what a purchase has bought, address.go sets addresses aside; templates.go
// keeps launch templates, which are named by a hash of their contents; governor.go keeps calls below the rate that EC2
// allows; batch.go collects like calls; reads.go finds and ends instances,
// name.go tags them.
//
// Capacity reservations and placement groups are not acted on yet.
//
// The package must not know how subnets, images or prices are found, nor the API server beyond a Recorder.
package launch
