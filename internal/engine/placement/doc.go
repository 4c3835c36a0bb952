// Package placement places every pending pod: on existing nodes, on claims in flight and, for the rest, on new nodes
// with a low total price.
//
//	Schedule(snapshot)
//	  1 reserved   pods go where they have a reservation, by nomination or by their claim, while they fit
//	  2 existing   groups, largest first, onto nodes in the snapshot's order
//	  3 new        weight by weight, heaviest first: the admissible groups, the bins to open, the pool and types of each
//	  4 refused    a verdict per pool for every group that is left
//	  5 virtual    the same for virtual pods, on what is left (ScheduleVirtual)
//
// A group (identical pods, with a count) is the unit: each check runs once per group, and its result is used as often
// as capacity allows. A single pod is a group of one; there is no second code path.
//
// New bins are chosen by price. A dual solution (duals) prices the requested resources. A bin is tried with every type
// that no cheaper type dominates, and filled greedily. The type with the least price per value of its content wins. The
// resulting pattern is opened as often as its groups can fill it. A bin is then a product of types, zones and capacity
// types: everything that can hold its content, cheapest first, because the cloud may select any member.
//
// What needs nothing of a run is in packages below: simplex solves for the duals, tally counts pods on a host, relax lists
// preferences in the order in which they are dropped, refusal summarizes verdicts.
//
// The result is a plan.Provision and nothing else: no state is kept, nothing is written, and the snapshot is read-only.
// The package must not depend on disruption, Kubernetes or any cloud. Package audit verifies its results and shares no
// code with it.
package placement
