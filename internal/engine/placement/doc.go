// Package placement finds a place for every pending pod: on nodes that exist, on claims in flight, and, for what is
// left, on new nodes that cost little.
//
//	Schedule(snapshot)
//	   1 promised   pods go where they were promised a place, by nomination or by the claim bought for them, while they fit
//	   2 existing   groups, largest first, onto nodes in the snapshot's order
//	   3 new        pool by pool, heaviest first: which groups may come, which bins to open, which types those may be
//	   4 refused    a verdict per pool for every group that is left
//
// A group (identical pods, with a count) is the unit: whether it may go somewhere is asked once and taken as often as
// capacity allows. A lone pod is a group of one; there is no second code path.
//
// New bins are opened by price. A dual solution (duals) prices the resources that are wanted; a bin is tried with every
// type that no cheaper type dominates, filled greedily, and the type with the least price per value of its content
// wins. The pattern found is bought as often as its groups last. A bin is then a product of types, zones and capacity
// types: everything that can hold what is in it, cheapest first, because the cloud may pick any member.
//
// The result is a plan.Provision and nothing else: no state is kept, nothing is written, the snapshot is only read.
// The package must not know disruption, Kubernetes or any cloud, and is judged by package audit, with which it shares
// no code.
package placement
