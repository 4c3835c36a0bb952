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
	waiting := r.inOrderOfAssignment(seats)
	slices.SortStableFunc(waiting, func(a, b *model.Pod) int {
		return cmp.Or(cmp.Compare(r.turn(a), r.turn(b)), seats[a].kindred()-seats[b].kindred())
	})
	urgent, best := map[*task]bool{}, map[*task]bool{}
	order, late = r.boardAll(waiting, seats, urgent)
	fewest := len(late)
	for try := 1; try < boardings && len(late) > 0 && !r.over(); try++ {
		for _, p := range late {
			urgent[seats[p].shares[seats[p].share].task] = true
		}
		seats = r.seats()
		order, late = r.boardAll(waiting, seats, urgent)
		if len(late) < fewest {
			fewest, best = len(late), maps.Clone(urgent)
		}
	}
	if fewest > 0 && len(urgent) > len(best) {
		order, late = r.boardAll(waiting, r.seats(), best)
	}
	return order, late
}

// turn orders the pods that keep a seat of an earlier plan as that plan would have bound them; all others come after. Of
// those, who may be the first of its kind comes first: once others that its affinity asks for are elsewhere, it may not.
func (r *run) turn(p *model.Pod) int {
	if r.kept[p] {
		if turn, known := r.snap.Turns[p.UID]; known {
			return turn
		}
	}
	return math.MaxInt
}

// boardAll binds the pods to their seats: first those that keep what they were promised, so that no newcomer makes them
// late, then everybody. Among them pods of the urgent tasks go as soon as they can.
func (r *run) boardAll(waiting []*model.Pod, seats map[*model.Pod]seat, urgent map[*task]bool) (order, late []*model.Pod) {
	b := &boarders{run: r, seats: seats}
	old, fresh := parted(waiting, func(p *model.Pod) bool { return r.kept[p] })
	for _, next := range [][]*model.Pod{old, fresh} {
		soon, rest := parted(append(late, next...), func(p *model.Pod) bool { return urgent[seats[p].shares[seats[p].share].task] })
		if len(soon)*len(rest) > mostInterruptions {
			soon, rest = nil, slices.Concat(soon, rest)
		}
		late = b.bind(soon, rest)
	}
	return b.order, late
}

// parted splits the pods into those of which is says so and the others.
func parted(pods []*model.Pod, is func(*model.Pod) bool) (yes, no []*model.Pod) {
	for _, p := range pods {
		if is(p) {
			yes = append(yes, p)
		} else {
			no = append(no, p)
		}
	}
	return yes, no
}

// boarders are the pods that have been bound, in order.
type boarders struct {
	*run
	seats map[*model.Pod]seat
	order []*model.Pod
}

// bind binds the pods, again and again until none of those left is admissible, and returns those. Soon are asked again
// whenever one of the others was bound.
func (b *boarders) bind(soon, rest []*model.Pod) (late []*model.Pod) {
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

func (b *boarders) bindAll(waiting []*model.Pod) (late []*model.Pod) {
	for {
		b.worked(len(waiting))
		late = nil
		for _, p := range waiting {
			if !b.bindOne(p) {
				late = append(late, p)
			}
		}
		if len(late) == 0 || len(late) == len(waiting) {
			return late
		}
		waiting = late
	}
}

// bindOne binds the pod if it is admissible, and reports whether it was.
func (b *boarders) bindOne(p *model.Pod) bool {
	s := b.seats[p]
	if !s.admits(b.run) {
		return false
	}
	s.count(b.run, s.share)
	s.left[s.share]--
	b.order = append(b.order, p)
	return true
}
