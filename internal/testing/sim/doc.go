// Package sim runs the production engine in a simulated world with a virtual clock, through random histories. It
// finds rare orders of events: a crash between any two writes, a watch that lags and skips, a cloud whose reply is
// lost after it launched the machine.
//
//	History{Seed, Disturbances} --> Run --> Result{Trace, Failure}        Shrink --> the shortest history that fails
//
//	owner, scheduler, kubelets --write--> api <--write-- process: one action at a time, dies between any two
//	                                       |                ^
//	                                       +--watch, late, with gaps--> view + own writes --> model.Snapshot
//	                                                                                            |
//	       cloud: a ledger of all machines <-- launch --                placement, disruption, plan: production code
//
// The seed determines everything: one goroutine, a heap of events, one source of random numbers per history. A
// failing history is a text (seed and disturbances) that reproduces the failure.
//
// Plans are repeated with changes that do not matter, which must not make them dearer (neutral.go).
//
// The engine's functions are those of production; Options holds them so that tests can plant bugs and check that the
// properties (property.go, disrupted.go, settled.go) detect them. The environment of the engine is a model, simpler
// than the real one:
//
//   - Objects have the fields that decisions read. The versions of one API are one counter; the watch of each kind
//     lags independently, and may coalesce as a relist does. There is no admission, and priority preemption only in
//     histories from the seed Preempting on (preempt.go).
//   - The loops follow controller/provision, disrupt and static: batch, snapshot, schedule, check, write; resume,
//     propose, step, write; static pools. A plan keeps the assignments of the previous one, which is lost with the process.
//     The loops share one lock, so a process writes one plan action at a time. Claims and nodes are reconciled
//     concurrently from the watch's objects, with optimistic locks, as in controller/nodeclaim and controller/node:
//     launch, register, initialize, liveness, drift, expiry, drain, terminate, finalize, collect garbage. Startup
//     taints do not exist.
//   - Garbage collection is a model, and node repair does not exist. Package world runs those of production, with a cloud
//     that gives wrong replies.
//   - Histories from the seed Related on have apps with topology spread, affinity or anti-affinity, or with disks
//     that stay in the zone of their first pod (relation.go). The simulated kube-scheduler follows these rules in an
//     independent implementation.
//   - Histories from the seed Wide on have more failures around the controller: wide.go. In a third of them a
//     LimitRange sets the requests of pods and daemons, and changes: limits.go.
//   - In some worlds nodes and objects turn out to be other than a plan assumes: labels and taints that daemons set,
//     DaemonSets that are created later, templates that change to and fro, nodes that are smaller than their type,
//     buffers (late.go). What is tried there in vain must end: vain.go.
//   - Evictions are answered like in the API, by the status of PodDisruptionBudgets, which a controller updates with
//     a small delay. Evicted pods are recreated at once under other names, and become ready a while after they are
//     bound; in some histories the controllers that recreate them are starved at times.
//   - Budgets have windows, which open and close by the clock; pools, budgets and protections change in between.
//   - kube-scheduler binds to a random node that fits, to the nominated one if possible, with a small delay after its
//     decision, so that a taint may be too late. Pods nominated elsewhere reserve their room.
//     The taint of a node that is not ready or unreachable changes with the condition, without delay. Pods are evicted
//     only from nodes whose machine or kubelet is gone.
//   - A machine joins after a while, late, or never; it may vanish. The cloud launches the cheapest available
//     offering that the claim allows, and replies to a repeated launch of one claim with the first machine.
//
// Nodes no longer expire once a history is over: otherwise the world could not come to rest.
//
// Limits of the simulation: a watch that lags by more than guard.CordonQuiet may hide a pod that was bound just before
// the taint. Its node is removed, and the pod is drained like any other.
//
// The package must not know Kubernetes' clients or clocks.
package sim
