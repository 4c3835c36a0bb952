package placement

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// Rules that cannot bind. Anti-affinity that selects no pod, on a node or to be placed, excludes no domain and no host. A
// spread constraint that selects no more pods than its maxSkew admits all of them anywhere. Preferred affinity to no pod
// cannot be satisfied. Such rules are left out: the pods are placed as pods without the rule are. Spread constraints that
// merely may bind are handled in loose.go.

// dropIdle leaves out the rules that cannot bind, for the groups and all levels compiled so far.
func (q *queue) dropIdle(groups []*pendingGroup) {
	if len(q.counters.all) == 0 && len(q.counters.totals) == 0 {
		return
	}
	q.onHosts = slices.Clone(q.counters.totals)
	for _, pg := range groups {
		for _, c := range pg.rules.touched {
			c.groups++
			c.pending += len(pg.pods)
		}
		for _, slot := range pg.rules.hostTouched {
			q.onHosts[slot] += len(pg.pods)
		}
	}
	for _, d := range q.counters.daemons {
		for _, slot := range d.slots {
			q.onHosts[slot] = math.MaxInt32 // as many as there will be nodes
		}
	}
	for _, pg := range groups {
		for _, rs := range pg.compiled {
			q.dropIdleOf(rs)
		}
	}
	for _, pg := range groups {
		for _, rs := range pg.compiled {
			rs.pinUsed()
		}
	}
}

// dropIdleOf leaves out the rules that cannot bind.
func (q *queue) dropIdleOf(rs *rules) {
	rs.hostApart = slices.DeleteFunc(rs.hostApart, func(slot int) bool { return q.onHosts[slot] == 0 })
	rs.hostAffinities = slices.DeleteFunc(rs.hostAffinities, func(a hostAffinity) bool { return a.separate && q.onHosts[a.slot] == 0 })
	if !q.counters.someNameless { // spread by host excludes nodes without the label
		rs.hostSpreads = slices.DeleteFunc(rs.hostSpreads, func(s hostSpread) bool { return q.onHosts[s.slot] <= s.maxSkew })
	}
	rs.spreads = slices.DeleteFunc(rs.spreads, func(s spreadRule) bool {
		if s.counter.total+s.counter.pending > s.maxSkew || !q.everyNodeHas(s.counter.key) {
			return false
		}
		if s.self {
			rs.idle = append(rs.idle, s.counter.key)
		}
		return true
	})
	rs.apart = slices.DeleteFunc(rs.apart, func(c *counter) bool { return c.total+c.pending == 0 })
	for i := range rs.spreads {
		rs.spreads[i].counter.used = true
	}
	for i := range rs.affinities {
		rs.affinities[i].counter.used = true
	}
	for _, c := range rs.apart {
		c.used = true
	}
}

// pinUsed pins the keys of the remaining rules and of the counters that they read.
func (r *rules) pinUsed() {
	pinned := r.pins
	r.pins = nil
	r.touched = slices.DeleteFunc(r.touched, func(c *counter) bool { return !c.used })
	for i := range r.spreads {
		r.pin(r.spreads[i].counter.key)
	}
	for i := range r.affinities {
		r.pin(r.affinities[i].counter.key)
	}
	for _, c := range r.apart {
		r.pin(c.key)
	}
	for _, c := range r.touched {
		if slices.Contains(pinned, c.key) {
			r.pin(c.key)
		}
	}
	r.own = slices.DeleteFunc(r.own, func(key label.Key) bool { return !slices.Contains(r.pins, key) })
}

// everyNodeHas reports whether all nodes have the label, and all that pools may launch: spread constraints exclude nodes
// without it.
func (q *queue) everyNodeHas(key label.Key) bool {
	has, known := q.everywhere[key]
	if known {
		return has
	}
	space := q.snap.Space
	has = true
	for _, n := range q.snap.Nodes {
		has = has && !space.AllowsAbsent(n.Row, key)
	}
	for _, ps := range q.fleet.pools {
		has = has && (!ps.usable() || !ps.launchableIn(space, key, space.Absent(key)))
	}
	if q.everywhere == nil {
		q.everywhere = map[label.Key]bool{}
	}
	q.everywhere[key] = has
	return has
}

// pinIdle decides the domains of bins with pods of spread constraints that were left out. When there are more such pods,
// the constraint may bind, and a node in flight counts in its domain only if that is decided.
func (f *fleet) pinIdle() {
	for _, b := range f.bins {
		for _, s := range b.placed {
			for _, key := range s.pending.rules.idle {
				f.pinKey(b, key)
			}
		}
	}
}

// pinKey narrows the bin to the value of the label that its cheapest node has, if that leaves a claim of enough variety.
func (f *fleet) pinKey(b *bin, key label.Key) {
	ps := f.poolOf(b)
	if domainOf(f.snap.Space, b.row, key) >= 0 {
		return
	}
	for cheapest := range ps.cheapestFirst(b.kinds, b.row) {
		atom := domainOf(f.snap.Space, ps.pinned(b.row, cheapest.class), key)
		if atom < 0 {
			return
		}
		row := slices.Clone(b.row)
		f.snap.Space.SetOnly(row, key, atom)
		kinds := f.kindsFor(ps, b, row, b.used)
		if kinds.AndWith(b.kinds); !ps.lacking(b, kinds, row) {
			b.row, b.kinds = row, kinds
			f.recharge(b)
		}
		return
	}
}
