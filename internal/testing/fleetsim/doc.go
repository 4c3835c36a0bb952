// Package fleetsim carries out the decisions of the production engine on a virtual clock, to measure their effect: cost,
// moved and pending pods.
//
//	Create, Delete, Scale, Interrupt --> Cluster --Advance--> Tally, Meter
//	                                        |  ^
//	              placement, disruption <---+  +--- guard.Step and Judge, kube-scheduler (kube.go), machines, drains
//
// Commands are processed by guard.Step and Judge as in production. Pods are evicted from all draining nodes at once,
// their successors have other names and are placed by a simulated kube-scheduler at once, and provisioning launches nodes
// for pods without room. Writes take effect at once, and nothing fails: package sim looks for faults in such orders, on
// small worlds. Here fleets are large and times long.
//
// The package must not know Kubernetes' types.
package fleetsim
