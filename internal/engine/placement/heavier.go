package placement

import (
	"slices"
)

// Limits that recovered capacity. Pools are packed by weight, and pods that a heavier pool cannot take go to a lighter
// one. Later, a bin of the heavier pool may lose pods or types, which releases part of the pool's limits. Then the bins
// of lighter pools are examined again: if a heavier pool can take all pods of a bin, they move there, each within the
// domain in which it is counted.

// preferHeavier moves the pods of bins of lighter pools to heavier pools with released capacity, and reports whether
// any moved.
func (l *launcher) preferHeavier() bool {
	if !l.fleet.releases.ever || l.budget.over() {
		return false
	}
	moved := false
	for _, b := range slices.Clone(l.fleet.bins) {
		if l.fleet.poolOf(b).spotShare == nil && b.reservation == "" && l.moveToHeavier(b) {
			moved = true
		}
	}
	return moved
}

// moveToHeavier packs the pods of the bin again, without it. It takes the result over if all of them are placed, and
// some in a heavier pool.
func (l *launcher) moveToHeavier(b *bin) bool {
	batches, weight := l.batchesOf(b), l.fleet.poolOf(b).spec.Weight
	for _, batch := range batches {
		if !slices.ContainsFunc(l.fleet.pools, func(ps *poolState) bool { return ps.spec.Weight > weight && l.hasRoom(ps, batch) }) {
			return false
		}
	}
	try := l.on(l.fleet.clone(l.fleet.pools...))
	f := try.fleet
	f.bins = slices.DeleteFunc(f.bins, func(c *bin) bool { return c == b })
	kept := len(f.bins)
	for _, s := range b.placed {
		f.counters.addHosts(s.pending.rules, -len(s.pods))
	}
	f.giveBack(b)
	batches = try.launch(batches)
	placed := !slices.ContainsFunc(batches, func(batch *domainBatch) bool { return len(batch.left) > 0 })
	heavier := slices.ContainsFunc(f.bins[kept:], func(c *bin) bool { return f.poolOf(c).spec.Weight > weight })
	if !placed || !heavier {
		return false
	}
	l.fleet.adopt(f)
	return true
}

// batchesOf returns the pods of a bin as batches that must remain in their domains.
func (l *launcher) batchesOf(b *bin) []*domainBatch {
	batches := make([]*domainBatch, len(b.placed))
	for i, s := range b.placed {
		rows := s.pending.rows
		if len(s.pending.rules.pins) > 0 {
			rows = s.pending.pinned(l.snap.Space, domainOfRow(l.snap.Space, s.pending.rules, b.row).atoms)
		}
		batches[i] = &domainBatch{pending: s.pending, left: slices.Clone(s.pods), rows: rows}
	}
	return batches
}

// hasRoom reports whether the pool can launch a node for one of the batch's pods within its limits.
func (l *launcher) hasRoom(ps *poolState, batch *domainBatch) bool {
	return slices.ContainsFunc(offersThatHold(ps, batch, l.fleet.offersTo(ps, batch.pending, batch.rows)), func(o *offer) bool {
		return slices.ContainsFunc(ps.frontWithin(o), func(b typeOffering) bool {
			return ps.holdsNode(o, b) && o.holds(batch.pending.group, b) && !ps.usedUp(b)
		})
	})
}
