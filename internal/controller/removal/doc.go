// Package removal decides whether a machine may be removed that neither a user nor a plan requested to remove. There
// are two witnesses for a machine: the cloud, and the machine's node, whose kubelet renews a Lease in the namespace
// kube-node-lease. A node reports whether it is ready or not. Either can be wrong: an API endpoint that drops a filter,
// credentials of another account, or the wrong region return "not found" for running machines.
//
//	collector (missing machines and nodes, strays) --+                        +--> Remove
//	node repair (conditions) ------------------------+--> Brake.Ask --> Rule -+--> Keep  the node still reports
//	provider (health, stopped) ----------------------+                        +--> Hold  the Brake holds
//
//	cloud     node      verdict
//	gone      silent    Remove, at once; never counts
//	gone      reports   Keep; counts as a dispute
//	failing   silent    Remove, at once; never counts
//	failing   reports   Remove, rate-limited while the Brake holds because of such machines
//	running   any       Remove, unless the Brake holds
//
// The Brake holds when more than a fifth (and more than three) of the machines of a NodePool, or of all NodePools,
// are in dispute or were to be removed within the last ten minutes. It releases when that is no longer the case, or
// for NodePools with the annotation karpenter-go.github.io/removals-allowed-until. It does not apply to machines that
// both witnesses report as lost, voluntary disruption, expiration, interruption notices with a deadline of the cloud,
// and provisioning. Without any NodePool there is no object to annotate: removals of strays are then rate-limited.
//
// Rule (rule.go) and Record (record.go) are functions over values. Brake (brake.go) gathers the facts, evaluates
// Rule, and writes (write.go) the state for later processes to the NodePools: the removals of the last ten minutes,
// and that the Brake holds. Those times are of the API server's clock, so that processes with different clocks agree.
// Removals that the operator allows are neither limited nor recorded. A removal that cannot be written to its
// NodePool is held. Other NodePools are not affected. So a restart neither loses removals nor releases the Brake.
//
// The package must not depend on the engine: it decides about single machines, based on facts that are not planned.
package removal
