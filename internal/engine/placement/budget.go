package placement

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// The work budget. Options.WorkBudget bounds a run by work, not by time, so that every machine comes to the same plan. A
// unit is a question: may this group go onto that node, into that bin, to that domain; does that prospect fit.
//
// The first half of the budget is for a run that knows no portions: if it is done by then, its plan is the one that
// there would be without a budget. If not, all begins anew with a few groups of one namespace at a time, each portion
// placed for good before the next is looked at, and as many portions as the rest of the budget bears: at least one, the
// last of which may exceed it. What no portion reached is refused as such.
//
// The portions come by priority, and among equals one of each namespace in turn, that with the fewest groups first, until
// half of what is left is spent: what matters most has its place, and a namespace with few groups does not wait for one
// with many. Then the time of the snapshot picks a namespace, and a portion of it, each as likely as any other, so that
// groups which have no place and cost much, whatever their priority and however many they are, do not keep the rest from
// being reached for ever.

// portion is how many groups are placed together.
const portion = 32

// batch is some groups of one namespace that are placed together.
type batch struct {
	namespace string
	rank      int32
	// turn is how many batches of the namespace and rank come before.
	turn  int
	tasks []*task
}

// worked counts questions.
func (r *run) worked(questions int) { r.work += questions }

// over reports whether a run that knows no portions has used up what it may.
func (r *run) over() bool {
	return r.mode != portioned && r.opts.WorkBudget > 0 && r.work > r.opts.WorkBudget/2
}

// spare is how much work may go into packings that are only better.
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

// solvePortions places batch after batch until the budget is spent. What was not reached is refused.
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

// batches splits the tasks that have pods left, in the order in which they come as long as there is budget for all.
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

// drawn is the index of a batch that the turn picks: of any namespace, and there any batch.
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

// mixed is a number of which any remainder is as likely as any other, whatever the step between the times (the finaliser
// of splitmix64).
func mixed(n int64) uint64 {
	x := uint64(n)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// solveByDepth places tasks so that those whom others want to be near come first.
func (r *run) solveByDepth(tasks []*task) {
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, func(a, b *task) int { return cmp.Compare(a.depth, b.depth) })
	for same := range chunks(tasks, func(a, b *task) bool { return a.depth == b.depth }) {
		r.solveTogether(same)
	}
}

// chunks are the runs of neighbours that are alike.
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
