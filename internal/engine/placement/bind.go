package placement

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// bindAttempts is how many orders are tried before a pod counts as one that cannot be bound. mostInterruptions limits
// how often urgent pods are tried again between others.
const bindAttempts, mostInterruptions = 3, 100_000

// bindOrder finds an order in which the pods of the plan can be bound. Only hard rules are in force there, and domains
// without a node do not count.
type bindOrder struct {
	snap      *model.Snapshot
	budget    *budget
	counters  *counters
	admission *admission
	nodes     *existingNodes
	fleet     *fleet
	claims    *claimWriter
	assigner  *assigner
	reserved  *reservedPods
	deferral  *deferral
	// domain is reusable memory for the checks of nodes.
	domain domain
}

// find binds the pods one by one, and returns those that cannot be bound at any turn. Afterwards, the counts
// include all other pods as bound. Pods that earlier ones excluded precede them in the next attempt.
func (o *bindOrder) find() (order, unbindable []*model.Pod) {
	waiting := o.inEarlierOrder(selfAffinityFirst(o.inOrderOfAssignment(o.bindings())))
	urgent, best := map[*pendingGroup]bool{}, map[*pendingGroup]bool{}
	order, left := o.bindAll(waiting, urgent)
	fewest := len(left)
	for try := 1; try < bindAttempts && len(left) > 0 && !o.budget.over(); try++ {
		for _, s := range left {
			urgent[s.pending()] = true
		}
		waiting = o.unbind(waiting)
		order, left = o.bindAll(waiting, urgent)
		if len(left) < fewest {
			fewest, best = len(left), maps.Clone(urgent)
		}
	}
	if fewest > 0 && len(urgent) > len(best) {
		order, left = o.bindAll(o.unbind(waiting), best)
	}
	for _, s := range left {
		unbindable = append(unbindable, s.pod)
	}
	return order, unbindable
}

// unbind removes all pods from the counts again, and returns fresh bindings in the given order.
func (o *bindOrder) unbind(bindings []*binding) []*binding {
	fresh := o.bindings()
	of := make(map[*model.Pod]*binding, len(fresh))
	for i := range fresh {
		of[fresh[i].pod] = &fresh[i]
	}
	list := make([]*binding, len(bindings))
	for i, s := range bindings {
		list[i] = of[s.pod]
	}
	return list
}

// inEarlierOrder puts the pods with a reservation of an earlier plan first, in the order in which that plan would have
// bound them.
func (o *bindOrder) inEarlierOrder(bindings []*binding) []*binding {
	if len(o.reserved.kept) == 0 || len(o.snap.Turns) == 0 {
		return bindings
	}
	slices.SortStableFunc(bindings, func(a, b *binding) int { return cmp.Compare(o.earlierTurn(a.pod), o.earlierTurn(b.pod)) })
	return bindings
}

// earlierTurn returns the pod's position in the earlier plan; all others come after.
func (o *bindOrder) earlierTurn(p *model.Pod) int {
	if o.reserved.kept[p] {
		if turn, known := o.snap.Turns[p.UID]; known {
			return turn
		}
	}
	return math.MaxInt
}

// bindAll binds the pods. Pods that count where they run until the others are placed are moved after
// all admissible others are bound.
func (o *bindOrder) bindAll(waiting []*binding, urgent map[*pendingGroup]bool) (order []*model.Pod, unbindable []*binding) {
	b := &boundPods{of: o, order: make([]*model.Pod, 0, len(waiting))}
	if !o.deferral.placing {
		unbindable = b.bindReservedFirst(waiting, urgent)
		return b.order, unbindable
	}
	leave, others := partition(waiting, func(s *binding) bool { return o.deferral.pods[s.pod] })
	unbindable = b.bindReservedFirst(others, urgent)
	o.deferral.uncount(o.counters)
	unbindable = b.bindReservedFirst(append(unbindable, leave...), urgent)
	return b.order, unbindable
}

// bindReservedFirst first binds the pods on their reserved nodes, so that no other pod excludes them, then the rest. In
// both steps, pods of the urgent groups are bound as soon as they are admissible; in the second step, so are pods with a
// reservation that were not admissible in the first.
func (b *boundPods) bindReservedFirst(waiting []*binding, urgent map[*pendingGroup]bool) (unbindable []*binding) {
	if len(b.of.reserved.kept) == 0 && len(urgent) == 0 {
		return b.all(waiting)
	}
	old, fresh := partition(waiting, func(s *binding) bool { return b.of.reserved.kept[s.pod] })
	for _, next := range [][]*binding{old, fresh} {
		soon, rest := partition(next, func(s *binding) bool { return urgent[s.pending()] })
		soon = slices.Concat(unbindable, soon) // another pod must not take the turn of a reserved one
		if len(soon)*len(rest) > mostInterruptions {
			soon, rest = nil, slices.Concat(soon, rest)
		}
		unbindable = b.bind(soon, rest)
	}
	return unbindable
}

// partition splits the list by the predicate.
func partition[T any](list []T, is func(T) bool) (yes, no []T) {
	for _, one := range list {
		if is(one) {
			yes = append(yes, one)
		} else {
			no = append(no, one)
		}
	}
	return yes, no
}

// boundPods are the pods that have been bound, in order.
type boundPods struct {
	of    *bindOrder
	order []*model.Pod
}

// bind binds the pods, repeatedly until none of the rest is admissible, and returns the rest. Pods in soon are tried
// again whenever one of the others was bound.
func (b *boundPods) bind(soon, rest []*binding) (unbindable []*binding) {
	if len(soon) == 0 {
		return b.all(rest)
	}
	for {
		soon = b.all(soon)
		at := slices.IndexFunc(rest, b.bindOne)
		if at < 0 {
			return append(soon, rest...)
		}
		rest = slices.Delete(rest, at, at+1)
	}
}

func (b *boundPods) all(waiting []*binding) (unbindable []*binding) {
	for {
		b.of.budget.spend(len(waiting))
		unbindable = nil
		for _, s := range waiting {
			if !b.bindOne(s) {
				unbindable = append(unbindable, s)
			}
		}
		if len(unbindable) == 0 || len(unbindable) == len(waiting) {
			return unbindable
		}
		waiting = unbindable
	}
}

// bindOne binds the pod if it is admissible, and reports whether it was.
func (b *boundPods) bindOne(s *binding) bool {
	if !b.of.admits(s) {
		return false
	}
	s.target.count(b.of.counters, s.index)
	s.target.unbound[s.index]--
	b.order = append(b.order, s.pod)
	return true
}

// pending returns the group of the binding's pod.
func (s *binding) pending() *pendingGroup { return s.target.placed[s.index].pending }

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
		removed := false
		for _, p := range pg.pods {
			if gone[p] {
				pg.left = append(slices.Clip(pg.left), p)
				removed = true
			}
		}
		if removed {
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
