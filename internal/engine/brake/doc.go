// Package brake ends loops in which nodes are launched for pods that never run on them: it pauses launches for the
// controller of such pods. The Brake observes snapshots and created claims, and takes the claims that have to wait out
// of a plan.
//
// The package must not know how a plan is made, and decides about no node: it only withholds launches.
package brake
