// Package reserve derives which pod holds capacity on which node. A planned pod holds capacity before it is bound, and
// later plans must not give that capacity away.
//
//	Ahead(snap)              --> the snapshot that provisioning plans on, with the reservations of claims and commands
//	Reseated(snap, last)     --> the same with the reservations of the last plan
//	Reservations(snap, plan) --> the writes that record what no other object in the API records
//	ArrivalsOf(snap)         --> the nodes on which pods are expected that are not bound to them yet
//	Notices(snap)            --> the writes that record on claims that pods were sent to their nodes
//
// The package must not know how a plan places pods (placement), or which nodes are removed (disruption, guard).
package reserve
