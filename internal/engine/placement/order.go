package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// An order in which the pods of the plan can be bound, each admissible at its turn. It is the order of assignment to
// domains, because the rules by domain were evaluated there. A pod that is not admissible at its turn waits, as in
// kube-scheduler. On one node, a pod also waits for pods that were placed there before it and that it would exclude.
//
// Domains are assigned before nodes are found. So a pod that was not placed after all, or a node that turned out to be
// in an unexpected domain, may have changed the counts by which other pods were admitted. A pod that is not admissible
// at any turn loses its seat and is placed again, with all other pods in place. Pods that are not placed in the end are
// refused. Then other refused pods are tried again: the limits that those pods used in each attempt are now available.

// attempts is how often unbindable pods of one task are placed again. mostRounds is how often pods of any task are, at
// most; in portions, for which the work budget is spent, only attempts.
const attempts, mostRounds = 4, 16

// seat is where a pod of the plan is to be bound.
type seat struct {
	*boarding
	pod   *model.Pod
	share int
	// listed reports that the seat is in the order.
	listed bool
}

// boarding is a place that pods of the plan are bound to, one by one.
type boarding struct {
	shares []share
	// left is how many unbound pods each share has.
	left   []int
	tally  tally
	row    label.Row
	taints []model.Taint
}

// settle determines the order, and removes pods that cannot be bound.
func (r *run) settle() {
	tries := map[*task]int{}
	if len(r.counters.all) == 0 && len(r.counters.totals) == 0 {
		for range attempts {
			if !r.preferHeavier() || !r.retryRefused(tries) {
				break
			}
		}
		r.orderByPlace()
		return
	}
	most := mostRounds
	if r.mode == portioned {
		most = attempts
	}
	for round := 1; !r.over(); round++ {
		order, late := r.board()
		if len(late) == 0 {
			if round <= most && (r.retryRefused(tries) || r.preferHeavier()) {
				continue
			}
			r.result.Order = order
			return
		}
		again := r.unseat(late)
		r.refused = slices.DeleteFunc(r.refused, func(t *task) bool { return slices.Contains(again, t) })
		for _, t := range again {
			tries[t]++
		}
		open, givenUp := parted(again, func(t *task) bool { return round <= most && tries[t] <= attempts })
		r.refused = append(r.refused, givenUp...)
		r.solveTogether(open)
	}
}

// orderByPlace lists the pods place by place, for plans without rules between pods.
func (r *run) orderByPlace() {
	r.result.Order = make([]*model.Pod, 0, r.seated())
	list := func(p *place) {
		for _, s := range p.shares {
			r.result.Order = append(r.result.Order, s.pods...)
		}
	}
	for _, n := range r.nodes {
		list(&n.place)
	}
	for _, b := range r.bins {
		list(&b.place)
	}
}

// seated returns how many pods are placed.
func (r *run) seated() int {
	count := 0
	for _, n := range r.nodes {
		count += n.population()
	}
	for _, b := range r.bins {
		count += b.population()
	}
	return count
}

// retryRefused tries the pods again that rules between pods or limits excluded, now that all others are placed, and
// reports whether any were placed. Tasks without remaining attempts are skipped.
func (r *run) retryRefused(tries map[*task]int) bool {
	before := countTasks(r.refused)
	open, givenUp := parted(r.refused, func(t *task) bool { return tries[t] <= attempts })
	again, rest := r.retry(open)
	if len(again) == 0 {
		return false
	}
	r.refused, r.givenBack = append(rest, givenUp...), false
	r.solveTogether(again)
	return countTasks(r.refused) < before
}

// kindredFirst moves pods with affinity to themselves to the front and keeps the order otherwise: once other pods that
// their affinity selects are elsewhere, they may no longer be the first of their kind.
func kindredFirst(seats []*seat) []*seat {
	if !slices.ContainsFunc(seats, func(s *seat) bool { return s.kindred() }) {
		return seats
	}
	sorted := make([]*seat, 0, len(seats))
	for _, first := range []bool{true, false} {
		for _, s := range seats {
			if s.kindred() == first {
				sorted = append(sorted, s)
			}
		}
	}
	return sorted
}

// kindred reports whether the pod's own affinity selects the pod itself.
func (s *seat) kindred() bool {
	rules := s.shares[s.share].task.rules
	return slices.ContainsFunc(rules.affinities, func(a affinityRule) bool { return a.self }) ||
		slices.ContainsFunc(rules.hostAffinities, func(a hostAffinity) bool { return a.self })
}

// hardOnly puts only hard rules in force for the tasks of the seats, and returns a function that reverts this.
func (r *run) hardOnly(seats []seat) (undo func()) {
	r.boarding = true
	before := map[*task]int{}
	var last *task
	for i := range seats {
		t := seats[i].shares[seats[i].share].task
		if t == last {
			continue
		}
		last = t
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

// unseat removes pods from their places, and returns their tasks.
func (r *run) unseat(late []*model.Pod) []*task {
	gone := make(map[*model.Pod]bool, len(late))
	for _, p := range late {
		gone[p] = true
		delete(r.kept, p)
	}
	for _, n := range r.nodes {
		if n.lose(gone) {
			n.open(n.node)
			n.tally = r.counters.tallyOf(n.node, n.crew)
			for _, s := range n.shares {
				r.put(s.task, &n.place, len(s.pods))
			}
			r.slack[n.at] = model.SlackOf(n.free)
		}
	}
	for _, b := range r.bins {
		if b.lose(gone) {
			r.leaveSpecial(b, gone)
			r.refill(b)
			if len(b.shares) > 0 {
				r.shrink(b)
			}
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

// leaveSpecial empties a bin of special types if no remaining pod needs them.
func (r *run) leaveSpecial(b *bin, gone map[*model.Pod]bool) {
	if !b.market.special.Has(b.kind) || slices.ContainsFunc(b.shares, func(s share) bool {
		return asksSpecial(r.snap, s.task.group) || !r.plainWouldDo(b.market, s.task)
	}) {
		return
	}
	for _, p := range b.allPods() {
		gone[p] = true
	}
	b.lose(gone)
}

// lose removes the pods in gone from the place, and reports whether there were any.
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

// resolved returns the bin's row as its claim will state it, so that this plan counts the node as the next one does:
// with one of its types, the capacity types of the claim, and the custom labels of the node.
func (r *run) resolved(b *bin) label.Row {
	space, m, row := r.snap.Space, b.market, slices.Clone(b.row)
	r.nameCapacityTypes(m, b, row)
	for k := label.Key(0); int(k) < space.Len(); k++ {
		if m.pool.Catalogue.WellKnown[space.Name(k)] || domainOf(space, row, k) >= 0 {
			continue
		}
		atom := space.Absent(k)
		if !space.AllowsAbsent(row, k) {
			value, ok := space.Pick(row, k)
			if !ok {
				continue
			}
			atom = space.Atom(k, value)
		}
		space.SetOnly(row, k, atom)
	}
	return m.pool.Types.Hull(row, b.kinds)
}

// nameCapacityTypes narrows the row to the capacity types that the bin's claim lists.
func (r *run) nameCapacityTypes(m *market, b *bin, row label.Row) {
	space := r.snap.Space
	key, known := space.Lookup(model.LabelCapacityType)
	if !known {
		return
	}
	named := bitset.New(space.Atoms(key))
	for _, value := range r.capacityTypes(m, b) {
		named.Add(space.Atom(key, value))
	}
	from, to := space.Span(key)
	bitset.Set(row[from:to]).AndWith(named)
}

// seats lists the place of every pod, and removes all of them from the counts, because none is bound yet. All nodes are
// included, those of the snapshot and new ones. Bins with the same row and types become identical nodes.
func (r *run) seats() []seat {
	r.counters.fill(r.snap.Nodes)
	stay := r.stay
	if r.leaving {
		stay = nil
	}
	seats := make([]seat, 0, r.seated())
	for _, n := range r.nodes {
		if len(n.shares) > 0 {
			seats = n.seat(seats, n.node.Row, n.node.Taints, stay)
		}
	}
	alike := map[string]label.Row{}
	for _, b := range r.bins {
		like := r.likeness(b)
		row, known := alike[string(like)]
		if !known {
			row = r.resolved(b)
			alike[string(like)] = row
			for _, c := range r.counters.all {
				c.notice(r.snap.Space, row, b.market.pool.Taints)
			}
		}
		seats = b.seat(seats, row, b.market.pool.Taints, nil)
	}
	return seats
}

// seat appends the seats of a place's pods, and removes them from its tally. Pods that count where they run for now get
// no seat yet.
func (p *place) seat(seats []seat, row label.Row, taints []model.Taint, stay map[*model.Pod]bool) []seat {
	b := &boarding{shares: p.shares, left: make([]int, len(p.shares)), tally: p.tally.clone(), row: row, taints: taints}
	for i, s := range p.shares {
		for _, slot := range s.task.rules.hostTouched {
			b.tally.add(slot, -len(s.pods))
		}
		if stay[s.pods[0]] { // restored one by one, so each is a share of its own
			continue
		}
		b.left[i] = len(s.pods)
		for _, pod := range s.pods {
			seats = append(seats, seat{boarding: b, pod: pod, share: i})
		}
	}
	return seats
}

// inOrderOfAssignment orders the seats by the last assignment of each pod: earlier ones were reverted.
func (r *run) inOrderOfAssignment(seats []seat) []*seat {
	at := make(map[*model.Pod]*seat, len(seats))
	for i := range seats {
		at[seats[i].pod] = &seats[i]
	}
	list := make([]*seat, len(seats))
	first := len(list)
	for i := len(r.order) - 1; i >= 0 && first > 0; i-- {
		if s := at[r.order[i]]; s != nil && !s.listed {
			s.listed = true
			first--
			list[first] = s
		}
	}
	return list[first:]
}

// count counts a pod of the share as bound.
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

func (s *seat) admits(r *run) bool {
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
	return r.admits(t, r.scratch.domain.become(r, t, s.row)).OK()
}

// minds reports whether a pod with the other rules may exclude one with these from its host.
func (rs *rules) minds(other *rules) bool {
	for _, slot := range other.hostTouched {
		if slices.Contains(rs.hostApart, slot) || slices.ContainsFunc(rs.hostSpreads, func(h hostSpread) bool { return h.slot == slot && !h.self }) {
			return true
		}
	}
	return false
}

// allPods lists the pods of a place.
func (p *place) allPods() []*model.Pod {
	pods := make([]*model.Pod, 0, p.population())
	for _, s := range p.shares {
		pods = append(pods, s.pods...)
	}
	return pods
}

// population returns how many pods of the plan are on a place.
func (p *place) population() int {
	count := 0
	for _, s := range p.shares {
		count += len(s.pods)
	}
	return count
}
