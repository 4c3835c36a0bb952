package audit

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Order returns an order of binding for a plan that has none. It binds every pod that is admissible and checks the
// others again, as kube-scheduler does with unschedulable pods. Pods that never become admissible are last, so that
// the audit reports them.
func Order(snap *model.Snapshot, p *plan.Provision) []*model.Pod {
	whole := *p
	whole.Order = nil
	for _, placed := range p.Placed {
		whole.Order = append(whole.Order, placed.Pods...)
	}
	for i := range p.Claims {
		whole.Order = append(whole.Order, p.Claims[i].Pods...)
	}
	j := &judge{snap: snap, words: vocabularyOf(snap, &whole), remembered: map[*plan.NewClaim][]outcome{}, fits: map[string]bool{}}
	r, spotOf := j.initialState(&whole, nil)
	var order []*model.Pod
	waiting := whole.Order
	for len(waiting) > 0 {
		var late []*model.Pod
		for _, pod := range waiting {
			s := spotOf[pod.UID]
			if s == nil || !j.admissible(r, pod, s) {
				late = append(late, pod)
				continue
			}
			r.bind(pod, s, true)
			order = append(order, pod)
		}
		if len(late) == len(waiting) {
			break
		}
		waiting = late
	}
	for _, pod := range whole.Order {
		if !slices.Contains(order, pod) {
			order = append(order, pod)
		}
	}
	return order
}

// admissible reports whether one pod can be bound. It records no problem, and releases the host ports of a pod that
// cannot be bound.
func (j *judge) admissible(r *bindState, pod *model.Pod, s *spot) bool {
	before := s.ports
	j.turn(r, pod, s)
	if len(j.problems) == 0 {
		return true
	}
	j.problems, s.ports = nil, before
	return false
}
