// Package disruption decides which nodes should leave, and why.
//
//	Snapshot --> Propose --> Proposal{Commands, Kept, Next}
//	                |
//	                +-- empty           no pods to move; one command each               (propose.go)
//	                +-- static drift    drifted and old nodes, fixed number of nodes      (static.go)
//	                +-- drifted         renewal, oldest drift first                     (drift.go)
//	                +-- expiring        renewal a little before expireAfter             (drift.go, renew.go)
//	                +-- underutilized   a cheaper fleet, m to n                         (search.go)
//	                     +-- spare.go      who finds no room when kube-scheduler has its way, and what that costs (rehearse.go, stage.go)
//	                     +-- apart.go      what pods demand of each other keeps steps apart
//	                     +-- balanced.go   the policy Balanced weighs a change, pool by pool
//	Snapshot, Node --> IfAlone --> what it would bring if the node left alone           (whatif.go)
//	Snapshot, Command --> Score, Shares --> what it is worth, told to people            (score.go)
//	Snapshot, Command --> Judge --> is the stored command still right?                  (judge.go)
//	Snapshot, Command --> After --> the snapshot when it is carried out                 (apply.go)
//	Snapshot --> Static --> how many nodes static pools lack or have too many           (static.go)
//
// A method looks at every node of ours and answers with a command or with a Verdict that says why the node stays;
// explain renders the verdicts, so that nobody has to guess. Methods are asked in a fixed order: what needs no
// thought, what must be, what saves. What one took from a pool's budgets, or from the room on nodes, is gone for the
// next.
//
// A what-if is placement.Schedule on the snapshot without some nodes. It starts from the world as it will be when
// everything under way is done (world.go), so that no two changes count on the same room. What it would buy while the
// leaving nodes are still there must be within the limits of the pools. The outcome falls apart into changes that have
// nothing to do with each other (change.go); each must pay by itself, whatever types the provider picks (trim.go), and
// is a command of its own. So commands may be carried out in any order, at the same time, or in part.
//
// Economics: a change pays when its saving, over the payback time of the pools, exceeds the price of moving the pods, and
// the pools' least saving. Costs are prices plus what a node costs beyond its price.
//
// Empty means: no pod that somebody would start again elsewhere. Daemons, mirror pods, finished pods and pods that are
// on their way out do not count; every other pod does, however low its priority or deletion cost. That is stricter
// than upstream, which deletes nodes whose pods are all "cheap" (priority of -33554432 or less) without asking where
// they would go.
//
// The decision is a pure function of the snapshot, the same for every order of the input.
//
// The package must not know how a command is carried out: plan.Step does.
package disruption
