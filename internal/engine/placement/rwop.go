package placement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Claims that only one pod at a time may use (ReadWriteOncePod,
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-storage/2485-read-write-once-pod-pv-access-mode). Of
// the pending pods that share such a claim, one is tried: a pod with a reservation first, then in the order of the
// queue. The others are held back. If the pod is unschedulable, it cannot use the claim either, and the next one is
// tried, until none is left. Pods that are still held back at the end are refused, because they wait for another pod
// and not for a node.

// rwopWaiter is a pod that needs exclusive claims.
type rwopWaiter struct {
	pending *pendingGroup
	pod     *model.Pod
	claims  []string
	held    bool
}

// rwopClaims returns the claims that the group's pods use exclusively.
func (pg *pendingGroup) rwopClaims() []string {
	var claims []string
	for _, v := range pg.group.Shared {
		if v.Exclusive {
			claims = append(claims, v.Claim)
		}
	}
	return claims
}

// rwopPods are the pods that need exclusive claims.
type rwopPods struct {
	snap    *model.Snapshot
	nodes   *existingNodes
	waiters []*rwopWaiter
}

// hold keeps one pod for each claim, and none if a bound pod uses the claim.
func (w *rwopPods) hold(groups []*pendingGroup) {
	for _, pg := range groups {
		if claims := pg.rwopClaims(); claims != nil {
			for _, p := range pg.left {
				w.waiters = append(w.waiters, &rwopWaiter{pending: pg, pod: p, claims: claims, held: true})
			}
		}
	}
	if w.waiters == nil {
		return
	}
	reserved := map[string]bool{}
	for _, n := range w.nodes.list {
		for _, r := range n.node.Reservations {
			reserved[r.Pod.UID] = true
		}
	}
	rank := func(v *rwopWaiter) int {
		if w.snap.EvictionBlocked[v.pod.UID] { // the pod uses the claim
			return -1
		}
		if v.pod.Nominated != "" || reserved[v.pod.UID] {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(w.waiters, func(a, b *rwopWaiter) int { return cmp.Compare(rank(a), rank(b)) })
	for _, v := range w.waiters {
		if v.held = w.holder(v) != ""; v.held {
			v.pending.left = slices.DeleteFunc(slices.Clone(v.pending.left), func(p *model.Pod) bool { return p == v.pod })
		}
	}
}

// holder describes the pod that has a claim the waiter needs: a bound pod, or a waiter that is placed or may be. It is
// empty when there is none.
func (w *rwopPods) holder(v *rwopWaiter) string {
	for _, claim := range v.claims {
		for _, n := range w.snap.Nodes {
			if _, used := slices.BinarySearch(n.Claims, claim); used {
				return fmt.Sprintf("claim %q is ReadWriteOncePod and a pod of node %s has it", claim, n.Name)
			}
		}
		for _, other := range w.waiters {
			if other != v && !other.held && !other.failed() && slices.Contains(other.claims, claim) {
				return fmt.Sprintf("claim %q is ReadWriteOncePod and pod %s has it", claim, other.pod.Name)
			}
		}
	}
	return ""
}

// failed reports whether the waiter was tried and is unschedulable.
func (v *rwopWaiter) failed() bool {
	return v.pending.attempted && slices.Contains(v.pending.left, v.pod)
}

// refusals refuses the pods that are still held back.
func (w *rwopPods) refusals() []plan.Refusal {
	var list []plan.Refusal
	for _, v := range w.waiters {
		if v.held {
			list = append(list, plan.Refusal{Pods: []*model.Pod{v.pod}, Verdict: plan.Verdict{
				Code: plan.PodWaiting, Rejection: &model.Rejection{Field: "spec.volumes", Reason: w.holder(v)}}})
		}
	}
	return list
}
