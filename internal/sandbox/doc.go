// Package sandbox runs a real Kubernetes control plane on this machine: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler and kwok's simulated
// kubelets, for the demo, the tests and whoever wants to look around.
//
//	karpenter sandbox up ── starts ──> supervisor (one process) ── starts ──┬─ etcd
//	        |                              | holds supervisor.lock         ├─ kube-apiserver
//	        | reads                        | writes                        ├─ kube-controller-manager
//	        v                              v                               ├─ kube-scheduler
//	   DIR/status.json <───────────────────┘                               └─ kwok
//
// A data directory DIR is a sandbox: it holds its certificates (pki), ports
// (ports.json), etcd's data, logs (logs/<component>.log), the administrator's
// kubeconfig and the status. Two directories are two sandboxes that know nothing
// of each other. Everything listens on the loopback address only, and every
// connection is authenticated: certificates come from a CA of the sandbox's own,
// and RBAC is on.
//
// One supervisor per sandbox owns its processes. When one of them dies it stops
// the others and records why; when the supervisor itself is killed, Linux kills
// its children (the parent-death signal), so that nothing is left behind. Who
// holds the lock on supervisor.lock is the supervisor: a lock cannot be stale.
// The supervisor is either this process (Start) or a detached one (Up).
//
// The executables come from Assets: a folder the user names, or a build of the
// module in sandbox/, kept in a cache, or karpenter-sandbox on the PATH.
//
// It is a sandbox and no more: etcd does not sync to disk, so that a machine that
// loses power may lose the data. On systems other than Linux a supervisor killed
// with SIGKILL leaves its components running.
//
// This package is not in the design's tree. It exists because four consumers
// (demo, the sandbox verb, e2e and API tests) need the same control plane. It
// must not know karpenter's API, controllers or clouds.
package sandbox
