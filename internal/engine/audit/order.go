package audit

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Order finds an order of binding for a plan that came without one: whoever is admissible is bound, and the others are
// asked again, as kube-scheduler does with pods that it has to put off. Who is never admissible comes last, so that the
// judge names it.
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
	r, seats := j.furnish(&whole, nil)
	var order []*model.Pod
	waiting := whole.Order
	for len(waiting) > 0 {
		var late []*model.Pod
		for _, pod := range waiting {
			s := seats[pod.UID]
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

// admissible asks about one pod without blaming anybody; the ports of one that is not are free again.
func (j *judge) admissible(r *room, pod *model.Pod, s *spot) bool {
	before := s.ports
	j.turn(r, pod, s)
	if len(j.problems) == 0 {
		return true
	}
	j.problems, s.ports = nil, before
	return false
}
