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
//
// Domains are assigned before nodes are found, so that a pod that found no node after all, or a node that came to be in
// a domain nobody thought of, may have changed the counts on which others were admitted. Who is not admissible at any
// turn gives its seat back and looks for another, with everybody else in place; who still has none in the end is
// refused.

// attempts is how often pods that cannot be bound look for another seat.
const attempts = 4

// seat is where a pod of the plan is to be bound.
type seat struct {
	*boarding
	share int
}

// boarding is a place that pods of the plan are bound to, one by one.
type boarding struct {
	shares []share
	// left of each share.
	left   []int
	tally  tally
	row    label.Row
	taints []model.Taint
}

// settle finds the order, and takes back what cannot be bound.
func (r *run) settle() {
	if len(r.counters.all) == 0 && len(r.counters.totals) == 0 {
		r.everyPlace(func(p *place, _ label.Row, _ []model.Taint) {
			r.result.Order = append(r.result.Order, p.everybody()...)
		})
		return
	}
	for attempt := 1; !r.over(); attempt++ {
		order, late := r.board()
		if len(late) == 0 {
			if attempt <= attempts && r.retryRefused() {
				continue
			}
			r.result.Order = order
			return
		}
		again := r.unseat(late)
		r.refused = slices.DeleteFunc(r.refused, func(t *task) bool { return slices.Contains(again, t) })
		if attempt > attempts {
			r.refused = append(r.refused, again...)
			continue
		}
		r.solveTogether(again)
	}
}

// retryRefused asks again for those that rules between pods kept out, now that everybody else has a place, and reports
// whether any found one.
func (r *run) retryRefused() bool {
	before := countTasks(r.refused)
	again, rest := r.retry(r.refused)
	if len(again) == 0 {
		return false
	}
	r.refused, r.givenBack = rest, false
	r.solveTogether(again)
	return countTasks(r.refused) < before
}

// kindred is 0 for a pod that its own affinity is about, 1 for others.
func (s seat) kindred() int {
	rules := s.shares[s.share].task.rules
	if slices.ContainsFunc(rules.affinities, func(a affinityRule) bool { return a.self }) ||
		slices.ContainsFunc(rules.hostAffinities, func(a hostAffinity) bool { return a.self }) {
		return 0
	}
	return 1
}

// hardOnly puts only what must hold in force for the tasks of the seats, and returns how to undo that.
func (r *run) hardOnly(seats map[*model.Pod]seat) (undo func()) {
	r.boarding = true
	before := map[*task]int{}
	for _, s := range seats {
		t := s.shares[s.share].task
		if _, seen := before[t]; !seen {
			before[t] = t.at
			t.force(len(t.levels) - 1)
		}
	}
	return func() {
		r.boarding = false
		for t, at := range before {
			t.force(at)
		}
	}
}

// unseat takes pods from their places, and returns their tasks.
func (r *run) unseat(late []*model.Pod) []*task {
	gone := make(map[*model.Pod]bool, len(late))
	for _, p := range late {
		gone[p] = true
		delete(r.kept, p)
	}
	for _, n := range r.nodes {
		if n.lose(gone) {
			n.open(n.node)
			n.tally = r.counters.tallyOf(n.node)
			for _, s := range n.shares {
				r.put(s.task, &n.place, len(s.pods))
			}
		}
	}
	for _, b := range r.bins {
		if b.lose(gone) {
			r.leaveSpecial(b, gone)
			r.refill(b)
		}
	}
	r.bins = slices.DeleteFunc(r.bins, func(b *bin) bool {
		if len(b.shares) == 0 {
			r.giveBack(b)
		}
		return len(b.shares) == 0
	})
	var tasks []*task
	for _, t := range r.tasks {
		lost := false
		for _, p := range t.pods {
			if gone[p] {
				t.left = append(slices.Clip(t.left), p)
				lost = true
			}
		}
		if lost {
			t.shut, t.domains = nil, nil
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// leaveSpecial empties a bin of special types that nobody is left to ask for.
func (r *run) leaveSpecial(b *bin, gone map[*model.Pod]bool) {
	if !b.market.special.Has(b.kind) || slices.ContainsFunc(b.shares, func(s share) bool {
		return asksSpecial(r.snap, s.task.group) || !r.plainWouldDo(b.market, s.task)
	}) {
		return
	}
	for _, p := range b.everybody() {
		gone[p] = true
	}
	b.lose(gone)
}

// lose takes the pods that are gone from the place, and reports whether there were any.
func (p *place) lose(gone map[*model.Pod]bool) bool {
	lost := false
	for i, s := range p.shares {
		if slices.ContainsFunc(s.pods, func(p *model.Pod) bool { return gone[p] }) {
			lost = true
			p.shares[i].pods = slices.DeleteFunc(slices.Clone(s.pods), func(p *model.Pod) bool { return gone[p] })
		}
	}
	if lost {
		p.shares = slices.DeleteFunc(p.shares, func(s share) bool { return len(s.pods) == 0 })
	}
	return lost
}

// everyPlace visits the places that get pods: nodes, then bins.
func (r *run) everyPlace(visit func(*place, label.Row, []model.Taint)) {
	for _, n := range r.nodes {
		if len(n.shares) > 0 {
			visit(&n.place, n.node.Row, n.node.Taints)
		}
	}
	for _, b := range r.bins {
		visit(&b.place, r.resolved(b), b.market.pool.Taints)
	}
}

// resolved is the bin's row as its node can be: of one of its types, and with the custom labels that it will carry.
func (r *run) resolved(b *bin) label.Row {
	space, row := r.snap.Space, b.market.pool.Types.Hull(b.row, b.kinds)
	for _, c := range r.counters.all {
		if b.market.pool.Catalogue.WellKnown[space.Name(c.key)] || domainOf(space, row, c.key) >= 0 {
			continue
		}
		atom := space.Absent(c.key)
		if !space.AllowsAbsent(row, c.key) {
			value, ok := space.Pick(row, c.key)
			if !ok {
				continue
			}
			atom = space.Atom(c.key, value)
		}
		row = slices.Clone(row)
		space.SetOnly(row, c.key, atom)
	}
	return row
}

// seats lists where every pod goes, and takes all of them out of the counts: nobody is bound yet. All nodes are there.
func (r *run) seats() map[*model.Pod]seat {
	r.counters.fill(r.snap.Nodes)
	seats := map[*model.Pod]seat{}
	r.everyPlace(func(p *place, row label.Row, taints []model.Taint) {
		b := &boarding{shares: p.shares, tally: p.tally.clone(), row: row, taints: taints}
		for _, c := range r.counters.all {
			c.notice(r.snap.Space, row, taints)
		}
		for i, s := range p.shares {
			b.left = append(b.left, len(s.pods))
			for _, slot := range s.task.rules.hostTouched {
				b.tally.add(slot, -len(s.pods))
			}
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

// count counts a pod of a share that is bound now.
func (b *boarding) count(r *run, i int) {
	rules := b.shares[i].task.rules
	for _, c := range rules.touched {
		c.put(r.snap.Space, b.row, 1, b.taints)
	}
	for _, slot := range rules.hostTouched {
		b.tally.add(slot, 1)
		if !b.tally.nameless {
			r.counters.totals[slot]++
		}
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
		if limit, _ := r.onHost(t, &s.tally, r.firstOfItsKind(t)); limit == 0 {
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
