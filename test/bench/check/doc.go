// Package check judges the answer of `kubectl karpenter simulate -o json` to a workload, by the rules of kube-scheduler's
// filters.
//
//	workload.World + Answer -> Of -> Report: problems by kind, warnings, price and cost
//
// Problems are: offerings that do not exist, are unavailable or not allowed by the pool; taints; node selectors and
// required node affinity; every resource; DoNotSchedule topology spread; required pod affinity and anti-affinity,
// both ways; pods that are placed twice or missing; limits of pools; prices; further instance types of a node that
// could not hold its pods. With a bind order, spread and affinity are judged at each pod's turn, with all new nodes
// present from the start. Without one only the rules that every admissible order implies are judged
// (Report.EndStateOnly).
//
// Warnings are valid but suspicious results: pods on a pool with a lower weight than one that could have held them,
// pods reported as unschedulable that an offering holds alone, empty nodes, missing reasons, pods with rules that are
// not judged here.
//
// Not judged are preferences, DaemonSets, volumes, host ports, resource claims, minValues, and namespace selectors
// other than by name.
//
// The package shares no code with the engine or with testing/audit, which judges plans inside the product. It reads
// the files that a user could have written and the answer that a user would see, so it also finds errors of input and
// output.
package check
