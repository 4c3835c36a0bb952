// Package oldnames keeps manifests working that were written with names of before v1 (package legacy/names).
//
// Planning reads an old label as today's, but kube-scheduler compares labels as they are written: a pod that selects
// karpenter.sh/provisioner-name is never bound unless its node has that label, and a pod that wants no such label
// (DoesNotExist) would land on any node of ours. So our nodes carry the old labels that pods and DaemonSets of the cluster
// use, with the values of today's:
//
//	pods, DaemonSets --(event handler)--> keys in use --> all nodes of ours are looked at again
//	                                           |                 |
//	a node registers --(Complete)--------------+--> labels       +--> Reconciler --> labels
//
// Which keys are in use is found out anew by each process, from all pods. A key stays in use until the process ends, and a
// label stays on its node for ever: a pod may come back. Labels that are there already are left as they are, whoever wrote
// them. Clusters without old names pay for one look at each pod that changes.
//
// Who uses an old name is told so, once an hour for each owner of pods, by an event that has today's name.
//
// The package must not know of plans; it writes labels of nodes and nothing else.
package oldnames
