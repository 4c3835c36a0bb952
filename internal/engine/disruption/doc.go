// Package disruption decides which nodes to remove, and why.
//
//	Snapshot --> Propose --> Proposal{Commands, Kept, Next}
//	                |
//	                +-- empty           no pods to move; one command each               (propose.go)
//	                +-- static drift    drifted and old nodes, fixed number of nodes    (static.go)
//	                +-- drifted         renewal, oldest drift first                     (drift.go)
//	                +-- expiring        renewal a little before expireAfter             (drift.go, renew.go)
//	                +-- underutilized   a cheaper fleet, m to n                         (search.go)
//	                     +-- steps.go      first steps towards it, within budgets
//	                     +-- apart.go      separates commands by the rules between pods
//	                     +-- balanced.go   the policy Balanced evaluates a change, pool by pool
//	Snapshot, Node --> IfAlone --> the effect of removing only this node                (whatif.go)
//	Snapshot, Command --> Score, Shares --> the worth of a command, for reports         (score.go)
//	Snapshot, Command --> Judge --> is the stored command still correct?                (judge.go)
//	Snapshot, Command --> After --> the snapshot after the command is carried out       (apply.go)
//	Snapshot --> Static --> missing and surplus nodes of static pools                   (static.go)
//	Creations.Admit --> Standing without the missing nodes whose creation is paused         (creations.go)
//
// Each method examines every managed node and returns either a command or a Verdict that states why the node is kept.
// Package explain renders the verdicts. The methods run in a fixed order: first what needs no search, then what is
// required, then what saves cost. Budgets and room that one method uses are not available to the next.
//
// A what-if is placement.Schedule on the snapshot without some nodes. It starts from the projected state after all
// commands in progress are carried out (projection.go), so that no two changes use the same room. The nodes that it would
// launch while the removed nodes still exist must be within the limits of the pools. The outcome is split into
// independent changes (change.go). Each change must pay by itself, whatever types the provider selects (trim.go), and
// becomes a command of its own. So commands may be carried out in any order, concurrently, or in part.
//
// Economics: a change pays if its saving, over the payback time of the pools, exceeds the price of moving the pods,
// and exceeds the minimum saving of the pools. Costs are prices plus the price per node.
//
// A node is empty if no pod on it would be recreated elsewhere. Daemons, mirror pods, finished pods and terminating
// pods do not count; every other pod does, however low its priority or deletion cost. Upstream Karpenter is less
// strict: it deletes nodes if all their pods have a priority of -33554432 or less, without checking where the pods
// can run.
//
// The decision is a pure function of the snapshot, independent of the order of the input.
//
// The package must not know how a command is carried out: guard.Step does.
package disruption
