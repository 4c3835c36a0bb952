package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// verifyBindOrder determines the order, and removes pods that cannot be bound.
func (s *scheduler) verifyBindOrder() {
	tries := map[*pendingGroup]int{}
	if len(s.counters.all) == 0 && len(s.counters.totals) == 0 {
		for range attempts {
			if !s.launcher.preferHeavier() || !s.solver.retryRefused(tries) {
				break
			}
		}
		s.orderByPlace()
		return
	}
	most := mostRounds
	if s.budget.mode == portioned {
		most = attempts
	}
	for round := 1; !s.budget.over(); round++ {
		order, unbindable := s.binds.find()
		if len(unbindable) == 0 {
			if round <= most && (s.solver.retryRefused(tries) || s.launcher.preferHeavier()) {
				continue
			}
			s.result.Order = order
			return
		}
		again := s.removeUnbindable(unbindable)
		s.solver.refused = slices.DeleteFunc(s.solver.refused, func(pg *pendingGroup) bool { return slices.Contains(again, pg) })
		for _, pg := range again {
			tries[pg]++
		}
		open, givenUp := partition(again, func(pg *pendingGroup) bool { return round <= most && tries[pg] <= attempts })
		s.solver.refused = append(s.solver.refused, givenUp...)
		s.solver.together(open)
	}
}

// orderByPlace lists the pods place by place, for plans without rules between pods.
func (s *scheduler) orderByPlace() {
	s.result.Order = make([]*model.Pod, 0, placedCount(s.nodes, s.fleet))
	list := func(p *place) {
		for _, placed := range p.placed {
			s.result.Order = append(s.result.Order, placed.pods...)
		}
	}
	for _, n := range s.nodes.list {
		list(&n.place)
	}
	for _, b := range s.fleet.bins {
		list(&b.place)
	}
}

// placedCount returns how many pods are placed.
func placedCount(nodes *existingNodes, f *fleet) int {
	count := 0
	for _, n := range nodes.list {
		count += n.pods()
	}
	for _, b := range f.bins {
		count += b.pods()
	}
	return count
}

// removeUnbindable removes pods from their places, and returns their groups.
func (s *scheduler) removeUnbindable(unbindable []*model.Pod) []*pendingGroup {
	gone := make(map[*model.Pod]bool, len(unbindable))
	for _, p := range unbindable {
		gone[p] = true
		delete(s.reserved.kept, p)
	}
	for _, n := range s.nodes.list {
		if n.remove(gone) {
			n.open(n.node)
			n.tally = s.counters.tallyOf(n.node, n.daemons)
			for _, p := range n.placed {
				s.nodes.fit.put(p.pending, &n.place, len(p.pods))
			}
			s.nodes.slack[n.at] = model.SlackOf(n.free)
		}
	}
	for _, b := range s.fleet.bins {
		if b.remove(gone) {
			s.leaveSpecial(b, gone)
			s.fleet.refill(b)
			if len(b.placed) > 0 {
				s.fleet.shrink(b)
			}
		}
	}
	s.fleet.bins = slices.DeleteFunc(s.fleet.bins, func(b *bin) bool {
		if len(b.placed) == 0 {
			s.fleet.giveBack(b)
		}
		return len(b.placed) == 0
	})
	var groups []*pendingGroup
	for _, pg := range s.queue.groups {
		lost := false
		for _, p := range pg.pods {
			if gone[p] {
				pg.left = append(slices.Clip(pg.left), p)
				lost = true
			}
		}
		if lost {
			pg.choices = choices{}
			groups = append(groups, pg)
		}
	}
	return groups
}

// leaveSpecial empties a bin of special types if no remaining pod needs them.
func (s *scheduler) leaveSpecial(b *bin, gone map[*model.Pod]bool) {
	ps := s.fleet.poolOf(b)
	if !ps.special.Has(b.kind) || slices.ContainsFunc(b.placed, func(p placedPods) bool {
		return requestsSpecial(s.snap, p.pending.group) || !s.fleet.plainWouldDo(ps, p.pending)
	}) {
		return
	}
	for _, p := range b.allPods() {
		gone[p] = true
	}
	b.remove(gone)
}
