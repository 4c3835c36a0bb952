// Package sim is a world with a virtual clock in which the production engine lives through random histories. It finds
// the orders of events that nobody thinks of: a crash between any two writes, a watch that lags and skips, a cloud that
// loses its answer after it sold the machine.
//
//	History{Seed, Disturbances} --> Run --> Result{Trace, Failure}        Shrink --> the shortest history that fails
//
//	owner, scheduler, kubelets --write--> api <--write-- process: one action at a time, dies between any two
//	                                       |                ^
//	                                       +--watch, late, with gaps--> view + own writes --> model.Snapshot
//	                                                                                            |
//	       cloud: a ledger of all it ever sold <-- launch --                placement, disruption, plan: the real ones
//
// Everything is decided by the seed: one goroutine, a heap of events, one source of random numbers per history. A
// failing history is a text (seed and disturbances) that runs again the same.
//
// The engine's functions are those of production; Options holds them so that tests can plant bugs and see that the
// properties (property.go, disrupted.go, settled.go) notice. What is around the engine is a model, simpler than the real thing:
//
//   - Objects have the fields that decisions read. The versions of one API are one counter; the watch of each kind
//     lags on its own, and may coalesce as a relist does. There is no admission, and priority preemption only in
//     histories from the seed Preempting on (preempt.go).
//   - The loops follow controller/loop: batch, snapshot, schedule, check, write; resume, propose, step, write; static pools.
//     A plan keeps the seats of the one before, which dies with the process. They share one lock, so a process writes one
//     plan action at a time. Claims and nodes are reconciled beside them from
//     the watch's objects, with optimistic locks, as controller/nodeclaim and controller/node do: launch, register,
//     initialise, liveness, drift, expiry, drain, terminate, finalise, collect garbage. Start-up taints do not exist.
//   - In worlds from the seeds Witnessed and Wide on, the collector of garbage, node repair and the brake on involuntary removals
//     are those of production (package removals, removing.go). In a fifth of these worlds the cloud answers wrongly (lies.go):
//     involuntary.go has the properties. Elsewhere garbage collection is a model, and node repair does not exist.
//   - Histories from the seed Related on have apps whose pods spread, want to be near others or apart from them, or have
//     disks that stay in the zone of their first pod (relation.go). kube-scheduler holds to that by rules written anew.
//   - Histories from the seed Wide on have more that goes wrong around the controller: wide.go. In a third of them a LimitRange
//     gives pods and daemons their requests, and changes: limits.go.
//   - Evictions are answered as the API does, by the status of PodDisruptionBudgets, which a controller brings up to date a
//     little late. Evicted pods are recreated at once under other names, and are ready a while after they were bound;
//     in some histories those who make them are starved now and then.
//   - Budgets have windows, which open and close by the clock; pools, budgets and protections change in between.
//   - kube-scheduler binds to a random node that fits, to the nominated one if it can, a little after it chose, so that
//     a taint may come too late. Pods nominated elsewhere reserve their room.
//   - A machine either joins after a while, late, or never; it may vanish. The cloud sells the cheapest offering it has
//     that the claim allows, and answers a repeated launch of one claim with the first machine.
//
// Nodes expire no more once a history is over: a world at rest has to be possible.
//
// What histories cannot show: a watch that lags by more than plan.CordonQuiet may hide a pod that was bound just before
// the taint. Its node goes, and the pod is drained like any other.
//
// The package must not know Kubernetes' clients or clocks. Package removals translates for the controllers that do.
package sim
