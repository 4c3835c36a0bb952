package placement

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// boardings is how many orders are tried before somebody counts as one who cannot be bound. mostInterruptions is how often
// pods that may be kept out by others are asked before those, at most.
const boardings, mostInterruptions = 3, 100_000

// board binds the pods one by one, and returns those that cannot be bound at any turn. The counts are those with
// everybody else bound. Whom others kept out by coming first goes before them next time.
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

// seatedAnew takes everybody out of the counts again, and returns the seats in the order that they have.
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

// inTurns puts the pods that keep a seat of an earlier plan first, in the order in which that plan would have bound them.
func (r *run) inTurns(seats []*seat) []*seat {
	if len(r.kept) == 0 || len(r.snap.Turns) == 0 {
		return seats
	}
	slices.SortStableFunc(seats, func(a, b *seat) int { return cmp.Compare(r.turn(a.pod), r.turn(b.pod)) })
	return seats
}

// turn is the pod's in the earlier plan; all others come after.
func (r *run) turn(p *model.Pod) int {
	if r.kept[p] {
		if turn, known := r.snap.Turns[p.UID]; known {
			return turn
		}
	}
	return math.MaxInt
}

// boardAll binds the pods to their seats. Pods that stay where they run until the others have their places leave after those are
// bound that can be.
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

// bindKeptFirst binds first those that keep what they were promised, so that no newcomer makes them late, then everybody. Among them
// pods of the urgent tasks go as soon as they can.
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

// parted splits the list into those of which is says so and the others.
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

// boarders are the pods that have been bound, in order.
type boarders struct {
	*run
	order []*model.Pod
}

// bind binds the pods, again and again until none of those left is admissible, and returns those. Soon are asked again
// whenever one of the others was bound.
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

// task is the one that the seat's pod belongs to.
func (s *seat) task() *task { return s.shares[s.share].task }
