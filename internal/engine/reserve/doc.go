// Package reserve derives which pod holds capacity on which node. A planned pod holds capacity before it is bound, and
// later plans must not give that capacity away.
//
//	Derive(snap, sources)    --> model.Reservations: which pod has capacity on which node, and from which source
//	Ahead(snap, last)        --> the snapshot that provisioning plans on, with its reservations
//	ArrivalsOf(snap)         --> the nodes on which pods are expected that are not bound to them yet
//	Arriving(snap)           --> the writes that record on claims that pods were sent to their nodes
//
// docs/reservations.md has the life of a reservation and the precedence of its sources.
//
// The package must not know how a plan places pods (placement), or which nodes are removed (disruption, guard).
package reserve
