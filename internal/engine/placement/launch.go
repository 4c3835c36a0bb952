package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// launcher opens bins: it determines which batches go to which pool, and keeps the best packing of each.
type launcher struct {
	snap     *model.Snapshot
	opts     *Options
	budget   *budget
	fleet    *fleet
	assigner *assigner
}

// on returns a launcher for a what-if.
func (l *launcher) on(f *fleet) *launcher {
	other := *l
	other.fleet = f
	return &other
}

// launch opens new bins, in the pools of the highest weight first. Pools of equal weight are one market: each bin is
// opened where its content costs least. Pods that no pool of a weight can take, because of limits or types, go to the
// next weight. It returns the batches, some of which may have other domains.
func (l *launcher) launch(batches []*domainBatch) []*domainBatch {
	batches = l.withAnyDomain(batches)
	for _, tier := range l.tiers() {
		from := len(l.fleet.bins)
		pools, cands := l.candidates(tier, batches)
		if l.budget.ended = l.opts.NoLaunch && len(cands) > 0; l.budget.ended {
			break
		}
		if len(cands) > 0 && !l.packWithin(pools, cands) {
			batches = l.assignRest(batches)
			if pools, cands = l.candidates(tier, batches); len(cands) > 0 {
				l.packBest(pools, cands)
			}
		}
		for _, ps := range tier {
			l.detectInversion(ps, batches, from)
		}
	}
	return l.assignRest(batches)
}

// tiers groups the pools by weight.
func (l *launcher) tiers() [][]*poolState {
	return slices.Collect(chunks(l.fleet.pools, func(a, b *poolState) bool { return a.spec.Weight == b.spec.Weight }))
}

// candidates lists the batches that still have pods and that some available type can hold, and the pools that can take
// any of them. It omits pools that have the same to offer as an earlier one: of equal bins, that of the first pool is opened.
func (l *launcher) candidates(tier []*poolState, batches []*domainBatch) ([]*poolState, []*packCandidate) {
	var pools []*poolState
	list, of := []*packCandidate(nil), make([]*packCandidate, len(batches))
	for _, ps := range tier {
		if slices.ContainsFunc(pools, func(first *poolState) bool { return l.replaces(first, ps, batches) }) {
			continue
		}
		used := false
		for i, batch := range batches {
			if len(batch.left) == 0 {
				continue
			}
			if of[i] == nil {
				of[i] = l.candidate(batch)
			}
			if offers := l.offersTo(ps, of[i]); len(offers.offers) > 0 {
				of[i].offers = append(of[i].offers, offers)
				used = true
			}
		}
		if used {
			pools = append(pools, ps)
		}
	}
	for _, cand := range of {
		if cand != nil && len(cand.offers) > 0 {
			list = append(list, cand)
		}
	}
	return pools, list
}

// replaces reports whether any bin of the second pool could as well be one of the first, at the same cost: their nodes
// differ in the pool's name alone, by which no batch tells these two pools apart, and the first pool has no limit.
func (l *launcher) replaces(first, second *poolState, batches []*domainBatch) bool {
	a, b, space := first.spec, second.spec, l.snap.Space
	if a.Types != b.Types || a.Rooms != b.Rooms || first.nodePrice != second.nodePrice || first.scarce() || first.shared() ||
		len(first.minimums) > 0 || !slices.Equal(a.Taints, b.Taints) || len(first.paused) > 0 || len(second.paused) > 0 ||
		!slices.EqualFunc(first.daemons, second.daemons, func(d, e daemonPod) bool { return d.index == e.index }) {
		return false
	}
	pool, _ := space.Lookup(model.LabelPool)
	for k := label.Key(0); int(k) < space.Len(); k++ {
		if k != pool && !space.EqualKey(a.Start, b.Start, k) {
			return false
		}
	}
	from, to := space.Span(pool)
	admits := func(row label.Row, p *model.Pool) bool {
		return bitset.Set(row[from:to]).Intersects(bitset.Set(p.Start[from:to]))
	}
	return !slices.ContainsFunc(batches, func(batch *domainBatch) bool {
		return slices.Contains(batch.pending.rules.pins, pool) ||
			slices.ContainsFunc(batch.pending.rows, func(row label.Row) bool { return admits(row, a) != admits(row, b) })
	})
}

func (l *launcher) candidate(batch *domainBatch) *packCandidate {
	cand := &packCandidate{batch: batch, pending: batch.pending, left: batch.left, costFactor: 1}
	if batch.anyDomain {
		batch.skew = l.assigner.admission.newSkewLimits(batch.pending, len(batch.left))
		cand.skew = batch.skew
	}
	return cand
}

// offersTo returns the pool's offers to a candidate.
func (l *launcher) offersTo(ps *poolState, cand *packCandidate) poolOffers {
	if cand.skew != nil {
		return l.offersByDomain(ps, cand.batch, cand.skew)
	}
	return poolOffers{pool: ps.index, offers: offersThatHold(ps, cand.batch, l.fleet.offersTo(ps, cand.pending, cand.batch.rows))}
}

// poolOffers are the offers of one pool, which has the index. domains are the indexes of their domains in the skew of
// the candidate, if it has one.
type poolOffers struct {
	pool    int
	offers  []*offer
	domains []int
}

// in returns the offers of a pool.
func (cand *packCandidate) in(pool int) *poolOffers {
	if len(cand.offers) == 1 && cand.offers[0].pool == pool { // nearly always
		return &cand.offers[0]
	}
	for i := range cand.offers { // few, and often asked
		if cand.offers[i].pool == pool {
			return &cand.offers[i]
		}
	}
	return &poolOffers{}
}

// may returns how many of the pods the domain of the pool's i-th offer may get.
func (cand *packCandidate) may(in *poolOffers, i int) int {
	if cand.skew == nil {
		return len(cand.left)
	}
	return cand.skew.may[in.domains[i]]
}

// offersThatHold returns those of the pool's offers to the batch that have a type for one of its pods.
func offersThatHold(ps *poolState, batch *domainBatch, offers []*offer) []*offer {
	if len(offers) == 0 || daemonsExclude(batch.pending, ps.daemons) {
		return nil
	}
	var list []*offer
	for _, o := range offers {
		if slices.ContainsFunc(o.front, func(b typeOffering) bool { return o.holds(batch.pending.group, b) }) {
			list = append(list, o)
		}
	}
	return list
}

// inversion is what a run knows about pods of a higher priority that lost scarce capacity to lower ones.
type inversion struct {
	// manyRanks: pods differ in priority. found: there is an inversion.
	manyRanks, found bool
	// served is, by pool, the lowest rank that a node was opened for, reserved the lowest that a reservation was used
	// for.
	served   []int32
	reserved int32
}

// detectInversion examines the bins opened in a pool since from, and detects an inversion.
func (l *launcher) detectInversion(ps *poolState, batches []*domainBatch, from int) {
	v := l.fleet.inversion
	if l.budget.mode != whole || v.found || !v.manyRanks || !ps.scarce() {
		return
	}
	for _, b := range l.fleet.bins[from:] {
		if b.pool != ps.index {
			continue
		}
		low, high := b.ranks()
		v.served[ps.index] = min(v.served[ps.index], low)
		if b.reservation != "" && ps.spec.Types.Classes[b.class].Units == 0 {
			v.reserved = min(v.reserved, high)
		}
	}
	for _, batch := range batches {
		rank := batch.pending.rank
		if rank > v.served[ps.index] && len(batch.left) > 0 && l.limitsTurnAway(ps, batch) ||
			rank > v.reserved && l.missesReservation(ps, batch, from) {
			v.found = true
			return
		}
	}
}

// limitsTurnAway reports whether a node could be launched for the batch in the pool without the limits.
func (l *launcher) limitsTurnAway(ps *poolState, batch *domainBatch) bool {
	offers := offersThatHold(ps, batch, l.fleet.offersBeyondLimit(ps, batch.pending, batch.rows))
	if len(offers) == 0 {
		return false
	}
	return ps.full() || !slices.ContainsFunc(offers, func(o *offer) bool {
		return slices.ContainsFunc(ps.frontWithin(o), func(b typeOffering) bool {
			return ps.holdsNode(o, b) && o.holds(batch.pending.group, b)
		})
	})
}

// missesReservation reports whether pods of the batch were placed, in the bins since from, on a node without
// reservation although a used-up reservation would have held them.
func (l *launcher) missesReservation(ps *poolState, batch *domainBatch, from int) bool {
	unreserved := slices.ContainsFunc(l.fleet.bins[from:], func(b *bin) bool {
		return b.pool == ps.index && b.reservation == "" && slices.ContainsFunc(b.placed,
			func(s placedPods) bool { return s.pending == batch.pending })
	})
	if !unreserved {
		return false
	}
	for _, o := range l.fleet.offersTo(ps, batch.pending, batch.rows) {
		_, classes := ps.spec.Types.Offered(o.row)
		for _, i := range classes {
			c := &ps.spec.Types.Classes[i]
			if c.Units > 0 || ps.reservations.permits(c) { // without its commitment, a node costs more, and exists
				continue
			}
			for t := range c.Types.All() {
				if o.types.Has(t) && batch.pending.group.Requests.Fits(o.rooms.Of(i).Net[t]) {
					return true
				}
			}
		}
	}
	return false
}

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
		if !slices.ContainsFunc(l.fleet.pools, func(ps *poolState) bool { return ps.spec.Weight > weight && l.canLaunch(ps, batch) }) {
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

// canLaunch reports whether the pool can launch a node for one of the batch's pods within its limits.
func (l *launcher) canLaunch(ps *poolState, batch *domainBatch) bool {
	return slices.ContainsFunc(offersThatHold(ps, batch, l.fleet.offersTo(ps, batch.pending, batch.rows)), func(o *offer) bool {
		return slices.ContainsFunc(ps.frontWithin(o), func(b typeOffering) bool {
			return ps.holdsNode(o, b) && o.holds(batch.pending.group, b) && !ps.usedUp(b)
		})
	})
}
