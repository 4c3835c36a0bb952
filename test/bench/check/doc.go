// Package check judges what `karpenter simulate -o json` answered to a workload, by the rules that kube-scheduler
// filters nodes with.
//
//	workload.World + Answer -> Of -> Report: problems by kind, warnings, price and cost
//
// Problems are: offerings that do not exist, are not on sale or not allowed by the pool; taints; node selectors and
// required node affinity; every resource; DoNotSchedule topology spread; required pod affinity and anti-affinity, both
// ways; pods that are placed twice or forgotten; limits of pools; prices; further instance types of a node that could
// not hold its pods. With a bind order, spread and affinity are judged at each pod's turn, with all new nodes there
// from the start. Without one only what every admissible order implies is judged (Report.EndStateOnly).
//
// Warnings are what is not wrong and yet worth a look: pods on a lighter pool than could have held them, pods called
// unschedulable that an offering holds alone, empty nodes, missing reasons, pods with rules that are not judged here.
//
// Not judged: preferences, daemons, volumes, host ports, resource claims, minValues, namespace selectors other than by
// name.
//
// It shares no code with the engine or with engine/audit, which judges plans inside the product: it reads the files a
// user could have written and the answer a user would see, so it also finds what goes wrong on the way in and out.
package check
