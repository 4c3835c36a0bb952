// Package bound computes a lower bound of the cost that any plan adds to the cluster for a set of pending pods. The
// bound holds for every packing and comes with a certificate that can be checked independently.
//
// The mathematics. A pattern is a set of pods that one node may hold together: counts of pods by item (groups that
// this package does not distinguish), within the node's resources, at most as many of an item as exist, and
// consistent with the rules by hostname. A plan is a choice of patterns that covers all pods. Give every pod of item
// i a value y[i] >= 0, such that for every available node type
//
//	worth of its best pattern = max sum over i of a[i] * y[i]  <=  its price (+ the price per node)
//
// Then any plan costs at least the worth of the pods on its new nodes, and the other pods must fit on existing nodes:
//
//	price of any plan  >=  sum over i of count[i] * y[i]  -  sum over existing nodes of the worth of the best pattern
//
// (weak duality of the configuration linear program). So each y gives a valid bound, however it was found. A good y
// is found by column generation, and its worths are bounded from above:
//
//	worth  <=  min over w >= 0 of  w.free + sum over i of most[i] * max(0, y[i] - w.need[i])      relax, Lagrange
//	       <=  the result of a search over whole pods, where the relaxation is not tight          knapsack
//
// When the worths exceed the prices by a factor f, y/f is valid (Farley), so the search may stop at any time. Work is
// limited in units of arithmetic, not by a clock. Nodes with a finite number (existing nodes, reservations) are not
// constraints but credits: their worth beyond their price is subtracted, once for each. So are nodes whose pods are packed
// anew (Options.Held): to keep them is also a plan. Of a commitment, each unit that is left has the highest credit per unit
// of a node that it covers: no more than the node's discount, because the node exists at its list price, too.
//
// The bound respects: which pool, type, zone and capacity type a pod may use (labels, taints, available offerings),
// resources net of daemons (all resources, including extended ones and volumes), indivisible pods, hostname
// anti-affinity between pods that select each other, maxSkew of hostname spread, host ports of one group. It relaxes:
// all rules by other topology keys, pod affinity, anti-affinity between unequal groups, limits (except for types that
// exceed the remaining limit), weights, minValues, the preference for types without devices. Relaxation makes the
// bound lower, never wrong.
//
// Every product is rounded before it is added (by explicit conversions), so that all processors compute the same
// bits.
//
// The package is pure, imports the model only, and must not import placement: code shared with the scheduler would
// share its mistakes.
package bound
