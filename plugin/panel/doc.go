// Package panel says what is known of one node, pod or pool: what the panels of the page and `kubectl karpenter explain`
// have beyond the decisions of the engine.
//
//	model.Snapshot --> Obstacles  all that keeps a node, where a decision names the first
//	               --> Pods       the pods of a node with requests, labels, workload and priority
//	               --> Launches   which instance types a pool may launch, and the cheapest
//
// The package is pure: the same snapshot gives the same answer. It must not read a cluster, and must not know how an answer
// is shown: plugin/offline asks it, and gives the answers to the page and to explain.
package panel
