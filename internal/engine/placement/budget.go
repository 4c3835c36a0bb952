package placement

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// The work budget. Options.WorkBudget limits a run by work, not by time, so that every machine computes the same plan.
// A unit of work is one evaluation: whether a group fits a node, a bin or a domain, or whether a candidate fits. An
// evaluation of many rows, or of long ones, is several units.
//
// The first half of the budget is for a run without portions. If it finishes, its plan is the same as without a budget.
// If not, the run starts again with portions: a few groups of one namespace at a time. Each portion is placed for good
// before the next one. As many portions are placed as the rest of the budget allows, at least one. The last one may
// exceed the budget. Groups of the remaining portions are refused as not reached.
//
// Portions are ordered by priority, and among equals one of each namespace in turn, beginning with the namespace with
// the fewest groups, until half of the rest is spent. So the most important pods are placed, and a namespace with few
// groups does not wait for one with many. Then the time of the snapshot selects a namespace and one of its portions,
// all with equal probability, so that expensive unschedulable groups, regardless of priority and number, cannot keep
// the others from being reached forever.

// portionSize is how many groups are placed together.
const portionSize = 32

// unitWords is how many words of rows are a unit of work.
const unitWords = 512

// portion is some groups of one namespace that are placed together.
type portion struct {
	namespace string
	rank      int32
	// turn is how many portions of the same namespace and rank precede.
	turn   int
	groups []*pendingGroup
}

// budget counts the work of a run.
type budget struct {
	limit int
	work  int
	mode  mode
	// ended: a pod needs a new node, and Options.NoLaunch is set.
	ended bool
	// beside is the work of a run that this one is preferred to.
	beside int
}

// spend adds to the work done by the run.
func (b *budget) spend(questions int) { b.work += questions }

// spendRows adds the work of examining rows beyond that of a few short ones.
func (b *budget) spendRows(rows []label.Row) {
	if len(rows) > 0 {
		b.work += len(rows) * len(rows[0]) / unitWords
	}
}

// over reports whether a run must not continue: it has ended, or one without portions has spent its part of the budget.
func (b *budget) over() bool {
	return b.ended || b.mode != portioned && b.limit > 0 && b.work > b.limit/2
}

// spare returns how much work may be spent on packings that only reduce cost.
func (b *budget) spare(usual int) int {
	if b.limit == 0 {
		return usual
	}
	whole := b.limit
	if b.mode != portioned {
		whole /= 2
	}
	return max(0, min(usual, (whole-b.work)/2))
}

// inPortions places portion after portion until the budget is spent. Groups of the remaining portions are refused.
func (s *solver) inPortions() {
	rest := portions(s.queue.groups)
	turn := mixed(s.snap.Now.UnixNano())
	half := (s.budget.work + s.budget.limit) / 2
	for first := true; len(rest) > 0 && (first || s.budget.work < s.budget.limit); first = false {
		at := 0
		if s.budget.work > half {
			at = drawn(rest, turn)
		}
		s.joinFirst = !first
		s.byDepth(rest[at].groups)
		rest = slices.Delete(rest, at, at+1)
	}
	for _, b := range rest {
		for _, pg := range b.groups {
			if len(pg.left) > 0 {
				pg.unreached = true
				s.refused = append(s.refused, pg)
			}
		}
	}
}

// portions splits the groups with remaining pods, in the order of placement while the budget suffices.
func portions(groups []*pendingGroup) []portion {
	type owner struct {
		namespace string
		rank      int32
	}
	byOwner, count := map[owner][]*pendingGroup{}, map[string]int{}
	for _, pg := range groups {
		if len(pg.left) > 0 {
			o := owner{pg.group.Namespace, pg.rank}
			byOwner[o] = append(byOwner[o], pg)
			count[o.namespace]++
		}
	}
	var list []portion
	for o, of := range byOwner {
		turn := 0
		for groups := range slices.Chunk(of, portionSize) {
			list = append(list, portion{namespace: o.namespace, rank: o.rank, turn: turn, groups: groups})
			turn++
		}
	}
	slices.SortFunc(list, func(a, b portion) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.turn, b.turn),
			cmp.Compare(count[a.namespace], count[b.namespace]), strings.Compare(a.namespace, b.namespace))
	})
	return list
}

// drawn returns the index of the portion that the turn selects: any namespace, and any portion of it.
func drawn(list []portion, turn uint64) int {
	var namespaces []string
	of := map[string][]int{}
	for i, b := range list {
		if of[b.namespace] == nil {
			namespaces = append(namespaces, b.namespace)
		}
		of[b.namespace] = append(of[b.namespace], i)
	}
	n := uint64(len(namespaces))
	mine := of[namespaces[turn%n]]
	return mine[turn/n%uint64(len(mine))]
}

// mixed maps n to a number whose remainders are uniformly distributed, whatever the step between the times (the
// finalizer of splitmix64, https://prng.di.unimi.it/splitmix64.c).
func mixed(n int64) uint64 {
	x := uint64(n)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// chunks iterates over the runs of adjacent groups that are alike.
func chunks[T any](groups []T, alike func(a, b T) bool) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(groups) > 0 {
			end := slices.IndexFunc(groups, func(t T) bool { return !alike(groups[0], t) })
			if end < 0 {
				end = len(groups)
			}
			if !yield(groups[:end:end]) {
				return
			}
			groups = groups[end:]
		}
	}
}
