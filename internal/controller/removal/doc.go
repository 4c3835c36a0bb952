// Package removal decides whether a machine may be removed that no user and no plan asked to remove. There are two
// witnesses for a machine: the cloud, and the machine's node, whose kubelet renews a Lease in the namespace
// kube-node-lease. Either can be wrong: an API endpoint that drops a filter, credentials of another account, or a
// region that is not the cluster's answers "not found" for machines that run.
//
//	collector (missing machines, strays) --+                        +--> Remove
//	node repair (conditions) --------------+--> Brake.Ask --> Rule -+--> Keep  the node still reports
//	provider (health, stopped) ------------+                        +--> Hold  the brake
//
//	cloud     node      verdict
//	gone      silent    Remove, at once; it never counts
//	gone      reports   Keep; it counts as a dispute
//	failing   not ready Remove, at once; it never counts
//	failing   ready     Remove, at a pace while the brake holds because of such machines
//	running   any       Remove, unless the brake holds
//
// The brake holds when more machines of a NodePool, or of the fleet, than a fifth (and more than three) are in dispute or
// were to be removed within the last ten minutes. It releases when that is no longer so, or for NodePools with the
// annotation karpenter-go.github.io/removals-allowed-until. Machines that both witnesses call gone, voluntary disruption,
// expiry, interruption notices with a deadline of the cloud, and provisioning do not pass the brake. Without any NodePool
// there is no object to annotate: strays then go at a pace.
//
// Rule (rule.go) and Record (record.go) are functions over values. Brake (brake.go) gathers the facts, asks Rule, and
// writes (write.go) what a later process must know to the NodePools: the removals of the last ten minutes, and that the brake
// holds. Those times are of the API server's clock, so that processes whose clocks differ agree. Removals that the operator
// allows are neither limited nor recorded.
// A removal that cannot be written to its NodePool is held; other NodePools are not concerned. A restart therefore neither
// forgets removals nor releases the brake.
//
// The package must not know the engine: it decides about single machines, by facts that are not planned.
package removal
