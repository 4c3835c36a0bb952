// Package nodepool maintains the status of NodePools: whether nodes can be launched from a pool, whether the last
// launches became nodes, its nodes and resources, and the hash by which drift is detected.
//
//	pool, its node class, health ring --> Reconciler --> conditions, hash annotations (also on claims of an older
//	                                                     hash version)
//	nodes and claims of the pool      --> Counter    --> status.resources, status.nodes
//	launches that ended (nodeclaim)   --> Health     --> the ring; triggers the Reconciler
//
// A pool of another provider whose controller does not respond is reported as not managed (foreign.go).
//
// The two writers write different fields, so neither waits for the other. A pool that cannot be used reports the
// reason in its own conditions and does not affect other pools.
//
// The package must not depend on how claims are launched or planned.
package nodepool
