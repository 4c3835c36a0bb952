package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Priority where something is scarce. In one round pods of higher priority come first, and that is enough as long as
// nobody needs more rounds: but a group that drops wishes, or that waits until those it wants to be near have a place,
// comes to the market later than others of lower priority. A run notices when that cost somebody the rest of a limit
// or of a reservation (inversion). Then everything is solved again rank by rank: nobody is looked at before those of
// higher priority have their places, at the cost of a packing that knows less.

// mode is how a run goes through its tasks.
type mode uint8

const (
	// whole: everybody who need not wait for others at once.
	whole mode = iota
	// ranked: rank by rank.
	ranked
	// portioned: a few groups at a time, until the work budget is spent.
	portioned
)

// noteRanks looks at what was bought in a market since it had from bins, and notices an inversion.
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

// scarce reports whether the pool may have only so much.
func (m *market) scarce() bool {
	return m.limited() || m.nodes != model.NoLimit || len(m.reservations) > 0
}

// ranks are the lowest and the highest among the pods of the bin.
func (b *bin) ranks() (low, high int32) {
	low, high = math.MaxInt32, math.MinInt32
	for _, s := range b.shares {
		low, high = min(low, s.task.rank), max(high, s.task.rank)
	}
	return low, high
}

// limitsTurnAway reports whether the lot could buy in the market if it were not for the limits.
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

// missesReservation reports whether pods of the lot went, since there were from bins, onto a node that is bought as it
// comes, though a reservation that is used up would have held them.
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

// byRank splits the tasks by rank, the highest first. Somebody whom pods of a higher rank want to be near goes with
// them.
func (r *run) byRank() [][]*task {
	r.sendScouts()
	tasks := slices.Clone(r.tasks)
	slices.SortStableFunc(tasks, func(a, b *task) int { return cmp.Compare(b.rank, a.rank) })
	return slices.Collect(chunks(tasks, func(a, b *task) bool { return a.rank == b.rank }))
}

// sendScouts splits one pod off those groups that a group of higher rank must be near, when nobody else is there to be
// near to, and gives it that rank.
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

// split takes one pod from the task of highest rank among those that have pods left, when that is lower than the rank.
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
