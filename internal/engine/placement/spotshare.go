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

// The limit on the part of a pool's spot capacity that one type in one zone may have (PoolSpec.MaxSpotShare). Clouds
// reclaim spot machines by type and zone, so this limits the loss in one wave of interruptions.
//
// Representation: by (type, zone), the cpu of the existing nodes and of all that may become one; and the least cpu of
// all of them together. A claim may become any of its types in any of its zones, so it counts for each. If every claim
// listed everything, the second would exceed the limit. Hence a bin is launched in one slot: one zone, and the types
// whose number leaves the same remainder. A claim that may also become something other than spot, created before there
// was a share, counts for each and adds nothing to the whole. The number of slots is sufficient for the share, and each
// has types of all sizes and families.
//
// Invariant: whatever the provider selects, a type in a zone has one node, or no more than its share of the pool's
// capacity; and no node is larger than that share of the pool's final capacity, unless nothing smaller holds its
// content. Bins are examined one by one, and what was within its share remains so, because the whole only grows. Cost:
// the slots of a bin times its types.

// spotShare is the state of a pool's spot share.
type spotShare struct {
	percent int64
	// rests is how many remainders there are.
	rests int
	load  map[typeZone]int64 // millicores
	whole int64              // millicores
	// version counts how often the permitted offerings were computed: new bins are chosen by the last result. fresh
	// reports that no node was added since. stale reports that the last bin cost more than that result said.
	version      int
	fresh, stale bool
	// most is the most cpu, in millicores, that one spot node should have: its share of the pool's least final
	// capacity.
	most int64
}

// typeZone is a type in a zone.
type typeZone struct {
	kind int
	zone string
}

const spotCapacity = "spot"

// spotShareOf counts the pool's spot capacity. It returns nil where the pool has no limit.
func spotShareOf(snap *model.Snapshot, p *model.Pool, decided []plan.NewClaim) *spotShare {
	if p.MaxSpotShare <= 0 || p.MaxSpotShare >= 100 || p.Types == nil {
		return nil
	}
	s := &spotShare{percent: p.MaxSpotShare, load: map[typeZone]int64{}}
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
	for i := range decided {
		if c := &decided[i]; c.Pool == p.Name {
			s.countDecided(p, c.Options)
		}
	}
	return s
}

// restsOf returns how many remainders give enough slots in that many zones. While a fleet is small, twice as many slots
// as shares are in use: each share is rounded down to whole nodes.
func restsOf(percent, zones int) int {
	shares := (100 + percent - 1) / percent
	return max(1, (2*shares+zones-1)/max(1, zones))
}

// shared reports whether the pool limits the share of one type in one zone.
func (ps *poolState) shared() bool { return ps.spotShare != nil }

// count adds a node: its capacity or, while it is not launched, all that it may become.
func (s *spotShare) count(space *label.Space, p *model.Pool, n *model.Node) {
	if n.Stage != model.Launching {
		if n.Labels[model.LabelCapacityType] != spotCapacity {
			return
		}
		cpu := n.Total.At(quantity.CPU)
		s.whole += cpu
		if kind, known := p.Types.Lookup(n.Labels[model.LabelType]); known {
			s.load[typeZone{kind, n.Labels[model.LabelZone]}] += cpu
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

// countDecided adds a claim that is not in the snapshot, with its options.
func (s *spotShare) countDecided(p *model.Pool, options []plan.Option) {
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

// take adds a node that will be one of the types in one of the zones. certain reports that it cannot be anything other
// than spot.
func (s *spotShare) take(p *model.Pool, kinds bitset.Set, zones []string, certain bool) {
	if len(zones) == 0 || kinds.Empty() {
		return
	}
	for kind := range kinds.All() {
		for _, zone := range zones {
			s.load[typeZone{kind, zone}] += p.Types.Total[kind].At(quantity.CPU)
		}
	}
	if certain {
		s.whole += leastCPU(p, kinds)
	}
	s.fresh = false
}

// begin prepares for a packing. One node of each type in each zone is within the share regardless of its size. So that
// it is not too large, its size should not exceed the share of the existing capacity plus the requests of the pool's
// candidates, where smaller types suffice.
func (s *spotShare) begin(pool int, cands []*packCandidate) {
	if s == nil {
		return
	}
	s.refresh()
	whole := s.whole
	for _, cand := range cands {
		if len(cand.in(pool).offers) == 0 {
			continue
		}
		whole += cand.batch.pending.group.Requests.At(quantity.CPU) * int64(len(cand.batch.left))
	}
	s.most = whole * s.percent / 100
}

// oversized reports whether the offering is a spot node of more than its share.
func (s *spotShare) oversized(ps *poolState, p typeOffering) bool {
	return ps.spec.Types.Classes[p.class].CapacityType == spotCapacity && ps.spec.Types.Total[p.kind].At(quantity.CPU) > s.most
}

// refresh makes the choice of new bins use the offerings that are permitted now. It does nothing for nil.
func (s *spotShare) refresh() {
	if s != nil {
		s.version++
		s.fresh, s.stale = true, false
	}
}

// openList lists every type available in one of the classes, at its cheapest offering within its share, cheapest first.
func (ps *poolState) openList(classes []int) []typeOffering {
	x := ps.spec.Types
	list := make([]typeOffering, 0, x.Len())
	for t := range x.Len() {
		best, whole := -1, ps.spotShare.whole+x.Total[t].At(quantity.CPU)
		for _, i := range classes {
			c := &x.Classes[i]
			if c.Types.Has(t) && (best < 0 || c.Price[t] < x.Classes[best].Price[t]) &&
				(c.CapacityType != spotCapacity || ps.spotShare.admits(ps.spec, typeZone{t, c.Zone}, whole)) {
				best = i
			}
		}
		if best >= 0 {
			list = append(list, typeOffering{kind: t, class: best, price: x.Classes[best].Price[t]})
		}
	}
	sortOfferings(list)
	return list
}

func leastCPU(p *model.Pool, kinds bitset.Set) int64 {
	least := int64(math.MaxInt64)
	for kind := range kinds.All() {
		least = min(least, p.Types.Total[kind].At(quantity.CPU))
	}
	return least
}

// admits reports whether a node of the type in the zone is within its share if the pool then has the given whole.
func (s *spotShare) admits(p *model.Pool, at typeZone, whole int64) bool {
	load := s.load[at]
	return load == 0 || (load+p.Types.Total[at.kind].At(quantity.CPU))*100 <= s.percent*whole
}

// open returns the types of which a node may be launched within the row: on-demand, or spot within the share.
func (s *spotShare) open(ps *poolState, row label.Row) bitset.Set {
	set := bitset.New(ps.spec.Types.Len())
	_, classes := ps.offered(row)
	for _, i := range classes {
		c := &ps.spec.Types.Classes[i]
		for kind := range c.Types.All() {
			whole := s.whole + ps.spec.Types.Total[kind].At(quantity.CPU)
			if c.CapacityType != spotCapacity || s.admits(ps.spec, typeZone{kind, c.Zone}, whole) {
				set.Add(kind)
			}
		}
	}
	return set
}

// ExceededSpotShare returns the greatest part of the pool's spot capacity, in percent rounded up, that one type in one
// zone has, among those that exceed their share by a whole node; 0 when there is none. A share that was met at launch
// can be exceeded when other nodes are removed. decided are claims that are not in the snapshot.
func ExceededSpotShare(snap *model.Snapshot, pool string, decided []plan.NewClaim) int64 {
	p := snap.Pool(pool)
	if p == nil {
		return 0
	}
	s := spotShareOf(snap, p, decided)
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

// LargestSpotShare returns the type in a zone that will have the most of the pool's spot capacity when each of the
// claims becomes its cheapest option; of equals the first by name. It is false where the pool has no share limit or no
// spot capacity.
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
		one := Largest{p.Types.Catalog.Types[at.kind].Name, at.zone, min(100, (load*100+s.whole-1)/s.whole)}
		if one.Percent > worst.Percent || one.Percent == worst.Percent && cmp.Or(cmp.Compare(one.Type, worst.Type),
			cmp.Compare(one.Zone, worst.Zone)) < 0 {
			worst = one
		}
	}
	return worst, true
}

// clone returns an independent copy; nil for nil.
func (s *spotShare) clone() *spotShare {
	if s == nil {
		return nil
	}
	c := *s
	c.load = maps.Clone(s.load)
	return &c
}
