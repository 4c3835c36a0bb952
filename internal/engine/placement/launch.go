package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// launcher opens bins: it determines which batches go to which pool, and keeps the best packing of each.
type launcher struct {
	snap   *model.Snapshot
	opts   *Options
	budget *budget
	fleet  *fleet
}

// on returns a launcher for a what-if.
func (l *launcher) on(f *fleet) *launcher {
	other := *l
	other.fleet = f
	return &other
}

// launch opens new bins, pool by pool in order of weight, among equals by price. Pods that a pool cannot take, because
// of its limits or types, go to the next pool.
func (l *launcher) launch(batches []*domainBatch) {
	for _, tier := range l.tiers() {
		for _, g := range l.poolOrders(tier, batches) {
			from := len(l.fleet.bins)
			if cands := l.candidates(g.pool, g.batches); len(cands) > 0 {
				l.packBest(g.pool, cands)
			}
			l.detectInversion(g.pool, batches, from)
		}
	}
}

// candidates lists the batches that still have pods and that some available type can hold.
func (l *launcher) candidates(ps *poolState, batches []*domainBatch) []*packCandidate {
	var list []*packCandidate
	for _, batch := range batches {
		if len(batch.left) == 0 {
			continue
		}
		if cand := l.candidate(ps, batch); cand != nil {
			list = append(list, cand)
		}
	}
	return list
}

// candidate returns the batch if some type that is available in the pool can hold it, else nil.
func (l *launcher) candidate(ps *poolState, batch *domainBatch) *packCandidate {
	return newCandidate(ps, batch, l.fleet.offersTo(ps, batch.pending, batch.rows))
}

func newCandidate(ps *poolState, batch *domainBatch, offers []*offer) *packCandidate {
	if daemonsExclude(batch.pending, ps.daemons) {
		return nil
	}
	cand := &packCandidate{batch: batch, pending: batch.pending, left: batch.left, costFactor: 1}
	for _, o := range offers {
		if slices.ContainsFunc(o.front, func(b typeOffering) bool { return o.holds(batch.pending.group, b) }) {
			cand.offers = append(cand.offers, o)
		}
	}
	if len(cand.offers) == 0 {
		return nil
	}
	return cand
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
		low, high := b.ranks()
		v.served[ps.index] = min(v.served[ps.index], low)
		if b.reservation != "" {
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
	cand := newCandidate(ps, batch, l.fleet.offersBeyondLimit(ps, batch.pending, batch.rows))
	if cand == nil {
		return false
	}
	return ps.nodes == 0 || !slices.ContainsFunc(cand.offers, func(o *offer) bool {
		return slices.ContainsFunc(o.front, func(b typeOffering) bool {
			return ps.holdsNode(o, b) && o.holds(batch.pending.group, b)
		})
	})
}

// missesReservation reports whether pods of the batch were placed, in the bins since from, on a node without
// reservation although a used-up reservation would have held them.
func (l *launcher) missesReservation(ps *poolState, batch *domainBatch, from int) bool {
	unreserved := slices.ContainsFunc(l.fleet.bins[from:], func(b *bin) bool {
		return b.reservation == "" && slices.ContainsFunc(b.placed, func(s placedPods) bool { return s.pending == batch.pending })
	})
	if !unreserved {
		return false
	}
	for _, o := range l.fleet.offersTo(ps, batch.pending, batch.rows) {
		_, classes := ps.spec.Types.Offered(o.row)
		for _, i := range classes {
			c := &ps.spec.Types.Classes[i]
			if c.ReservationID == "" || ps.reservations.left[c.ReservationID] > 0 {
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
