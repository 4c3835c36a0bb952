package placement

import "slices"

// Limits that recovered capacity. Pools are packed by weight, and pods that a heavier pool cannot take go to a lighter
// one. Later, a bin of the heavier pool may lose pods or types, which releases part of the pool's limits. Then the bins
// of lighter pools are examined again: if a heavier pool can take all pods of a bin, they move there, each within the
// domain in which it is counted.

// preferHeavier moves the pods of bins of lighter pools to heavier pools with released capacity, and reports whether
// any moved.
func (r *run) preferHeavier() bool {
	if !r.returned || r.over() {
		return false
	}
	moved := false
	for _, b := range slices.Clone(r.bins) {
		if b.market.share == nil && b.holds == "" && r.moveToHeavier(b) {
			moved = true
		}
	}
	return moved
}

// moveToHeavier removes the bin and packs its pods again. Unless all of them are placed, and some in a heavier pool,
// the state is restored.
func (r *run) moveToHeavier(b *bin) bool {
	lots := r.lotsOf(b)
	for _, l := range lots {
		if !slices.ContainsFunc(r.pools, func(m *market) bool { return m.pool.Weight > b.market.pool.Weight && r.hasRoom(m, l) }) {
			return false
		}
	}
	before := r.saveTier(r.pools, lots)
	r.bins = slices.DeleteFunc(r.bins, func(c *bin) bool { return c == b })
	kept := len(r.bins)
	for _, s := range b.shares {
		r.counters.addHosts(s.task.rules, -len(s.pods))
	}
	r.giveBack(b)
	r.buy(lots)
	placed := !slices.ContainsFunc(lots, func(l *lot) bool { return len(l.left) > 0 })
	heavier := slices.ContainsFunc(r.bins[kept:], func(c *bin) bool { return c.market.pool.Weight > b.market.pool.Weight })
	if !placed || !heavier {
		before.restore(r)
		return false
	}
	return true
}

// lotsOf returns the pods of a bin as lots that must remain in their domains.
func (r *run) lotsOf(b *bin) []*lot {
	lots := make([]*lot, len(b.shares))
	for i, s := range b.shares {
		rows := s.task.rows
		if len(s.task.rules.pins) > 0 {
			rows = r.pinned(s.task, r.domainOfRow(s.task, b.row).atoms)
		}
		lots[i] = &lot{task: s.task, left: slices.Clone(s.pods), rows: rows}
	}
	return lots
}

// hasRoom reports whether the pool can launch a node for one of the lot's pods within its limits.
func (r *run) hasRoom(m *market, l *lot) bool {
	p := r.prospect(m, l)
	return p != nil && slices.ContainsFunc(p.offers, func(o *offer) bool {
		return slices.ContainsFunc(o.front, func(b purchase) bool {
			_, within := m.within(m.pool.Types.Total[b.kind])
			return within && m.holds(l.group, b.kind) && !m.usedUp(b)
		})
	})
}

// shrink changes a bin that lost pods to the smaller types that hold the rest, and returns the difference to the
// limits.
func (r *run) shrink(b *bin) {
	m := b.market
	if m.share != nil || b.holds != "" {
		return
	}
	kinds := r.kindsFor(m, b, b.row, b.used)
	cheapest, some := purchase{}, false
	for p := range m.cheapestFirst(kinds, b.row) {
		if _, within := m.within(m.pool.Types.Total[p.kind].Sub(b.charged)); within {
			cheapest, some = p, true
			break
		}
	}
	if !some {
		return
	}
	if m.limited() {
		kinds = r.withinLimits(m, kinds, cheapest.kind)
	}
	kinds = r.cut(m, kinds, b.row)
	if kinds.Empty() || !r.opts.RelaxMinValues && !m.diverse(kinds).OK() || r.crewed() && r.clashes(m, b.row, kinds, b.tasks()...) {
		return
	}
	b.purchase, b.kinds, b.lowest = cheapest, kinds, m.lowestPrice(kinds, b.row)
	b.free = r.widest(b).Sub(b.used)
	r.recharge(b)
}
