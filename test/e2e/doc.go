// Package e2e tests the real binary on a real control plane: etcd, kube-apiserver, kube-scheduler,
// kube-controller-manager and kwok's kubelets (the sandbox), and `karpenter controller` as a process of its own.
// These tests observe the same as a user: objects, conditions, events, exit codes.
//
//	TestMain ── builds bin/karpenter, starts one sandbox and one controller
//	   |
//	   ├── most cases: a namespace and pools of their own on the shared cluster,
//	   |   in parallel; their nodes carry the label e2e.example.org/case, which their
//	   |   pods select. A case cleans up, and then no claim and no machine is left.
//	   └── cases that kill the controller or need other timers: a cluster of their own
//
// Objects that a user would write are YAML, in testdata. Nothing sleeps: await polls a condition with a deadline, and
// a ledger records what the watches show, so that short-lived objects are not missed.
//
// KARPENTER_E2E selects the tests: unset is the core set of `make test`, "all" is for `make e2e`, "nightly" repeats
// tests that depend on chance.
//
// The package contains only tests. It must not access the controller's internals: it uses only the API, the metrics
// and the log.
package e2e
