package placement

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// The work budget. Options.WorkBudget limits a run by work, not by time, so that every machine computes the same plan.
// A unit of work is one evaluation: whether a group fits a node, a bin or a domain, or whether a prospect fits.
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

// portion is how many groups are placed together.
const portion = 32

// batch is some groups of one namespace that are placed together.
type batch struct {
	namespace string
	rank      int32
	// turn is how many batches of the same namespace and rank precede.
	turn  int
	tasks []*task
}

// worked adds to the work done by the run.
func (r *run) worked(questions int) { r.work += questions }

// over reports whether a run without portions has spent its part of the budget.
func (r *run) over() bool {
	return r.mode != portioned && r.opts.WorkBudget > 0 && r.work > r.opts.WorkBudget/2
}

// spare returns how much work may be spent on packings that only reduce cost.
func (r *run) spare(usual int) int {
	if r.opts.WorkBudget == 0 {
		return usual
	}
	whole := r.opts.WorkBudget
	if r.mode != portioned {
		whole /= 2
	}
	return max(0, min(usual, (whole-r.work)/2))
}

// solvePortions places batch after batch until the budget is spent. Groups of the remaining batches are refused.
func (r *run) solvePortions() {
	rest := batches(r.tasks)
	turn := mixed(r.snap.Now.UnixNano())
	half := (r.work + r.opts.WorkBudget) / 2
	for first := true; len(rest) > 0 && (first || r.work < r.opts.WorkBudget); first = false {
		at := 0
		if r.work > half {
			at = drawn(rest, turn)
		}
		r.joinFirst = !first
		r.solveByDepth(rest[at].tasks)
		rest = slices.Delete(rest, at, at+1)
	}
	for _, b := range rest {
		for _, t := range b.tasks {
			if len(t.left) > 0 {
				t.unreached = true
				r.refused = append(r.refused, t)
			}
		}
	}
}

// batches splits the tasks with remaining pods, in the order of placement while the budget suffices.
func batches(tasks []*task) []batch {
	type owner struct {
		namespace string
		rank      int32
	}
	byOwner, groups := map[owner][]*task{}, map[string]int{}
	for _, t := range tasks {
		if len(t.left) > 0 {
			o := owner{t.group.Namespace, t.rank}
			byOwner[o] = append(byOwner[o], t)
			groups[o.namespace]++
		}
	}
	var list []batch
	for o, of := range byOwner {
		turn := 0
		for tasks := range slices.Chunk(of, portion) {
			list = append(list, batch{namespace: o.namespace, rank: o.rank, turn: turn, tasks: tasks})
			turn++
		}
	}
	slices.SortFunc(list, func(a, b batch) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.turn, b.turn),
			cmp.Compare(groups[a.namespace], groups[b.namespace]), strings.Compare(a.namespace, b.namespace))
	})
	return list
}

// drawn returns the index of the batch that the turn selects: any namespace, and any batch of it.
func drawn(list []batch, turn uint64) int {
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

// solveByDepth places tasks such that targets of affinity precede the pods that need them.
func (r *run) solveByDepth(tasks []*task) {
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, func(a, b *task) int { return cmp.Compare(a.depth, b.depth) })
	for same := range chunks(tasks, func(a, b *task) bool { return a.depth == b.depth }) {
		r.solveTogether(same)
	}
}

// chunks iterates over the runs of adjacent tasks that are alike.
func chunks(tasks []*task, alike func(a, b *task) bool) iter.Seq[[]*task] {
	return func(yield func([]*task) bool) {
		for len(tasks) > 0 {
			end := slices.IndexFunc(tasks, func(t *task) bool { return !alike(tasks[0], t) })
			if end < 0 {
				end = len(tasks)
			}
			if !yield(tasks[:end:end]) {
				return
			}
			tasks = tasks[end:]
		}
	}
}
