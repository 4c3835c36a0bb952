// Package allocation shares the prices of nodes among the pods that run on them, by what the pods request. In FinOps this
// is cost allocation (https://www.finops.org/framework/capabilities/allocation/).
//
//	Snapshot --divider.divide--> nano-USD per hour of each pod, and of what no pod requests --Of--> Bill
//
// A pod's share of a node is the largest of its shares of the node's allocatable CPU, memory and accelerators. If the
// shares of a node's pods add up to more than the node, they are scaled down to it. Otherwise the rest of the node is
// unused. Each node is divided by itself, with the largest remainders, so that:
//
//   - the parts of a node add up to its price to the nano-dollar, and the rows of every Bill to the price of the fleet;
//   - a part differs from its exact share of the price by less than a nano-dollar;
//   - what happens on one node changes no part of another.
//
// Nodes with claims count, as in all sums of this project, at the price of their offering without the per-node overhead,
// which is an estimate that decisions use. Nodes without a claim and nodes of unknown price are counted and have no part
// in the bill.
//
// The package must not know how prices are found, what pods really use, or what a plan would change.
package allocation
