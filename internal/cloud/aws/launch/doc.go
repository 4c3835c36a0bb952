// Package launch launches EC2 instances for claims, at most one for each, and reads and terminates them.
//
// A fleet launch (type fleetLaunch) is one launch for a batch of claims with equal requirements. Its records
// are annotations of the claims. One of the claims, the coordinator, also stores the CreateFleet
// requests.
//
//	Order --filters--> Selection --> launch templates --> batch of equal claims
//	                                                          |
//	   record (batch, size, attempt, index) on every claim; last, with the request, on the first one, the coordinator
//	                                                          v
//	   CreateFleet, client token = batch-attempt --response--> instances by ID  <->  claims by name
//	         |  ^ the recorded request again: throttled, the response was lost, or the process crashed
//	         |  `--the previous request: this one does not match the token, so the previous one was executed
//	         v
//	   refused: a request from the current class is recorded beside it, and sent with the same token
//
// EC2 executes one request per client token and repeats its response. A request is recorded before it is sent. Any
// process that finds the token on a claim sends the recorded request. So it gets the instances that were launched, or
// launches them now, whatever has changed in the class and in the offerings, and however late EC2 shows the instances.
// A claim becomes part of another fleet launch only when it is certain that nothing came of this one. coordinator.go
// describes the states.
//
// Some cases remain. The coordinator may be deleted, or its record corrupted, while other claims have no machine yet,
// and records of earlier versions have no coordinator. The request is made again then. If it differs, EC2 reports that
// the token was used, and the instances are searched for by their tag. If EC2 shows an instance later than
// Options.Settle, a second instance is launched for its claim. This affects at most one instance per claim and attempt.
// No claim has the first launch on record, so the first list that shows the instance treats it as a leak
// (cloud.Machine, Noted). The same applies to an instance for a claim that was deleted between the last record and the
// request.
//
// While it is unknown whether instances were launched, and there is no request to send, the claims are retried. A
// search decides the fleet launch once the process that started it can no longer send a request and Options.Settle is
// over.
//
// The indexes that a request is for are a tag of the instances, so that every process assigns them to claims in the
// same way.
//
// Files: filter.go, fleet.go, data.go, tags.go and refusal.go are pure. fleetlaunch.go implements the picture above,
// commit.go records a fleet launch, resume.go continues what another process started, coordinator.go and requests.go
// store the requests, search.go finds the instances of a fleet launch, address.go reserves addresses. templates.go
// keeps launch templates, which are named by a hash of their contents. ratelimiter.go keeps calls below EC2's rate
// limits, batch.go collects similar calls, reads.go reads and terminates instances, name.go tags them.
//
// partition.go launches into placement groups. Capacity reservations are not supported yet.
//
// The package must not depend on how subnets, images or prices are found, nor on the API server beyond a RecordStore.
package launch
