// Package removals runs the controllers of production that remove machines which no user and no plan asked to remove, in a
// simulated world: the collector of garbage (controller/nodeclaim), node repair (controller/node) and the brake that both ask
// (controller/removal).
//
//	sim.process --Collect, Repair--> Controllers --> Collector, Repair --> Brake --> Rule
//	                                                     |         |          |
//	                              World <--- Kubernetes objects and answers of the cloud, in plain words
//
// The package translates and decides nothing: a World says in plain words what the API and the cloud have, and carries out
// what the controllers write. It must not know package sim.
package removals
