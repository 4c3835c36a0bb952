// Package world runs the production controller in a cluster on a virtual clock, in one goroutine.
//
//	owners, kube-scheduler, kubelets --write--> api <--write-- caller <-- executor, reconcilers
//	                                             |                              ^
//	                                             +--watch--> view --> cluster.Store, queues, loops
//	        cloud: a ledger of machines <-- launch, terminate --               (controllers)
//
// What decides and writes is production code: the loops (controller/provision, disrupt, static) by their Tick, the
// reconcilers of claims, nodes and pools by Reconcile, garbage collection by Collect, the executor and the store. The
// package holds what is around them: an API server in memory (api.go, client.go, patch.go), what its watches have shown
// to a process (view.go), work queues (queue.go), a cloud (cloud.go), controllers of pods (owner.go), kube-scheduler and
// kubelets (kube.go, rules.go), PodDisruptionBudgets (budget.go), pods that do not exist yet (virtual.go), and what all of
// it costs (meter.go). In worlds with the feature lies the cloud gives wrong replies (lies.go), kubelets fall silent, and nodes are
// unhealthy (kubelet.go).
//
// A History is a random world: a seed, and a set of features (history.go); property.go has what must be true when nothing
// disturbs it any more, disruptions.go what must hold of each plan and removal, and removals.go that a healthy fleet
// survives a lying cloud. Processes end between any two writes, and watches lag.
//
//	h := world.NewHistory(7)     text: "seed: 7", "features: buffers crashes static ..."
//	trace, failure := h.Run(nil)
//
// Histories 1000 to 1999:
//
//	go test ./internal/testing/world -run 'TestHistories$' -timeout 0 -first-history 1000 -histories 1000
//
// The config determines everything: equal configs and calls have equal results. Nothing waits for real time, except for
// the first catalogs, which the store reads in goroutines of its own.
//
// The simulated Kubernetes must not know the engine's decisions: kube-scheduler's rules are written from the Kubernetes
// documentation. Admission, daemons and preemption do not exist.
package world
