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
// whose number leaves the same remainder. A claim that may become no spot as well, bought before there was a share, counts
// for each and adds nothing to the whole. As many slots as are needed are there, each with types of all sizes and families.
// Invariant: whatever the provider picks, a type in a zone has one node, or no more than its share of what the pool has; and no
// node is larger than that share of what the pool will have, unless nothing smaller holds what it is bought for.
// Bins are looked at one by one, and what was within its share stays so, because the whole only grows. Cost: the slots of
// a bin times its types.

// spotShare is how the spot capacity of a pool is shared out.
type spotShare struct {
	percent int64
	// rests is how many remainders there are.
	rests int
	load  map[outlet]int64 // millicores
	whole int64            // millicores
	// looked counts how often it was looked which outlets are open: new bins are chosen by the last look. fresh says that
	// nothing was bought since, stale that what was bought last cost more than the look had it.
	looked       int
	fresh, stale bool
	// most cpu, in millicores, that one spot node should have: its share of what the pool will have at least.
	most int64
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
	s.rests = restsOf(int(s.percent), len(zones))
	for _, n := range snap.Nodes {
		if n.Pool == p.Name && !n.Deleting {
			s.count(snap.Space, p, n)
		}
	}
	for i := range bought {
		if c := &bought[i]; c.Pool == p.Name {
			s.countBought(p, c.Options)
		}
	}
	return s
}

// restsOf is how many remainders give enough slots in so many zones. While a fleet is small, twice as many slots as shares
// are in use: each share is rounded down to whole nodes.
func restsOf(percent, zones int) int {
	shares := (100 + percent - 1) / percent
	return max(1, (2*shares+zones-1)/max(1, zones))
}

// count adds a node: what it is, or, while that is open, all that it may become.
func (s *spotShare) count(space *label.Space, p *model.Pool, n *model.Node) {
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
	key, known := space.Lookup(model.LabelCapacityType)
	certain := known && domainOf(space, n.Row, key) == space.Atom(key, spotCapacity)
	s.take(p, kinds, slices.Sorted(maps.Keys(zones)), certain)
}

// countBought adds a claim that is not in the snapshot, at what it would be bought as.
func (s *spotShare) countBought(p *model.Pool, options []plan.Option) {
	kinds, certain := bitset.New(p.Types.Len()), true
	var zones []string
	for _, o := range options {
		certain = certain && o.CapacityType == spotCapacity
		if kind, known := p.Types.Lookup(o.Type); known && o.CapacityType == spotCapacity {
			kinds.Add(kind)
			if !slices.Contains(zones, o.Zone) {
				zones = append(zones, o.Zone)
			}
		}
	}
	s.take(p, kinds, zones, certain)
}

// take adds a node that will be one of the types in one of the zones, or, unless that is certain, something that is no spot.
func (s *spotShare) take(p *model.Pool, kinds bitset.Set, zones []string, certain bool) {
	if len(zones) == 0 || kinds.Empty() {
		return
	}
	for kind := range kinds.All() {
		for _, zone := range zones {
			s.load[outlet{kind, zone}] += p.Types.Total[kind].At(quantity.CPU)
		}
	}
	if certain {
		s.whole += leastCPU(p, kinds)
	}
	s.fresh = false
}

// begin prepares for a packing. Though one node of each type in each zone is within the share however large it is, it should
// be no larger than the share of what there is and what the prospects ask for, where smaller ones would do.
func (s *spotShare) begin(prospects []*prospect) {
	if s == nil {
		return
	}
	s.look()
	whole := s.whole
	for _, p := range prospects {
		whole += p.group.Requests.At(quantity.CPU) * int64(len(p.left))
	}
	s.most = whole * s.percent / 100
}

// oversized reports whether the purchase is a spot node of more than its share.
func (s *spotShare) oversized(m *market, p purchase) bool {
	return m.pool.Types.Classes[p.class].CapacityType == spotCapacity && m.pool.Types.Total[p.kind].At(quantity.CPU) > s.most
}

// fitsShare reports whether something that is not oversized holds a pod of the seed.
func (r *run) fitsShare(k *packing, seed *prospect) bool {
	return k.share != nil && slices.ContainsFunc(seed.offers, func(o *offer) bool {
		return slices.ContainsFunc(r.rank(k, o), func(p rankedPurchase) bool {
			return !k.share.oversized(k.market, p.purchase) && k.holds(seed.group, p.kind)
		})
	})
}

// look has new bins chosen by what is open now. Nil has nothing to look at.
func (s *spotShare) look() {
	if s != nil {
		s.looked++
		s.fresh, s.stale = true, false
	}
}

// openList is every type on sale in one of the classes, at the cheapest that is within its share, cheapest first.
func (m *market) openList(classes []int) []purchase {
	x := m.pool.Types
	list := make([]purchase, 0, x.Len())
	for t := range x.Len() {
		best, whole := -1, m.share.whole+x.Total[t].At(quantity.CPU)
		for _, i := range classes {
			c := &x.Classes[i]
			if c.Types.Has(t) && (best < 0 || c.Price[t] < x.Classes[best].Price[t]) &&
				(c.CapacityType != spotCapacity || m.share.admits(m.pool, outlet{t, c.Zone}, whole)) {
				best = i
			}
		}
		if best >= 0 {
			list = append(list, purchase{kind: t, class: best, price: x.Classes[best].Price[t]})
		}
	}
	sortPurchases(list)
	return list
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

// Largest is a type in a zone with its part of a pool's spot capacity.
type Largest struct {
	Type, Zone string
	Percent    int64 // rounded up
}

// LargestSpotShare is the type in a zone that will have the most of the pool's spot capacity when each of the claims becomes
// the cheapest that it may be; of equals the first by name. It is false where the pool bounds no share or has no spot.
func LargestSpotShare(snap *model.Snapshot, pool string, claims []plan.NewClaim) (Largest, bool) {
	p := snap.Pool(pool)
	if p == nil {
		return Largest{}, false
	}
	claims = slices.Clone(claims)
	for i := range claims {
		claims[i].Options = claims[i].Options[:min(1, len(claims[i].Options))]
	}
	s := spotShareOf(snap, p, claims)
	if s == nil || s.whole <= 0 {
		return Largest{}, false
	}
	var worst Largest
	for at, load := range s.load {
		one := Largest{p.Types.Catalogue.Types[at.kind].Name, at.zone, min(100, (load*100+s.whole-1)/s.whole)}
		if one.Percent > worst.Percent || one.Percent == worst.Percent && cmp.Or(cmp.Compare(one.Type, worst.Type), cmp.Compare(one.Zone, worst.Zone)) < 0 {
			worst = one
		}
	}
	return worst, true
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
