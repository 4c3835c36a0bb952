package spotshare

import (
	"maps"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Share is the state of a pool's spot share.
type Share struct {
	pool    *model.Pool
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

// Spot is the capacity type that clouds reclaim.
const Spot = "spot"

// Of counts the pool's spot capacity. decided are claims that are not in the snapshot. It returns nil where the pool has no
// limit.
func Of(snap *model.Snapshot, p *model.Pool, decided []plan.NewClaim) *Share {
	if p.MaxSpotShare <= 0 || p.MaxSpotShare >= 100 || p.Types == nil {
		return nil
	}
	s := &Share{pool: p, percent: p.MaxSpotShare, load: map[typeZone]int64{}}
	zones := map[string]bool{}
	for i := range p.Types.Classes {
		if c := &p.Types.Classes[i]; c.CapacityType == Spot {
			zones[c.Zone] = true
		}
	}
	s.rests = restsOf(int(s.percent), len(zones))
	for _, n := range snap.Nodes {
		if n.Pool == p.Name && !n.Deleting {
			s.count(snap.Space, n)
		}
	}
	for i := range decided {
		if c := &decided[i]; c.Pool == p.Name {
			s.countDecided(c.Options)
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

// count adds a node: its capacity or, while it is not launched, all that it may become.
func (s *Share) count(space *label.Space, n *model.Node) {
	p := s.pool
	if n.Stage != model.Launching {
		if n.Labels[model.LabelCapacityType] != Spot {
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
		if c := &p.Types.Classes[i]; c.CapacityType == Spot && c.Types.Intersects(kinds) {
			zones[c.Zone] = true
		}
	}
	key, known := space.Lookup(model.LabelCapacityType)
	certain := known && space.Only(n.Row, key) == space.Atom(key, Spot)
	s.take(kinds, slices.Sorted(maps.Keys(zones)), certain)
}

// countDecided adds a claim that is not in the snapshot, with its options.
func (s *Share) countDecided(options []plan.Option) {
	p, certain := s.pool, true
	kinds := bitset.New(p.Types.Len())
	var zones []string
	for _, o := range options {
		certain = certain && o.CapacityType == Spot
		if kind, known := p.Types.Lookup(o.Type); known && o.CapacityType == Spot {
			kinds.Add(kind)
			if !slices.Contains(zones, o.Zone) {
				zones = append(zones, o.Zone)
			}
		}
	}
	s.take(kinds, zones, certain)
}

// take adds a node that will be one of the types in one of the zones. certain reports that it cannot be anything other
// than spot.
func (s *Share) take(kinds bitset.Set, zones []string, certain bool) {
	if len(zones) == 0 || kinds.Empty() {
		return
	}
	for kind := range kinds.All() {
		for _, zone := range zones {
			s.load[typeZone{kind, zone}] += cpuOf(s.pool, kind)
		}
	}
	if certain {
		s.whole += leastCPU(s.pool, kinds)
	}
	s.fresh = false
}

// Begin prepares for a packing of pods with these requests of cpu, in millicores. One node of each type in each zone is
// within the share regardless of its size. So that it is not too large, its size should not exceed the share of the
// existing capacity plus the requests, where smaller types suffice.
func (s *Share) Begin(requested int64) {
	s.Refresh()
	s.most = (s.whole + requested) * s.percent / 100
}

// Oversized reports whether the offering of the class is a spot node of more than its share.
func (s *Share) Oversized(kind, class int) bool {
	return s.pool.Types.Classes[class].CapacityType == Spot && cpuOf(s.pool, kind) > s.most
}

// Version changes whenever other offerings may be permitted.
func (s *Share) Version() int { return s.version }

// Percent returns the limit.
func (s *Share) Percent() int64 { return s.percent }

// Refresh makes the choice of new bins use the offerings that are permitted now. It does nothing for nil.
func (s *Share) Refresh() {
	if s != nil {
		s.version++
		s.fresh, s.stale = true, false
	}
}

// Outdated reports whether the choice of new bins uses offerings other than those that are permitted now.
func (s *Share) Outdated() bool { return s.stale || !s.fresh }

// Declines reports whether a bin must be chosen again, because the slot costs more than expected and another bin was
// opened before it (more), or the shares changed since it was chosen.
func (s *Share) Declines(at *Slot, expected int64, more bool) bool {
	s.stale = at.Price > expected && (more || !s.fresh)
	return s.stale
}

// Cheapest returns the class of the cheapest offering of the type within its share, of those available in the classes; -1
// if there is none.
func (s *Share) Cheapest(kind int, classes []int) int {
	best, whole := -1, s.whole+cpuOf(s.pool, kind)
	for _, i := range classes {
		c := &s.pool.Types.Classes[i]
		if c.Types.Has(kind) && (best < 0 || c.Price[kind] < s.pool.Types.Classes[best].Price[kind]) &&
			(c.CapacityType != Spot || s.admits(typeZone{kind, c.Zone}, whole)) {
			best = i
		}
	}
	return best
}

func leastCPU(p *model.Pool, kinds bitset.Set) int64 {
	least := int64(math.MaxInt64)
	for kind := range kinds.All() {
		least = min(least, cpuOf(p, kind))
	}
	return least
}

// admits reports whether a node of the type in the zone is within its share if the pool then has the given whole.
func (s *Share) admits(at typeZone, whole int64) bool {
	load := s.load[at]
	return load == 0 || (load+cpuOf(s.pool, at.kind))*100 <= s.percent*whole
}

// Open returns the types of which a node may be launched in one of the classes: on-demand, or spot within the share.
func (s *Share) Open(classes []int) bitset.Set {
	set := bitset.New(s.pool.Types.Len())
	for _, i := range classes {
		c := &s.pool.Types.Classes[i]
		for kind := range c.Types.All() {
			if c.CapacityType != Spot || s.admits(typeZone{kind, c.Zone}, s.whole+cpuOf(s.pool, kind)) {
				set.Add(kind)
			}
		}
	}
	return set
}

// Clone returns an independent copy; nil for nil.
func (s *Share) Clone() *Share {
	if s == nil {
		return nil
	}
	c := *s
	c.load = maps.Clone(s.load)
	return &c
}

func cpuOf(p *model.Pool, kind int) int64 { return p.Types.Total[kind].At(quantity.CPU) }
