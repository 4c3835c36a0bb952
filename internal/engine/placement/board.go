package placement

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// boardings is how many orders are tried before a pod counts as one that cannot be bound. mostInterruptions limits how
// often urgent pods are tried again between others.
const boardings, mostInterruptions = 3, 100_000

// board binds the pods one by one, and returns those that cannot be bound at any turn. Afterwards, the counts include
// all other pods as bound. Pods that earlier ones excluded precede them in the next attempt.
func (r *run) board() (order, late []*model.Pod) {
	seats := r.seats()
	defer r.hardOnly(seats)()
	waiting := r.inTurns(kindredFirst(r.inOrderOfAssignment(seats)))
	urgent, best := map[*task]bool{}, map[*task]bool{}
	order, left := r.boardAll(waiting, urgent)
	fewest := len(left)
	for try := 1; try < boardings && len(left) > 0 && !r.over(); try++ {
		for _, s := range left {
			urgent[s.task()] = true
		}
		waiting = r.seatedAnew(waiting)
		order, left = r.boardAll(waiting, urgent)
		if len(left) < fewest {
			fewest, best = len(left), maps.Clone(urgent)
		}
	}
	if fewest > 0 && len(urgent) > len(best) {
		order, left = r.boardAll(r.seatedAnew(waiting), best)
	}
	for _, s := range left {
		late = append(late, s.pod)
	}
	return order, late
}

// seatedAnew removes all pods from the counts again, and returns fresh seats in the given order.
func (r *run) seatedAnew(seats []*seat) []*seat {
	fresh := r.seats()
	of := make(map[*model.Pod]*seat, len(fresh))
	for i := range fresh {
		of[fresh[i].pod] = &fresh[i]
	}
	list := make([]*seat, len(seats))
	for i, s := range seats {
		list[i] = of[s.pod]
	}
	return list
}

// inTurns puts the pods with a seat of an earlier plan first, in the order in which that plan would have bound them.
func (r *run) inTurns(seats []*seat) []*seat {
	if len(r.kept) == 0 || len(r.snap.Turns) == 0 {
		return seats
	}
	slices.SortStableFunc(seats, func(a, b *seat) int { return cmp.Compare(r.turn(a.pod), r.turn(b.pod)) })
	return seats
}

// turn returns the pod's position in the earlier plan; all others come after.
func (r *run) turn(p *model.Pod) int {
	if r.kept[p] {
		if turn, known := r.snap.Turns[p.UID]; known {
			return turn
		}
	}
	return math.MaxInt
}

// boardAll binds the pods to their seats. Pods that count where they run until the others are placed are moved after
// all admissible others are bound.
func (r *run) boardAll(waiting []*seat, urgent map[*task]bool) (order []*model.Pod, late []*seat) {
	b := &boarders{run: r, order: make([]*model.Pod, 0, len(waiting))}
	if !r.leaving {
		late = b.bindKeptFirst(waiting, urgent)
		return b.order, late
	}
	leave, others := parted(waiting, func(s *seat) bool { return r.stay[s.pod] })
	late = b.bindKeptFirst(others, urgent)
	r.vacate()
	late = b.bindKeptFirst(append(late, leave...), urgent)
	return b.order, late
}

// bindKeptFirst first binds the pods on their reserved nodes, so that no other pod excludes them, then the rest. In
// both steps, pods of the urgent tasks are bound as soon as they are admissible.
func (b *boarders) bindKeptFirst(waiting []*seat, urgent map[*task]bool) (late []*seat) {
	if len(b.kept) == 0 && len(urgent) == 0 {
		return b.bindAll(waiting)
	}
	old, fresh := parted(waiting, func(s *seat) bool { return b.kept[s.pod] })
	for _, next := range [][]*seat{old, fresh} {
		soon, rest := parted(append(late, next...), func(s *seat) bool { return urgent[s.task()] })
		if len(soon)*len(rest) > mostInterruptions {
			soon, rest = nil, slices.Concat(soon, rest)
		}
		late = b.bind(soon, rest)
	}
	return late
}

// parted splits the list by the predicate.
func parted[T any](list []T, is func(T) bool) (yes, no []T) {
	for _, one := range list {
		if is(one) {
			yes = append(yes, one)
		} else {
			no = append(no, one)
		}
	}
	return yes, no
}

// boarders holds the pods that have been bound, in order.
type boarders struct {
	*run
	order []*model.Pod
}

// bind binds the pods, repeatedly until none of the rest is admissible, and returns the rest. Pods in soon are tried
// again whenever one of the others was bound.
func (b *boarders) bind(soon, rest []*seat) (late []*seat) {
	if len(soon) == 0 {
		return b.bindAll(rest)
	}
	for {
		soon = b.bindAll(soon)
		at := slices.IndexFunc(rest, b.bindOne)
		if at < 0 {
			return append(soon, rest...)
		}
		rest = slices.Delete(rest, at, at+1)
	}
}

func (b *boarders) bindAll(waiting []*seat) (late []*seat) {
	for {
		b.worked(len(waiting))
		late = nil
		for _, s := range waiting {
			if !b.bindOne(s) {
				late = append(late, s)
			}
		}
		if len(late) == 0 || len(late) == len(waiting) {
			return late
		}
		waiting = late
	}
}

// bindOne binds the seat's pod if it is admissible, and reports whether it was.
func (b *boarders) bindOne(s *seat) bool {
	if !s.admits(b.run) {
		return false
	}
	s.count(b.run, s.share)
	s.left[s.share]--
	b.order = append(b.order, s.pod)
	return true
}

// task returns the task of the seat's pod.
func (s *seat) task() *task { return s.shares[s.share].task }
