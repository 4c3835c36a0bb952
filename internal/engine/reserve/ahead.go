package reserve

import (
	"github.com/karpenter-go/karpenter/internal/engine/eviction"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Ahead returns the snapshot that provisioning plans on, with its reservations. last is the last plan, nil if there is
// none. Pods on nodes that are being removed are pending in it, so
// that capacity is launched before it is needed, and those nodes accept no pods.
//
// A pod appears in three forms, and has the same reservation in each, so that no node is launched twice:
//
//	it runs on a node being removed     a claim is created, or capacity found; it records the pod and its controller
//	it is planned again                 the claim in flight has a reservation for it
//	it is gone, a successor exists      a pod of the same controller without a reservation takes this one
//
// Some pods cannot be evicted in the current state: do-not-disrupt protects them, a PodDisruptionBudget never allows
// the eviction or requires as many healthy pods as there are, or more than one budget selects them. They would leave a
// new node empty, and are not planned for unless the drain ends soon (see eviction.DrainEndsSoon). A
// PodDisruptionBudget that allows no eviction at the moment is different: the drain waits for it, and the pod needs
// capacity elsewhere when the budget opens. Such a pod, and a critical pod that the drain does not reach yet, is
// EvictionBlocked: a plan with no other node for it counts it where it runs. The PodDisruptionBudget may open only when
// pending pods of the same app are healthy, and placing those requires a plan that agrees with kube-scheduler about
// where the pods are.
func Ahead(snap *model.Snapshot, last *plan.Provision) *model.Snapshot {
	read := plan.CommandReader{}
	ahead := vacated(snap, read)
	return ahead.WithReservations(Derive(ahead, Sources{Commands: snap, Leaving: read.Leaving, Last: last}))
}

// Pending returns the pods that a plan places, by UID: those that are pending, and those of nodes being removed (see
// Ahead).
func Pending(snap *model.Snapshot) map[string]*model.Pod {
	return vacated(snap, plan.CommandReader{}).PendingPods()
}

// vacated returns the snapshot in which the pods of nodes being removed are pending, and these nodes are closed.
func vacated(snap *model.Snapshot, read plan.CommandReader) *model.Snapshot {
	pdbs, blocked := len(snap.PDBs) > 0, map[string]bool{}
	ahead := snap.Vacated(read.Leaving, func(n *model.Node, p *model.Pod) bool {
		switch {
		case eviction.DrainEndsSoon(snap, n):
			return true
		case p.ProtectedUntil.After(snap.Now), pdbs && (eviction.Blocked(snap, p) || eviction.BudgetFull(snap, p)):
			return false
		case eviction.Allowed(snap, p).OK() && !eviction.Deferred(snap, n, p):
			return true
		case p.Rejected != nil: // no plan can place it
			return false
		}
		blocked[p.UID] = true
		return true
	})
	return ahead.BlockingEviction(blocked)
}
