package placement

import (
	"cmp"
	"iter"
	"slices"
)

// The work budget. Options.WorkBudget bounds a run by work, not by time, so that every machine comes to the same plan. A
// unit is a question: may this group go onto that node, into that bin, to that domain; does that prospect fit.
//
// The first half of the budget is for a run that knows no portions: if it is done by then, its plan is the one that
// there would be without a budget. If not, all begins anew with a few groups at a time, each portion placed for good
// before the next is looked at, and as many portions as the rest of the budget bears: at least one, the last of which
// may exceed it. What no portion reached is refused as such.
//
// Nobody starves: the portions come in the order of the queue (priority, then size) until half of what is left is spent,
// so that what matters most has its place; the others begin at a portion that the time of the snapshot picks, so that
// pods which have no place and are asked about first each time do not keep the rest from being asked about for ever.

// portion is how many groups are placed together.
const portion = 32

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

// solvePortions places portion after portion until the budget is spent. What was not reached is refused.
func (r *run) solvePortions() {
	var rest [][]*task
	waiting := slices.DeleteFunc(slices.Clone(r.tasks), func(t *task) bool { return len(t.left) == 0 })
	for p := range slices.Chunk(waiting, portion) {
		rest = append(rest, p)
	}
	turn := mixed(r.snap.Now.UnixNano())
	half := (r.work + r.opts.WorkBudget) / 2
	for first := true; len(rest) > 0 && (first || r.work < r.opts.WorkBudget); first = false {
		at := 0
		if r.work > half {
			at = int(turn % uint64(len(rest)))
		}
		r.joinFirst = !first
		r.solveByDepth(rest[at])
		rest = slices.Delete(rest, at, at+1)
	}
	for _, tasks := range rest {
		for _, t := range tasks {
			if len(t.left) > 0 {
				t.unreached = true
				r.refused = append(r.refused, t)
			}
		}
	}
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
