// Package removal limits removals of machines that neither a user nor a plan requested. The cloud and the machine's node
// both show whether a machine runs, and either can be wrong: an API endpoint that drops a filter, credentials of another
// account, or the wrong region return "not found" for running machines. Then every machine of a healthy fleet looks wrong
// at once.
//
//	the cloud   the node   what happens
//	gone        silent     removed; no limit
//	gone        reports    kept (package nodeclaim)
//	failing     silent     removed; no limit
//	failing     reports    removed within the limit
//	running     any        removed within the limit: node repair, a machine without claim, a claim without node
//
// The limit: at most a fifth of the machines of a NodePool, and of the fleet, at least three, are removed at once. What
// repeats waits: a pause (package pause) with the reason Removal, after which one machine is removed at a time. Machines that
// the cloud does not find though their nodes report, more than the limit, begin such a pause too.
//
//	collector (claims without node, strays) --+
//	node repair (conditions) -----------------+--> Limiter.Ask --> pauses on NodePools --> may it be removed now?
//	provider (health, stopped) ---------------+
//
// The Limiter decides on the NodePools as the API server has them, and writes a removal into their pauses before it allows
// it, with times of the API server's clock: a restart or another process loses nothing. A removal that cannot be written is
// not allowed. The annotation karpenter-go.github.io/removals-allowed-until of a NodePool lifts the limit.
//
// The limit does not apply to voluntary disruption, expiration, interruption notices with a deadline of the cloud, and
// provisioning.
//
// The package must not know plans: it decides about single machines.
package removal
