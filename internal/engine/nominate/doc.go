// Package nominate selects the pods of a plan that are nominated to their nodes (status.nominatedNodeName).
// kube-scheduler counts a nominated pod as if it ran on the node, so a nomination reserves capacity, and may exclude
// other pods.
//
//	Nominations(snap, plan)      --> the writes that make the nominations agree with the plan
//	Targets.Nominate(snap, ...)  --> the writes for one node that is about to become schedulable
//
// The package must not know how the plan was made, or what else holds capacity for a pod (reserve).
package nominate
