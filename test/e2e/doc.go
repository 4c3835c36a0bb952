// Package e2e tests the real binary on a real control plane: etcd, kube-apiserver,
// kube-scheduler, kube-controller-manager and kwok's kubelets (the sandbox), and
// `karpenter controller` as a process of its own. What these tests see is what a
// user sees: objects, conditions, events, exit codes.
//
//	TestMain ── builds bin/karpenter, starts one sandbox and one controller
//	   |
//	   ├── most cases: a namespace and pools of their own on the shared cluster,
//	   |   in parallel; their nodes carry the label e2e.example.org/case, which their
//	   |   pods select. A case cleans up, and then no claim and no machine is left.
//	   └── cases that kill the controller or need other timers: a cluster of their own
//
// Objects that a user would write are YAML, in testdata. Nothing sleeps: await polls
// a condition with a deadline, and a ledger notes what the watches show, so that what
// came and went in between is not missed.
//
// How much runs is told by KARPENTER_E2E: unset is the core set of `make test`, "all"
// is for `make e2e`, "nightly" repeats what depends on luck.
//
// The package has tests only. It must not reach into the controller: the API, the
// metrics and the log are all it may see.
package e2e
