package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/engine/spotshare"
)

// Bins of pools with a limit on the share of one type in one zone; see package spotshare.

// narrowToSlot narrows a bin that is about to be opened to the cheapest open slot, and reports whether there is one. A
// bin that would cost more than expected is not opened if another one was opened before it, or if the shares changed
// since it was chosen: another content may then be better.
func (f *fleet) narrowToSlot(ps *poolState, b *bin, expected int64, more bool) bool {
	if b.reservation != "" {
		return true // a reservation is not spot
	}
	_, classes := ps.offeredTo(b, b.row)
	for _, one := range ps.spotShare.Slots(b.kind, b.kinds, classes) {
		row := slices.Clone(b.row) // copies of the bin share the row
		if one.Class >= 0 {
			ps.spec.Types.Classes[one.Class].Pin(f.snap.Space, row)
		} else {
			f.withoutSpot(row)
		}
		if f.unsuitable(b, one.Kinds, row) {
			continue
		}
		if ps.spotShare.Declines(&one, expected, more) {
			return false
		}
		ps.spotShare.Take(&one)
		b.row, b.kinds = row, one.Kinds
		b.typeOffering = ps.priced(b.kinds, b.row)[0]
		b.lowest = b.price
		b.use.Total, b.use.Price = ps.spec.Types.Largest(b.row, b.kinds, ps.limitsPrice)
		b.free = ps.possibleRooms(b.row).Least(b.kind).Sub(b.used)
		return true
	}
	return false
}

// retrySeed continues with a seed for which no bin was opened; b is the best one, if any was found. If the open types in
// zones have changed, the seed is tried again. Otherwise a bin that is not spot is opened, because other pods of that
// bin may require spot, and the seed alone may not. If there is none, the seed is tried in the other pools. It returns
// the opened bin, if any, and whether the seed may have a bin.
func (k *packing) retrySeed(seed *packCandidate, b *bin, found bool) (*bin, bool) {
	changed := false
	for _, ps := range k.pools {
		if ps.spotShare != nil && ps.spotShare.Outdated() {
			ps.spotShare.Refresh()
			changed = true
		}
	}
	if changed || !found {
		return nil, changed
	}
	ps := k.fleet.poolOf(b)
	if ps.spotShare != nil {
		if best, opened := k.withoutSpot(ps, seed); opened {
			return best, true
		}
	}
	k.shut[seed] = append(k.shut[seed], ps.index)
	return nil, len(k.shut[seed]) < len(seed.offers)
}

// withoutSpot opens a bin that is not spot for the seed in the pool.
func (k *packing) withoutSpot(ps *poolState, seed *packCandidate) (*bin, bool) {
	onDemand, asks := *seed, requestsSpecial(k.fleet.snap, seed.pending.group)
	plainOnly, in := poolOffers{pool: ps.index}, seed.in(ps.index)
	for i, o := range in.offers {
		row := slices.Clone(o.row)
		k.fleet.withoutSpot(row)
		plain := ps.offer(k.fleet.snap.Space, row, asks)
		if slices.ContainsFunc(plain.front, func(b typeOffering) bool { return plain.holds(seed.pending.group, b) }) {
			plainOnly.offers = append(plainOnly.offers, plain)
			if in.domains != nil {
				plainOnly.domains = append(plainOnly.domains, in.domains[i])
			}
		}
	}
	onDemand.offers = []poolOffers{plainOnly}
	best, found := k.bestBin(&onDemand)
	if found = found && k.fleet.commit(ps, best, k.pace()); found {
		seed.left = onDemand.left
		ps.spotShare.Refresh()
	}
	return best, found
}

// withoutSpot removes spot from the capacity types of the row.
func (f *fleet) withoutSpot(row label.Row) {
	if key, known := f.snap.Space.Lookup(model.LabelCapacityType); known {
		from, to := f.snap.Space.Span(key)
		bitset.Set(row[from:to]).Remove(f.snap.Space.Atom(key, spotshare.Spot))
	}
}

// fitsShare reports whether an offering of the pool that is not oversized holds a pod of the seed.
func (k *packing) fitsShare(ps *poolState, seed *packCandidate) bool {
	return ps.spotShare != nil && slices.ContainsFunc(seed.in(ps.index).offers, func(o *offer) bool {
		return slices.ContainsFunc(k.rank(ps, o), func(p rankedOffering) bool {
			return !ps.spotShare.Oversized(p.kind, p.class) && o.holds(seed.batch.pending.group, p.typeOffering)
		})
	})
}

// shareVersion changes whenever the spot share of a pool permits other offerings.
func (k *packing) shareVersion() int {
	version := 0
	for _, ps := range k.pools {
		if ps.spotShare != nil {
			version += ps.spotShare.Version()
		}
	}
	return version
}

// beginShare prepares the pool's spot share for the packing.
func (k *packing) beginShare(ps *poolState) {
	if ps.spotShare == nil {
		return
	}
	var requested int64
	for _, cand := range k.candidates {
		if len(cand.in(ps.index).offers) > 0 {
			requested += cand.batch.pending.group.Requests.At(quantity.CPU) * int64(len(cand.batch.left))
		}
	}
	ps.spotShare.Begin(requested)
}

// shared reports whether the pool limits the share of one type in one zone.
func (ps *poolState) shared() bool { return ps.spotShare != nil }

// openList lists every type available in one of the classes, at its cheapest offering within its share, cheapest first.
func (ps *poolState) openList(classes []int) []typeOffering {
	x := ps.spec.Types
	list := make([]typeOffering, 0, x.Len())
	for t := range x.Len() {
		if best := ps.spotShare.Cheapest(t, classes); best >= 0 {
			list = append(list, typeOffering{kind: t, class: best, price: x.Classes[best].Price[t]})
		}
	}
	sortOfferings(list)
	return list
}
