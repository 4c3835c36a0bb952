package placement

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// The share of a pool's spot capacity that one type in one zone may have (PoolSpec.MaxSpotShare): a cloud takes spot
// machines back by type and zone, so that this bounds what one wave of interruptions takes.
//
// Representation: by (type, zone), the cpu of the nodes that are there and of all that may become one; and the least cpu
// of all of them together. A claim may become any of its types in any of its zones, so it counts for each, and if every
// claim listed everything, the second would be one too many. Hence a bin is bought in one slot: one zone, and the types
// whose number leaves the same remainder. As many slots as are needed are there, each with types of all sizes and families.
// Invariant: whatever the provider picks, a type in a zone has one node, or no more than its share of what the pool has.
// Bins are looked at one by one, and what was within its share stays so, because the whole only grows. Cost: the slots of
// a bin times its types.

// spotShare is how the spot capacity of a pool is shared out.
type spotShare struct {
	percent int64
	// rests is how many remainders there are.
	rests int
	load  map[outlet]int64 // millicores
	whole int64            // millicores
}

// outlet is a type in a zone.
type outlet struct {
	kind int
	zone string
}

const spotCapacity = "spot"

// spotShareOf counts what there is, nil where the pool bounds nothing.
func spotShareOf(snap *model.Snapshot, p *model.Pool, bought []plan.NewClaim) *spotShare {
	if p.MaxSpotShare <= 0 || p.MaxSpotShare >= 100 || p.Types == nil {
		return nil
	}
	s := &spotShare{percent: p.MaxSpotShare, load: map[outlet]int64{}}
	zones := map[string]bool{}
	for i := range p.Types.Classes {
		if c := &p.Types.Classes[i]; c.CapacityType == spotCapacity {
			zones[c.Zone] = true
		}
	}
	// While a fleet is small, twice as many slots as shares are in use: each share is rounded down to whole nodes.
	slots := 2 * (100 + int(s.percent) - 1) / int(s.percent)
	s.rests = max(1, (slots+len(zones)-1)/max(1, len(zones)))
	for _, n := range snap.Nodes {
		if n.Pool == p.Name && !n.Deleting {
			s.count(p, n)
		}
	}
	for i := range bought {
		if c := &bought[i]; c.Pool == p.Name {
			s.countBought(p, c.Options)
		}
	}
	return s
}

// count adds a node: what it is, or, while that is open, all that it may become.
func (s *spotShare) count(p *model.Pool, n *model.Node) {
	if n.Stage != model.Launching {
		if n.Labels[model.LabelCapacityType] != spotCapacity {
			return
		}
		cpu := n.Total.At(quantity.CPU)
		s.whole += cpu
		if kind, known := p.Types.Lookup(n.Labels[model.LabelType]); known {
			s.load[outlet{kind, n.Labels[model.LabelZone]}] += cpu
		}
		return
	}
	kinds := bitset.New(p.Types.Len())
	for _, name := range n.Types {
		if kind, known := p.Types.Lookup(name); known {
			kinds.Add(kind)
		}
	}
	_, classes := p.Types.Offered(n.Row)
	zones := map[string]bool{}
	for _, i := range classes {
		if c := &p.Types.Classes[i]; c.CapacityType == spotCapacity && c.Types.Intersects(kinds) {
			zones[c.Zone] = true
		}
	}
	s.take(p, kinds, slices.Sorted(maps.Keys(zones)))
}

// countBought adds a claim that is not in the snapshot, at what it would be bought as.
func (s *spotShare) countBought(p *model.Pool, options []plan.Option) {
	kinds := bitset.New(p.Types.Len())
	var zones []string
	for _, o := range options {
		if kind, known := p.Types.Lookup(o.Type); known && o.CapacityType == spotCapacity {
			kinds.Add(kind)
			if !slices.Contains(zones, o.Zone) {
				zones = append(zones, o.Zone)
			}
		}
	}
	s.take(p, kinds, zones)
}

// take adds a node that will be one of the types in one of the zones.
func (s *spotShare) take(p *model.Pool, kinds bitset.Set, zones []string) {
	if len(zones) == 0 || kinds.Empty() {
		return
	}
	for kind := range kinds.All() {
		for _, zone := range zones {
			s.load[outlet{kind, zone}] += p.Types.Total[kind].At(quantity.CPU)
		}
	}
	s.whole += leastCPU(p, kinds)
}

func leastCPU(p *model.Pool, kinds bitset.Set) int64 {
	least := int64(math.MaxInt64)
	for kind := range kinds.All() {
		least = min(least, p.Types.Total[kind].At(quantity.CPU))
	}
	return least
}

// admits reports whether a node of the type in the zone stays within its share, when the pool has the given whole then.
func (s *spotShare) admits(p *model.Pool, at outlet, whole int64) bool {
	load := s.load[at]
	return load == 0 || (load+p.Types.Total[at.kind].At(quantity.CPU))*100 <= s.percent*whole
}

// open are the types of which a node may be bought within the row: on demand, or as spot within the share.
func (s *spotShare) open(m *market, row label.Row) bitset.Set {
	set := bitset.New(m.pool.Types.Len())
	_, classes := m.offered(row)
	for _, i := range classes {
		c := &m.pool.Types.Classes[i]
		for kind := range c.Types.All() {
			whole := s.whole + m.pool.Types.Total[kind].At(quantity.CPU)
			if c.CapacityType != spotCapacity || s.admits(m.pool, outlet{kind, c.Zone}, whole) {
				set.Add(kind)
			}
		}
	}
	return set
}

// slot is where a bin may be bought: a class of offerings, with some of its types; -1 for all that is not spot.
type slot struct {
	class int
	kinds bitset.Set
	price int64
	load  int64
}

// slots are those where the bin may be bought, the cheapest first; of equal ones that which has least.
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

// slotOf is a class with the types of one remainder that are within their shares.
func (s *spotShare) slotOf(m *market, b *bin, class, rest int) (slot, bool) {
	c := &m.pool.Types.Classes[class]
	one := slot{class: class, kinds: bitset.New(m.pool.Types.Len()), price: math.MaxInt64}
	for kind := range b.kinds.All() {
		if kind%s.rests == rest && c.Types.Has(kind) {
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

// slotOfPlain is everything that is not spot.
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

// spread narrows a bin that is about to be bought to the cheapest slot that is open, and reports whether there is one.
func (r *run) spread(m *market, b *bin) bool {
	if b.holds != "" {
		return true // a reservation is no spot
	}
	b.row = slices.Clone(b.row) // its copies share it
	for _, one := range m.share.slots(m, b) {
		if !r.opts.RelaxMinValues && !m.diverse(one.kinds).OK() {
			continue
		}
		if one.class >= 0 {
			c := &m.pool.Types.Classes[one.class]
			c.Pin(r.snap.Space, b.row)
			m.share.take(m.pool, one.kinds, []string{c.Zone})
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

// commitPlain opens a bin that is not spot for a seed whose bin found no slot, and reports whether it did: who was in that
// bin beside it may want spot, and alone it need not.
func (r *run) commitPlain(k *packing, seed *prospect) bool {
	if k.share == nil {
		return false
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
	return found && r.commit(k.market, best, k.evenly)
}

// withoutSpot takes spot from the capacity types of the row.
func (r *run) withoutSpot(row label.Row) {
	if key, known := r.snap.Space.Lookup(model.LabelCapacityType); known {
		from, to := r.snap.Space.Span(key)
		bitset.Set(row[from:to]).Remove(r.snap.Space.Atom(key, spotCapacity))
	}
}

// CrowdedSpot is the greatest part of the pool's spot capacity, in percent rounded up, that one type in one zone has, of
// those that have a whole node more than their share; 0 when none has. A share that was kept when nodes were bought can be
// exceeded when others leave. Bought are claims that are not in the snapshot.
func CrowdedSpot(snap *model.Snapshot, pool string, bought []plan.NewClaim) int64 {
	p := snap.Pool(pool)
	if p == nil {
		return 0
	}
	s := spotShareOf(snap, p, bought)
	if s == nil || s.whole <= 0 {
		return 0
	}
	var worst int64
	for at, load := range s.load {
		if (load-p.Types.Total[at.kind].At(quantity.CPU))*100 >= s.percent*s.whole {
			worst = max(worst, (load*100+s.whole-1)/s.whole)
		}
	}
	return worst
}

// clone is a copy that changes by itself; nil of nil.
func (s *spotShare) clone() *spotShare {
	if s == nil {
		return nil
	}
	c := *s
	c.load = maps.Clone(s.load)
	return &c
}
