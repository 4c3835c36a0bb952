package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// solver places groups in rounds.
type solver struct {
	snap     *model.Snapshot
	counters *counters
	budget   *budget
	queue    *queue
	assigner *assigner
	nodes    *existingNodes
	fleet    *fleet
	launcher *launcher
	rwop     *rwopPods
	// refused are the groups with unschedulable pods.
	refused []*pendingGroup
	// joinFirst: open bins contain pods of earlier groups, and are filled before new ones are opened.
	joinFirst bool
}

// together places groups that need not wait for each other, in rounds: assign to domains, place on nodes, join
// bins, open bins, join those. The rest tries another domain, then drops one preference. Groups excluded by rules are
// tried again while other placements still change the counts.
func (s *solver) together(active []*pendingGroup) {
	var stuck []*pendingGroup
	for round := 0; len(active) > 0 && !s.budget.over(); round++ {
		pods := countPods(active)
		batches := s.assignAndFill(active)
		s.fleet.joinBins(batches, round > 0 || s.joinFirst)
		batches = s.launcher.launch(batches)
		s.fleet.joinRest(batches)
		s.returnUnplaced(batches)
		placed := pods - countPods(active)
		var next []*pendingGroup
		for _, pg := range active {
			switch {
			case len(pg.left) == 0:
			case pg.hasAnother() || s.queue.relax(pg):
				next = append(next, pg)
			default:
				stuck = append(stuck, pg)
			}
		}
		if len(next) == 0 && placed > 0 {
			next, stuck = s.retry(stuck)
		}
		active = next
	}
	s.refused = append(s.refused, stuck...)
}

// retry splits off the groups that rules between pods excluded, because placements have changed the counts. When part
// of a limit was released, all groups are included.
func (s *solver) retry(stuck []*pendingGroup) (again, rest []*pendingGroup) {
	for _, pg := range stuck {
		if pg.unreached || !s.fleet.releases.recent && pg.rules.none() && len(pg.rules.hostAffinities) == 0 {
			rest = append(rest, pg)
			continue
		}
		pg.choices = choices{}
		again = append(again, pg)
	}
	return again, rest
}

func countPods(groups []*pendingGroup) int {
	n := 0
	for _, pg := range groups {
		n += len(pg.left)
	}
	return n
}

// assignAndFill assigns the groups to domains and places them on nodes. Where the nodes of a domain hold fewer pods
// than estimated, the rest is assigned once more, so that no node is launched in one domain while nodes of another have
// capacity.
func (s *solver) assignAndFill(groups []*pendingGroup) []*domainBatch {
	var all []*domainBatch
	for again := groups; len(again) > 0 && !s.budget.over(); {
		var batches []*domainBatch
		filled := 0
		for _, pg := range again {
			// The first pod of a self-affine group decides for all: the free capacity must be up to date.
			if pg.decidesForAll() {
				s.nodes.fill(batches[filled:])
				filled = len(batches)
			}
			batches = append(batches, s.assigner.assign(pg)...)
		}
		s.nodes.fill(batches[filled:])
		again = nil
		for _, batch := range batches {
			if len(batch.left) == 0 || !batch.roomElsewhere() {
				all = append(all, batch)
				continue
			}
			batch.domain.room = 0
			s.counters.assign(batch.pending, batch.domain, -len(batch.left))
			batch.pending.left = append(slices.Clip(batch.left), batch.pending.left...)
			if !slices.Contains(again, batch.pending) {
				again = append(again, batch.pending)
			}
		}
	}
	return all
}

// roomElsewhere reports whether the batch was expected to fit on nodes of its domain, and another domain has capacity.
func (batch *domainBatch) roomElsewhere() bool {
	c := &batch.pending.choices
	return batch.expected && slices.ContainsFunc(c.domains, func(d *domain) bool {
		return d != batch.domain && d.room > 0 && !c.exhausted[d.id]
	})
}

// returnUnplaced returns the unplaced pods of the batches to their groups, and shuts the domains that proved full.
func (s *solver) returnUnplaced(batches []*domainBatch) {
	full := map[*pendingGroup]bool{} // groups of which a domain proved full
	for _, batch := range batches {
		if len(batch.left) > 0 && batch.domain != nil && !batch.capped {
			full[batch.pending] = true
		}
	}
	for _, batch := range batches {
		if len(batch.left) == 0 {
			continue
		}
		if batch.domain != nil {
			s.counters.assign(batch.pending, batch.domain, -len(batch.left))
			batch.pending.domainFull = true
			batch.pending.choices.exhaust(batch.domain, !batch.capped || !full[batch.pending])
		}
		batch.pending.left = append(slices.Clip(batch.left), batch.pending.left...)
	}
}

// hasAnother reports whether a domain turned the group away in this round and another one is left to try. It is called
// once per round.
func (pg *pendingGroup) hasAnother() bool {
	turned := pg.domainFull
	pg.domainFull = false
	return turned && slices.ContainsFunc(pg.choices.domains, func(d *domain) bool { return !pg.choices.exhausted[d.id] })
}

// retryRefused tries the pods again that rules between pods or limits excluded, now that all others are placed, and
// reports whether any were placed. Groups without remaining attempts are skipped.
func (s *solver) retryRefused(tries map[*pendingGroup]int) bool {
	before := countPods(s.refused)
	open, givenUp := partition(s.refused, func(pg *pendingGroup) bool { return tries[pg] <= attempts })
	again, rest := s.retry(open)
	if len(again) == 0 {
		return false
	}
	s.refused, s.fleet.releases.recent = append(rest, givenUp...), false
	s.together(again)
	return countPods(s.refused) < before
}

// byDepth places groups such that targets of affinity precede the pods that need them.
func (s *solver) byDepth(groups []*pendingGroup) {
	groups = slices.Clone(groups)
	slices.SortStableFunc(groups, func(a, b *pendingGroup) int { return cmp.Compare(a.depth, b.depth) })
	for same := range chunks(groups, func(a, b *pendingGroup) bool { return a.depth == b.depth }) {
		s.together(same)
	}
}

// rwopWaiters tries the held-back pods whose claims remained unused. If identical pods are already unschedulable,
// so are these.
func (s *solver) rwopWaiters() {
	for _, v := range s.rwop.waiters {
		v.pending.attempted = true
	}
	for _, v := range s.rwop.waiters {
		if !v.held || s.rwop.holder(v) != "" {
			continue
		}
		v.held = false
		if len(v.pending.left) > 0 {
			v.pending.left = append(slices.Clip(v.pending.left), v.pod)
			continue
		}
		v.pending.left = []*model.Pod{v.pod}
		s.together([]*pendingGroup{v.pending})
	}
}

// decidesForAll reports whether all other pods of the group must follow its first pod's domain.
func (pg *pendingGroup) decidesForAll() bool {
	return len(pg.left) > 1 && slices.ContainsFunc(pg.rules.affinities, func(a affinityRule) bool { return a.first() })
}

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
