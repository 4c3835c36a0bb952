package placement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Claims that only one pod at a time may use (ReadWriteOncePod, KEP-2485). Of the pending pods that share one, one is
// asked about: who was promised a place, then in the order of the queue. The others are held back. When it has no place
// it cannot have the claim either, and the next is asked about, as long as there are any. What is held back in the end
// is refused, because it waits for another pod and not for a node.

// rival is a pod that wants claims for itself.
type rival struct {
	task   *task
	pod    *model.Pod
	claims []string
	held   bool
}

// exclusive are the claims that the task's pods want for themselves.
func (t *task) exclusive() []string {
	var claims []string
	for _, v := range t.group.Shared {
		if v.Exclusive {
			claims = append(claims, v.Claim)
		}
	}
	return claims
}

// holdBack leaves one pod for each claim, and none where a bound pod has it.
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
		if r.snap.EvictionBlocked[v.pod.UID] { // the pod has the claim
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

// holder says who has a claim that the rival wants: a bound pod, or a rival that may get a place or has one. It is empty
// when nobody has.
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

// failed reports whether the rival was asked about and has no place.
func (v *rival) failed() bool { return v.task.tried && slices.Contains(v.task.left, v.pod) }

// askRivals asks about those held back whose claims nobody took after all. Pods like one that has no place have none
// either.
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

// refuseRivals lists those that are still held back.
func (r *run) refuseRivals() {
	for _, v := range r.rivals {
		if v.held {
			r.result.Refused = append(r.result.Refused, plan.Refusal{Pods: []*model.Pod{v.pod}, Verdict: plan.Verdict{
				Code: plan.PodWaiting, Rejection: &model.Rejection{Field: "spec.volumes", Reason: r.holder(v)}}})
		}
	}
}
