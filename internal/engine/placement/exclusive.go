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

// rival is a pod that needs exclusive claims.
type rival struct {
	task   *task
	pod    *model.Pod
	claims []string
	held   bool
}

// exclusive returns the claims that the task's pods use exclusively.
func (t *task) exclusive() []string {
	var claims []string
	for _, v := range t.group.Shared {
		if v.Exclusive {
			claims = append(claims, v.Claim)
		}
	}
	return claims
}

// holdBack keeps one pod for each claim, and none if a bound pod uses the claim.
func (r *run) holdBack() {
	for _, t := range r.tasks {
		if claims := t.exclusive(); claims != nil {
			for _, p := range t.left {
				r.rivals = append(r.rivals, &rival{task: t, pod: p, claims: claims, held: true})
			}
		}
	}
	if r.rivals == nil {
		return
	}
	promised := map[string]bool{}
	for _, n := range r.nodes {
		for _, uid := range n.node.Promised {
			promised[uid] = true
		}
	}
	unpromised := func(v *rival) int {
		if r.snap.EvictionBlocked[v.pod.UID] { // the pod uses the claim
			return -1
		}
		if v.pod.Nominated != "" || promised[v.pod.UID] {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(r.rivals, func(a, b *rival) int { return cmp.Compare(unpromised(a), unpromised(b)) })
	for _, v := range r.rivals {
		if v.held = r.holder(v) != ""; v.held {
			v.task.left = slices.DeleteFunc(slices.Clone(v.task.left), func(p *model.Pod) bool { return p == v.pod })
		}
	}
}

// holder describes the pod that has a claim the rival needs: a bound pod, or a rival that is placed or may be. It is
// empty when there is none.
func (r *run) holder(v *rival) string {
	for _, claim := range v.claims {
		for _, n := range r.snap.Nodes {
			if _, used := slices.BinarySearch(n.Claims, claim); used {
				return fmt.Sprintf("claim %q is ReadWriteOncePod and a pod of node %s has it", claim, n.Name)
			}
		}
		for _, other := range r.rivals {
			if other != v && !other.held && !other.failed() && slices.Contains(other.claims, claim) {
				return fmt.Sprintf("claim %q is ReadWriteOncePod and pod %s has it", claim, other.pod.Name)
			}
		}
	}
	return ""
}

// failed reports whether the rival was tried and is unschedulable.
func (v *rival) failed() bool { return v.task.tried && slices.Contains(v.task.left, v.pod) }

// askRivals tries the held-back pods whose claims remained unused. If identical pods are already unschedulable, so are
// these.
func (r *run) askRivals() {
	for _, v := range r.rivals {
		v.task.tried = true
	}
	for _, v := range r.rivals {
		if !v.held || r.holder(v) != "" {
			continue
		}
		v.held = false
		if len(v.task.left) > 0 {
			v.task.left = append(slices.Clip(v.task.left), v.pod)
			continue
		}
		v.task.left = []*model.Pod{v.pod}
		r.solveTogether([]*task{v.task})
	}
}

// refuseRivals refuses the pods that are still held back.
func (r *run) refuseRivals() {
	for _, v := range r.rivals {
		if v.held {
			r.result.Refused = append(r.result.Refused, plan.Refusal{Pods: []*model.Pod{v.pod}, Verdict: plan.Verdict{
				Code: plan.PodWaiting, Rejection: &model.Rejection{Field: "spec.volumes", Reason: r.holder(v)}}})
		}
	}
}
