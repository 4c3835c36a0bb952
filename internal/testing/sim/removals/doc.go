// Package removals runs the production controllers that remove machines without a request of a user or a plan, in a
// simulated world: the garbage collector (controller/nodeclaim), node repair (controller/node) and the limiter that
// both ask (controller/removal).
//
//	sim.process --Collect, Repair--> Controllers --> Collector, Repair --> Limiter
//	                                                     |         |          |
//	                              World <--- Kubernetes objects and replies of the cloud, as plain data
//
// The package translates and makes no decisions: a World returns the state of the API and of the cloud as plain data,
// and performs the writes of the controllers. The package must not know package sim.
package removals
