// Package sandbox runs a real Kubernetes control plane on this machine: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and kwok's simulated kubelets. karpenter-sandbox, its demo and the tests use
// it.
//
//	karpenter-sandbox up ── starts ──> supervisor (one process) ── starts ──┬─ etcd
//	        |                              | holds supervisor.lock         ├─ kube-apiserver
//	        | reads                        | writes                        ├─ kube-controller-manager
//	        v                              v                               ├─ kube-scheduler
//	   DIR/status.json <───────────────────┘                               └─ kwok
//
// A data directory DIR is a sandbox. It holds the certificates (pki), the ports (ports.json), etcd's data, the logs
// (logs/<component>.log), the administrator's kubeconfig and the status. Two directories are two independent
// sandboxes. Everything listens on the loopback address only, and every connection is authenticated: certificates are
// issued by a CA of the sandbox's own, and RBAC is on.
//
// One supervisor per sandbox owns its processes. When a component dies, the supervisor stops the others and records
// the reason. When the supervisor itself is killed, Linux kills its children (the parent-death signal), so that no
// process is left behind. The process that holds the lock on supervisor.lock is the supervisor; a lock cannot be
// stale. The supervisor is either this process (Start) or a detached one (Up).
//
// Assets provides the executables: a folder that the user names, a build of the module sandbox/kubernetes, kept in a
// cache, or kubernetes-components on the PATH.
//
// The sandbox is not durable: etcd does not sync to disk, so a machine that loses power may lose the data. On systems
// other than Linux, the components of a supervisor killed with SIGKILL keep running.
//
// Four consumers (the command karpenter-sandbox, its demo, e2e and API tests) need the same control plane. The first
// two are in the module sandbox/; the API tests of the product's module cannot import that, so the package is here. No
// command of the product's module imports it. It must not depend on Karpenter's API, controllers or clouds.
package sandbox
