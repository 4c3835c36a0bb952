// Package bound says what any plan must at least add to the cluster for a set of pending pods: a number that no
// packing, however clever, can go below, with a certificate that anybody can check.
//
// The mathematics. A pattern is what one node may hold together: counts of pods by item (groups that nothing here tells
// apart), within the node's resources, no more of an item than there are, no two where the rules by hostname keep them
// apart. A plan is a choice of patterns that covers all pods. Give every pod of item i a value y[i] >= 0, such that for
// every node that is for sale
//
//	worth of its best pattern = max sum over i of a[i] * y[i]  <=  its price (+ the price of a node as such)
//
// Then any plan pays at least the worth of what it buys, and what it does not buy must fit what is there already:
//
//	price of any plan  >=  sum over i of count[i] * y[i]  -  sum over existing nodes of the worth of their best pattern
//
// (weak duality of the configuration linear program). So each y is a valid bound, however it was found; a good y is
// found by column generation, and its worths are proved from above:
//
//	worth  <=  min over w >= 0 of  w.free + sum over i of most[i] * max(0, y[i] - w.need[i])      relax, Lagrange
//	       <=  what a search over whole pods proves, where the relaxation is not tight            knapsack
//
// When the worths exceed the prices by a factor f, y/f is valid (Farley), so the search may stop at any time: work is
// bounded in units of arithmetic, not by a clock. Nodes with a finite number (those that exist, reservations) are not
// constraints but credits: what they are worth beyond their price is taken off, once for each.
//
// What is kept of the rules: which pool, type, zone and capacity type a pod may use (labels, taints, offerings that are
// on sale), resources net of daemons (all of them, extended ones and volumes too), pods that fit as a whole, hostname
// anti-affinity between equals, maxSkew of hostname spread, host ports of one group. What is relaxed: everything by
// other topology keys, pod affinity, anti-affinity between unequal groups, limits (but for types that exceed what is left),
// weights, minValues, special types being spared. Relaxing makes the bound lower, never wrong.
//
// Every product is rounded before it is added (the conversions say so), so that all processors compute the same bits.
//
// The package is pure, knows the model only, and must not know placement: a bound that shares code with the packer
// would share its mistakes.
package bound
