package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// An order in which the pods of the plan can be bound, each admissible at its turn. It is the order in which they were
// assigned to domains, because there the rules by domain were asked; a pod that is not admissible at its turn waits, as
// kube-scheduler would make it wait. On one node a pod also waits for those that were put there before it and that its
// own coming would keep out.

// seat is where a pod of the plan is to be bound.
type seat struct {
	*boarding
	share int
}

// boarding is a place that pods of the plan are bound to, one by one.
type boarding struct {
	shares []share
	// left of each share.
	left  []int
	tally tally
	row   label.Row
}

// listOrder writes the order down.
func (r *run) listOrder() {
	if len(r.counters.byKey) == 0 && len(r.counters.totals) == 0 {
		r.everyPlace(func(p *place, _ label.Row) { r.result.Order = append(r.result.Order, p.everybody()...) })
		return
	}
	seats := r.seats()
	waiting := r.inOrderOfAssignment(seats)
	for len(waiting) > 0 {
		var later []*model.Pod
		for _, p := range waiting {
			if s := seats[p]; s.admits(r) {
				s.count(r, s.share, 1)
				s.left[s.share]--
				r.result.Order = append(r.result.Order, p)
			} else {
				later = append(later, p)
			}
		}
		if len(later) == len(waiting) {
			// What is left waits for itself in a circle; it goes last, in any order.
			r.result.Order = append(r.result.Order, later...)
			return
		}
		waiting = later
	}
}

// everyPlace visits the places that get pods: nodes, then bins.
func (r *run) everyPlace(visit func(*place, label.Row)) {
	for _, n := range r.nodes {
		if len(n.shares) > 0 {
			visit(&n.place, n.node.Row)
		}
	}
	for _, b := range r.bins {
		visit(&b.place, b.row)
	}
}

// seats lists where every pod goes, and takes all of them out of the counts: nobody is bound yet.
func (r *run) seats() map[*model.Pod]seat {
	seats := map[*model.Pod]seat{}
	r.everyPlace(func(p *place, row label.Row) {
		b := &boarding{shares: p.shares, tally: slices.Clone(p.tally), row: row}
		for i, s := range p.shares {
			b.left = append(b.left, len(s.pods))
			b.count(r, i, -len(s.pods))
			for _, pod := range s.pods {
				seats[pod] = seat{b, i}
			}
		}
	})
	return seats
}

// inOrderOfAssignment lists the pods that have a seat, each by its last assignment: earlier ones were taken back.
func (r *run) inOrderOfAssignment(seats map[*model.Pod]seat) []*model.Pod {
	seen := make(map[*model.Pod]bool, len(seats))
	list := make([]*model.Pod, 0, len(seats))
	for i := len(r.order) - 1; i >= 0; i-- {
		p := r.order[i]
		if _, placed := seats[p]; placed && !seen[p] {
			seen[p] = true
			list = append(list, p)
		}
	}
	slices.Reverse(list)
	return list
}

func (b *boarding) count(r *run, i, n int) {
	rules := b.shares[i].task.rules
	for _, c := range rules.touched {
		if atom := domainOf(r.snap.Space, b.row, c.key); atom >= 0 {
			c.counts[atom] += n
			c.total += n
		}
	}
	for _, slot := range rules.hostTouched {
		b.tally = b.tally.add(slot, n)
		r.counters.totals[slot] += n
	}
}

func (s seat) admits(r *run) bool {
	t := s.shares[s.share].task
	for i := range s.share {
		if s.left[i] > 0 && s.shares[i].task.rules.minds(t.rules) {
			return false
		}
	}
	if len(t.rules.hostSpreads)+len(t.rules.hostApart)+len(t.rules.hostAffinities) > 0 {
		if limit, _ := t.rules.onHost(s.tally, r.firstOfItsKind(t)); limit == 0 {
			return false
		}
	}
	if len(t.rules.spreads)+len(t.rules.apart)+len(t.rules.affinities) == 0 {
		return true
	}
	return r.admits(t, r.domainOfRow(t, s.row)).OK()
}

// minds reports whether a pod with the other rules may keep one with these off its host.
func (rs *rules) minds(other *rules) bool {
	for _, slot := range other.hostTouched {
		if slices.Contains(rs.hostApart, slot) || slices.ContainsFunc(rs.hostSpreads, func(h hostSpread) bool { return h.slot == slot && !h.self }) {
			return true
		}
	}
	return false
}

// everybody lists the pods of a place.
func (p *place) everybody() []*model.Pod {
	var pods []*model.Pod
	for _, s := range p.shares {
		pods = append(pods, s.pods...)
	}
	return pods
}
