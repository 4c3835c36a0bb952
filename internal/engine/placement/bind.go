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
