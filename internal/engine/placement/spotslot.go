package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Where a spot bin may be launched; see spotshare.go.

// slot is where a bin may be launched: a class of offerings, with some of its types. The class is -1 for all that is
// not spot.
type slot struct {
	class int
	kinds bitset.Set
	price int64
	load  int64
}

// slots lists where the bin may be launched, the cheapest first; of equals the one with the least load.
func (s *spotShare) slots(ps *poolState, b *bin) []slot {
	var list []slot
	_, classes := ps.offeredTo(b, b.row)
	var plain []int
	for _, i := range classes {
		c := &ps.spec.Types.Classes[i]
		if c.CapacityType != spotCapacity {
			plain = append(plain, i)
			continue
		}
		for rest := range s.rests {
			if one, ok := s.slotOf(ps, b, i, rest); ok {
				list = append(list, one)
			}
		}
	}
	if one, ok := slotOfPlain(ps, b, plain); ok {
		list = append(list, one)
	}
	slices.SortStableFunc(list, func(x, y slot) int { return cmp.Or(cmp.Compare(x.price, y.price), cmp.Compare(x.load, y.load)) })
	return list
}

// slotOf returns a class with the types of one remainder that are within their shares.
func (s *spotShare) slotOf(ps *poolState, b *bin, class, rest int) (slot, bool) {
	c := &ps.spec.Types.Classes[class]
	one := slot{class: class, kinds: bitset.New(ps.spec.Types.Len()), price: math.MaxInt64}
	most := max(s.most, ps.spec.Types.Total[b.kind].At(quantity.CPU))
	for kind := range b.kinds.All() {
		if kind%s.rests == rest && c.Types.Has(kind) && ps.spec.Types.Total[kind].At(quantity.CPU) <= most {
			one.kinds.Add(kind)
		}
	}
	if one.kinds.Empty() {
		return one, false
	}
	whole := s.whole + leastCPU(ps.spec, one.kinds)
	for kind := range one.kinds.Clone().All() {
		at := typeZone{kind, c.Zone}
		if !s.admits(ps.spec, at, whole) {
			one.kinds.Remove(kind)
			continue
		}
		one.price, one.load = min(one.price, c.Price[kind]), max(one.load, s.load[at])
	}
	return one, !one.kinds.Empty()
}

// slotOfPlain returns everything that is not spot.
func slotOfPlain(ps *poolState, b *bin, classes []int) (slot, bool) {
	one := slot{class: -1, kinds: bitset.New(ps.spec.Types.Len()), price: math.MaxInt64}
	for _, i := range classes {
		c := &ps.spec.Types.Classes[i]
		for kind := range c.Types.All() {
			if b.kinds.Has(kind) {
				one.kinds.Add(kind)
				one.price = min(one.price, c.Price[kind])
			}
		}
	}
	return one, !one.kinds.Empty()
}

// narrowToSlot narrows a bin that is about to be opened to the cheapest open slot, and reports whether there is one. A
// bin that would cost more than expected is not opened if another one was opened before it, or if the shares changed
// since it was chosen: another content may then be better.
func (f *fleet) narrowToSlot(ps *poolState, b *bin, expected int64, more bool) bool {
	if b.reservation != "" {
		return true // a reservation is not spot
	}
	for _, one := range ps.spotShare.slots(ps, b) {
		row := slices.Clone(b.row) // copies of the bin share the row
		if one.class >= 0 {
			ps.spec.Types.Classes[one.class].Pin(f.snap.Space, row)
		} else {
			f.withoutSpot(row)
		}
		if f.unsuitable(b, one.kinds, row) {
			continue
		}
		if ps.spotShare.stale = one.price > expected && (more || !ps.spotShare.fresh); ps.spotShare.stale {
			return false
		}
		if one.class >= 0 {
			ps.spotShare.take(ps.spec, one.kinds, []string{ps.spec.Types.Classes[one.class].Zone}, true)
		}
		b.row, b.kinds = row, one.kinds
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
		if ps.spotShare != nil && (ps.spotShare.stale || !ps.spotShare.fresh) {
			ps.spotShare.refresh()
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
		ps.spotShare.refresh()
	}
	return best, found
}

// withoutSpot removes spot from the capacity types of the row.
func (f *fleet) withoutSpot(row label.Row) {
	if key, known := f.snap.Space.Lookup(model.LabelCapacityType); known {
		from, to := f.snap.Space.Span(key)
		bitset.Set(row[from:to]).Remove(f.snap.Space.Atom(key, spotCapacity))
	}
}

// fitsShare reports whether an offering of the pool that is not oversized holds a pod of the seed.
func (k *packing) fitsShare(ps *poolState, seed *packCandidate) bool {
	return ps.spotShare != nil && slices.ContainsFunc(seed.in(ps.index).offers, func(o *offer) bool {
		return slices.ContainsFunc(k.rank(ps, o), func(p rankedOffering) bool {
			return !ps.spotShare.oversized(ps, p.typeOffering) && o.holds(seed.batch.pending.group, p.typeOffering)
		})
	})
}

// shareVersion changes whenever the spot share of a pool permits other offerings.
func (k *packing) shareVersion() int {
	version := 0
	for _, ps := range k.pools {
		if ps.spotShare != nil {
			version += ps.spotShare.version
		}
	}
	return version
}
