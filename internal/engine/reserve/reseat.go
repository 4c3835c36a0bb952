package reserve

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Reseated returns the snapshot with the reservations of an earlier plan for pods that are still pending: its nodes
// list them, as claims list the pods that they were launched for. Otherwise a repeated plan knows the nodes of pods
// that are nominated or had a claim launched for them, and must place all others anew: those on nodes that are not open
// yet, and those that are not nominated yet. It may find them unschedulable, and launch nodes. The snapshot also has
// the names of claims that did not get their first one: that name may be free by now, and the claim under the other
// name may exist although the reply to its creation was lost. snap is unchanged; last may be nil, as after a restart.
func Reseated(snap *model.Snapshot, last *plan.Provision) *model.Snapshot {
	if last == nil || len(snap.Groups) == 0 {
		return snap
	}
	pending, seats, planned := snap.PendingPods(), map[string][]string{}, map[string]string{}
	give := func(name string, pods []*model.Pod) {
		node := snap.NodeOrClaim(name)
		if node == nil {
			return
		}
		known := make(map[string]bool, len(node.Promised))
		for _, uid := range node.Promised {
			known[uid] = true
		}
		for _, pod := range pods {
			if pending[pod.UID] == nil {
				continue
			}
			planned[pod.UID] = node.Name
			if !known[pod.UID] {
				seats[node.Name] = append(seats[node.Name], pod.UID)
			}
		}
	}
	for _, claim := range last.Claims {
		give(claim.Name, claim.Pods)
	}
	for _, placed := range last.Placed {
		give(placed.Node, placed.Pods)
	}
	for name, uids := range seats {
		seats[name] = slices.Concat(snap.Node(name).Promised, uids)
	}
	return snap.Promising(seats).InTurns(turns(pending, last), planned).Renaming(last.Renamed)
}

// turns returns the position in the earlier plan's order of those of its pods that are still pending.
func turns(pending map[string]*model.Pod, last *plan.Provision) map[string]int {
	turns := make(map[string]int, len(pending))
	for i, pod := range last.Order {
		if pending[pod.UID] != nil {
			turns[pod.UID] = i
		}
	}
	return turns
}
