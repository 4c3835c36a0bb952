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

// mode is how a run processes its tasks.
type mode uint8

const (
	// whole: all tasks that need not wait for others, at once.
	whole mode = iota
	// ranked: rank by rank.
	ranked
	// portioned: a few groups at a time, until the work budget is spent.
	portioned
)

// noteRanks examines the bins opened in a market since from, and detects an inversion.
func (r *run) noteRanks(m *market, lots []*lot, from int) {
	if r.mode != whole || r.inverted || !r.unequal || !m.scarce() {
		return
	}
	for _, b := range r.bins[from:] {
		low, high := b.ranks()
		m.served = min(m.served, low)
		if b.holds != "" {
			r.reserved = min(r.reserved, high)
		}
	}
	for _, l := range lots {
		if l.rank > m.served && len(l.left) > 0 && r.limitsTurnAway(m, l) || l.rank > r.reserved && r.missesReservation(m, l, from) {
			r.inverted = true
			return
		}
	}
}

// scarce reports whether the pool has any limit or reservation.
func (m *market) scarce() bool {
	return m.limited() || m.nodes != model.NoLimit || len(m.reservations) > 0
}

// ranks returns the lowest and the highest rank among the pods of the bin.
func (b *bin) ranks() (low, high int32) {
	low, high = math.MaxInt32, math.MinInt32
	for _, s := range b.shares {
		low, high = min(low, s.task.rank), max(high, s.task.rank)
	}
	return low, high
}

// limitsTurnAway reports whether a node could be launched for the lot in the market without the limits.
func (r *run) limitsTurnAway(m *market, l *lot) bool {
	nodes := m.nodes
	if m.nodes == 0 {
		m.nodes = 1 // a pool that may have no further node offers nothing
	}
	p := r.prospect(m, l)
	m.nodes = nodes
	if p == nil {
		return false
	}
	return nodes == 0 || !slices.ContainsFunc(p.offers, func(o *offer) bool {
		return slices.ContainsFunc(o.front, func(b purchase) bool {
			_, within := m.within(m.pool.Types.Total[b.kind])
			return within && m.holds(l.group, b.kind)
		})
	})
}

// missesReservation reports whether pods of the lot were placed, in the bins since from, on a node without reservation
// although a used-up reservation would have held them.
func (r *run) missesReservation(m *market, l *lot, from int) bool {
	onSale := slices.ContainsFunc(r.bins[from:], func(b *bin) bool {
		return b.holds == "" && slices.ContainsFunc(b.shares, func(s share) bool { return s.task == l.task })
	})
	if !onSale {
		return false
	}
	for _, o := range r.offersTo(m, l.task, l.rows) {
		_, classes := m.pool.Types.Offered(o.row)
		for _, i := range classes {
			c := &m.pool.Types.Classes[i]
			if c.ReservationID == "" || m.reservations[c.ReservationID] > 0 {
				continue
			}
			for t := range c.Types.All() {
				if o.types.Has(t) && l.group.Requests.Fits(m.pool.Net[t]) {
					return true
				}
			}
		}
	}
	return false
}

// byRank splits the tasks by rank, the highest first. A pod that is the affinity target of a higher rank is placed with
// that rank.
func (r *run) byRank() [][]*task {
	r.sendScouts()
	tasks := slices.Clone(r.tasks)
	slices.SortStableFunc(tasks, func(a, b *task) int { return cmp.Compare(b.rank, a.rank) })
	return slices.Collect(chunks(tasks, func(a, b *task) bool { return a.rank == b.rank }))
}

// sendScouts splits one pod off each group that a group of higher rank requires by affinity, when no other target
// exists, and assigns it that rank.
func (r *run) sendScouts() {
	byMark := map[int][]*task{}
	hear := func(t *task) {
		for _, m := range t.group.Matches {
			byMark[m] = append(byMark[m], t)
		}
	}
	for _, t := range r.tasks {
		hear(t)
	}
	waiting := slices.Clone(r.tasks)
	for i := 0; i < len(waiting); i++ {
		t := waiting[i]
		for k := range t.group.Terms {
			mark := t.group.TermMarks[k]
			if term := &t.group.Terms[k]; term.Anti || !term.Required() || slices.Contains(t.group.Matches, mark) || r.counters.anywhere(mark) {
				continue
			}
			if scout := split(byMark[mark], t.rank); scout != nil {
				r.tasks = append(r.tasks, scout)
				waiting = append(waiting, scout)
				hear(scout)
			}
		}
	}
}

// split takes one pod from the task of the highest rank with remaining pods, if that rank is lower than the given one.
func split(tasks []*task, rank int32) *task {
	var from *task
	for _, t := range tasks {
		if len(t.left) > 0 && (from == nil || t.rank > from.rank) {
			from = t
		}
	}
	if from == nil || from.rank >= rank {
		return nil
	}
	scout := *from
	scout.rank = rank
	scout.left, from.left = from.left[:1:1], from.left[1:]
	scout.pods = scout.left
	from.pods = slices.DeleteFunc(slices.Clone(from.pods), func(p *model.Pod) bool { return p == scout.left[0] })
	return &scout
}

// anywhere reports whether some node has a pod with the mark.
func (c *counters) anywhere(mark int) bool {
	if slot := c.slotOf[mark]; slot >= 0 && c.totals[slot] > 0 {
		return true
	}
	return slices.ContainsFunc(c.byMark[mark], func(c *counter) bool { return c.total > 0 })
}
