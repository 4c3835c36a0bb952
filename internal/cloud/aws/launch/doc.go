// Package launch buys EC2 instances for claims, at most one for each, and reads and ends them.
//
//	Order --filters--> Selection --> launch templates --> batch of like claims
//	                                                          |
//	   record (batch, size, attempt, place) on every member, and last, with the request, on the first of them, the lead
//	                                                          v
//	   CreateFleet, client token = batch-attempt --answer--> instances by id  <->  members by name
//	         |  ^ the request on record again: throttled, the answer was lost, or the process
//	         |  `--the one before it: it does not match the token, so that one was carried out
//	         v
//	   refused: a request of the day is put on record beside it, and asked for with the same token
//
// EC2 carries out one request for a token and repeats its answer. What is sent under a token is on record before, with one
// claim, and whoever finds the token on a claim, this process or another one, sends just that: so it has what was bought, or
// buys it now, whatever has become of the class and of what is on sale, and however late EC2 shows the instances. Only when it
// is certain that nothing came of the purchase does a claim become part of another. lead.go has the states.
//
// What that leaves: the lead may be deleted, or its record spoilt, while others have no machine yet, and records of earlier
// versions name none. Then the request is made anew; where it differs EC2 says that the token was used, and the instances are
// looked for by their tag. If EC2 shows one more than Options.Settle later, a claim is bought for again. That is one instance for
// each member and attempt, no claim has its purchase on record, and so the first list that shows it makes it a leak
// (cloud.Machine, Noted). So does an instance for a claim that was deleted between the last record and the request.
//
// While it is open whether something was bought, and there is nothing to ask with, its claims come again; the purchase is
// decided by a search once whoever began it can no longer be asking, and Options.Settle is over.
//
// Which places a request is for is a tag of the instances, so that whoever finds them deals them in the same way.
//
// The files: filter.go, fleet.go, data.go, tags.go and refusal.go are pure; purchase.go is the picture above, commit.go puts a
// purchase on record, takeover.go decides what another process began, lead.go and requests.go keep what is asked for, search.go
// finds what a purchase has bought, address.go sets addresses aside; templates.go keeps launch templates, which are named by a
// hash of their contents; governor.go keeps calls below the rate that EC2 allows; batch.go collects like calls; reads.go finds
// and ends instances, name.go tags them.
//
// Capacity reservations and placement groups are not acted on yet.
//
// The package must not know how subnets, images or prices are found, nor the API server beyond a Recorder.
package launch
