// Package nodelabel supports manifests that use label names from before v1 (package api/names).
//
// Planning treats an old label as an alias of the current one, but kube-scheduler compares labels literally: a pod
// that selects karpenter.sh/provisioner-name is never bound unless its node has that label, and a pod that requires
// the absence of such a label (DoesNotExist) would be bound to any managed node. So managed nodes get the old labels
// that pods and DaemonSets of the cluster use, with the values of the current ones:
//
//	pods, DaemonSets --(event handler)--> keys in use --> all managed nodes are examined again
//	                                           |                 |
//	a node registers --(Complete)--------------+--> labels       +--> Reconciler --> labels
//
// Each process determines the keys in use from all pods. A key stays in use until the process ends, and a label stays
// on its node, because a pod may be created again. Existing labels are not changed. A cluster without old names only
// pays for the check of each pod that changes.
//
// An event on the pod reports an old name with its replacement, once an hour per owner of pods.
//
// The package must not depend on plans. It writes labels of nodes and nothing else.
package nodelabel
