// Package nodepool keeps the status of NodePools true: whether machines can be bought from a pool, whether the last
// launches became nodes, how much there is, and the hash by which drift is found.
//
//	pool, its node class, health ring --> Reconciler --> conditions, hash annotations (also on claims of an older
//	                                                     hash version)
//	nodes and claims of the pool      --> Counter    --> status.resources, status.nodes
//	launches that ended (nodeclaim)   --> Health     --> the ring; wakes the Reconciler
//
// A pool of another provider whose controller does not answer is told to be nobody's (foreign.go).
//
// The two writers touch different fields, so neither waits for the other. A pool that cannot be used says why in its
// own conditions and keeps no other pool from working.
//
// The package must not know how claims are launched or planned.
package nodepool
