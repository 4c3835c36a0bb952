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
func (s *spotShare) slots(m *market, b *bin) []slot {
	var list []slot
	_, classes := m.offeredTo(b, b.row)
	var plain []int
	for _, i := range classes {
		c := &m.pool.Types.Classes[i]
		if c.CapacityType != spotCapacity {
			plain = append(plain, i)
			continue
		}
		for rest := range s.rests {
			if one, ok := s.slotOf(m, b, i, rest); ok {
				list = append(list, one)
			}
		}
	}
	if one, ok := slotOfPlain(m, b, plain); ok {
		list = append(list, one)
	}
	slices.SortStableFunc(list, func(x, y slot) int { return cmp.Or(cmp.Compare(x.price, y.price), cmp.Compare(x.load, y.load)) })
	return list
}

// slotOf returns a class with the types of one remainder that are within their shares.
func (s *spotShare) slotOf(m *market, b *bin, class, rest int) (slot, bool) {
	c := &m.pool.Types.Classes[class]
	one := slot{class: class, kinds: bitset.New(m.pool.Types.Len()), price: math.MaxInt64}
	most := max(s.most, m.pool.Types.Total[b.kind].At(quantity.CPU))
	for kind := range b.kinds.All() {
		if kind%s.rests == rest && c.Types.Has(kind) && m.pool.Types.Total[kind].At(quantity.CPU) <= most {
			one.kinds.Add(kind)
		}
	}
	if one.kinds.Empty() {
		return one, false
	}
	whole := s.whole + leastCPU(m.pool, one.kinds)
	for kind := range one.kinds.Clone().All() {
		at := outlet{kind, c.Zone}
		if !s.admits(m.pool, at, whole) {
			one.kinds.Remove(kind)
			continue
		}
		one.price, one.load = min(one.price, c.Price[kind]), max(one.load, s.load[at])
	}
	return one, !one.kinds.Empty()
}

// slotOfPlain returns everything that is not spot.
func slotOfPlain(m *market, b *bin, classes []int) (slot, bool) {
	one := slot{class: -1, kinds: bitset.New(m.pool.Types.Len()), price: math.MaxInt64}
	for _, i := range classes {
		c := &m.pool.Types.Classes[i]
		for kind := range c.Types.All() {
			if b.kinds.Has(kind) {
				one.kinds.Add(kind)
				one.price = min(one.price, c.Price[kind])
			}
		}
	}
	return one, !one.kinds.Empty()
}

// spread narrows a bin that is about to be opened to the cheapest open slot, and reports whether there is one. A bin
// that would cost more than expected is not opened if another one was opened before it, or if the shares changed since
// it was chosen: another content may then be better.
func (r *run) spread(m *market, b *bin, expected int64, more bool) bool {
	if b.holds != "" {
		return true // a reservation is not spot
	}
	b.row = slices.Clone(b.row) // copies of the bin share the row
	for _, one := range m.share.slots(m, b) {
		if !r.opts.RelaxMinValues && !m.diverse(one.kinds).OK() {
			continue
		}
		if m.share.stale = one.price > expected && (more || !m.share.fresh); m.share.stale {
			return false
		}
		if one.class >= 0 {
			c := &m.pool.Types.Classes[one.class]
			c.Pin(r.snap.Space, b.row)
			m.share.take(m.pool, one.kinds, []string{c.Zone}, true)
		} else {
			r.withoutSpot(b.row)
		}
		b.kinds = one.kinds
		b.purchase = m.priced(b.kinds, b.row)[0]
		b.lowest, b.charged = b.price, m.largest(b.kinds)
		b.free = m.pool.Net[b.kind].Clone().Sub(b.used)
		return true
	}
	return false
}

// shareOut continues with a seed for which no bin was opened. If the open outlets have changed, the seed is tried
// again. Otherwise a bin that is not spot is opened, because other pods of that bin may require spot, and the seed
// alone may not. It returns that bin, if any, and whether one of these cases applied.
func (r *run) shareOut(k *packing, seed *prospect, found bool) (*bin, bool) {
	if k.share == nil {
		return nil, false
	}
	if k.share.stale || !k.share.fresh {
		k.share.look()
		return nil, true
	}
	if !found {
		return nil, false
	}
	all := seed.offers
	defer func() { seed.offers = all }()
	seed.offers = nil
	asks := asksSpecial(r.snap, seed.group)
	for _, o := range all {
		row := slices.Clone(o.row)
		r.withoutSpot(row)
		plain := k.offer(r.snap.Space, row, asks)
		if slices.ContainsFunc(plain.front, func(b purchase) bool { return k.holds(seed.group, b.kind) }) {
			seed.offers = append(seed.offers, plain)
		}
	}
	best, found := r.bestBin(k, seed)
	if found = found && r.commit(k.market, best, k.pace()); found {
		k.share.look()
	}
	return best, found
}

// withoutSpot removes spot from the capacity types of the row.
func (r *run) withoutSpot(row label.Row) {
	if key, known := r.snap.Space.Lookup(model.LabelCapacityType); known {
		from, to := r.snap.Space.Span(key)
		bitset.Set(row[from:to]).Remove(r.snap.Space.Atom(key, spotCapacity))
	}
}
