package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Priority for scarce capacity. Within one round, pods of higher priority come first. That is enough unless a group
// needs more rounds: a group that drops preferences, or that waits for the targets of its affinity, reaches a pool
// later than others of lower priority. A run detects when such a group thereby lost the rest of a limit or a
// reservation (inversion). Then everything is solved again rank by rank: no pod is placed before those of higher
// priority, at the cost of a packing with less information.

// mode is how a run processes its groups.
type mode uint8

const (
	// whole: all groups that need not wait for others, at once.
	whole mode = iota
	// ranked: rank by rank.
	ranked
	// portioned: a few groups at a time, until the work budget is spent.
	portioned
)

// ranks returns the lowest and the highest rank among the pods of the bin.
func (b *bin) ranks() (low, high int32) {
	low, high = math.MaxInt32, math.MinInt32
	for _, s := range b.placed {
		low, high = min(low, s.pending.rank), max(high, s.pending.rank)
	}
	return low, high
}

// byRank splits the groups by rank, the highest first. A pod that is the affinity target of a higher rank is placed
// with that rank.
func (q *queue) byRank() [][]*pendingGroup {
	q.splitAffinityTargets()
	groups := slices.Clone(q.groups)
	slices.SortStableFunc(groups, func(a, b *pendingGroup) int { return cmp.Compare(b.rank, a.rank) })
	return slices.Collect(chunks(groups, func(a, b *pendingGroup) bool { return a.rank == b.rank }))
}

// splitAffinityTargets splits one pod off each group that a group of higher rank requires by affinity, when no other
// target exists, and assigns it that rank.
func (q *queue) splitAffinityTargets() {
	byMark := map[int][]*pendingGroup{}
	record := func(pg *pendingGroup) {
		for _, m := range pg.group.Matches {
			byMark[m] = append(byMark[m], pg)
		}
	}
	for _, pg := range q.groups {
		record(pg)
	}
	waiting := slices.Clone(q.groups)
	for i := 0; i < len(waiting); i++ {
		pg := waiting[i]
		for k := range pg.group.Terms {
			mark := pg.group.TermMarks[k]
			if term := &pg.group.Terms[k]; term.Anti || !term.Required() || slices.Contains(pg.group.Matches, mark) || q.counters.anywhere(mark) {
				continue
			}
			if target := split(byMark[mark], pg.rank); target != nil {
				q.groups = append(q.groups, target)
				waiting = append(waiting, target)
				record(target)
			}
		}
	}
}

// split takes one pod from the group of the highest rank with remaining pods, if that rank is lower than the given one.
func split(groups []*pendingGroup, rank int32) *pendingGroup {
	var from *pendingGroup
	for _, pg := range groups {
		if len(pg.left) > 0 && (from == nil || pg.rank > from.rank) {
			from = pg
		}
	}
	if from == nil || from.rank >= rank {
		return nil
	}
	target := *from
	target.rank = rank
	target.left, from.left = from.left[:1:1], from.left[1:]
	target.pods = target.left
	from.pods = slices.DeleteFunc(slices.Clone(from.pods), func(p *model.Pod) bool { return p == target.left[0] })
	return &target
}

// anywhere reports whether some node has a pod with the mark.
func (c *counters) anywhere(mark int) bool {
	if slot := c.slotOf[mark]; slot >= 0 && c.totals[slot] > 0 {
		return true
	}
	return slices.ContainsFunc(c.byMark[mark], func(c *counter) bool { return c.total > 0 })
}
