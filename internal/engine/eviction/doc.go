// Package eviction tells which pods a drain can move off their node, and when: now, later, or only at the end of the
// drain. The answers follow from the pods, their PodDisruptionBudgets and the do-not-disrupt annotation.
//
// The package must not know why a node is removed, or where its pods go. Its callers are the guard, which starts no
// drain that cannot finish, and package reserve, which plans capacity for the pods that will move.
package eviction
