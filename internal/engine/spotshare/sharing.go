package spotshare

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Sharing keeps nodes that are launched from a pool's template alone, for no particular pod, within the pool's spot
// share. Existing nodes, claims in flight, and claims narrowed before count.
type Sharing struct {
	pool  *model.Pool
	share *Share
	// more is how many nodes are still to come, including the current one: the share is that of the final number.
	more int64
}

// NewSharing counts the pool's spot capacity. nodes is how many are to be launched together. It returns nil, which
// narrows nothing, where the pool has no share limit, and where the pool requires a variety of types (minValues), which
// a claim of few types would not satisfy.
func NewSharing(snap *model.Snapshot, p *model.Pool, nodes int64) *Sharing {
	variety := slices.ContainsFunc(p.Requirements, func(r label.Requirement) bool { return r.MinValues > 1 })
	share := Of(snap, p, nil)
	if share == nil || variety {
		return nil
	}
	return &Sharing{p, share, nodes}
}

// Clone returns a copy for tentative claims: narrowing a claim with it does not change s.
func (s *Sharing) Clone() *Sharing {
	if s == nil {
		return nil
	}
	return &Sharing{s.pool, s.share.Clone(), s.more}
}

// Narrow restricts the claim to the cheapest permitted slot: on-demand, or spot of types of one size in one zone. It
// returns a refusal when there is none; the claim is unchanged then.
func (s *Sharing) Narrow(c *plan.NewClaim) plan.Verdict {
	if s == nil {
		return plan.Verdict{}
	}
	one, found := s.cheapest()
	s.more = max(1, s.more-1)
	if !found {
		return plan.Verdict{Code: plan.SpotShareReached, Have: s.share.percent}
	}
	if one.Class < 0 {
		c.Requirements = append(slices.Clone(c.Requirements),
			label.Requirement{Key: model.LabelCapacityType, Operator: label.NotIn, Values: []string{Spot}})
		return plan.Verdict{}
	}
	zone := s.pool.Types.Classes[one.Class].Zone
	var names []string
	for kind := range one.Kinds.All() {
		names = append(names, s.pool.Types.Catalog.Types[kind].Name)
	}
	slices.Sort(names)
	c.Requirements = exactly(c.Requirements, map[string][]string{model.LabelZone: {zone}, model.LabelCapacityType: {Spot},
		model.LabelType: names})
	s.share.Take(&one)
	return plan.Verdict{}
}

// exactly replaces the requirements of the keys. The new values must be within the old ones.
func exactly(requirements []label.Requirement, values map[string][]string) []label.Requirement {
	kept := slices.DeleteFunc(slices.Clone(requirements), func(r label.Requirement) bool { return values[r.Key] != nil })
	for _, key := range []string{model.LabelType, model.LabelZone, model.LabelCapacityType} {
		kept = append(kept, label.Requirement{Key: key, Operator: label.In, Values: values[key]})
	}
	return kept
}

// cheapest returns the cheapest permitted slot, of equals the one with the least load. The class is -1 for capacity
// other than spot.
func (s *Sharing) cheapest() (Slot, bool) {
	p := s.pool
	var list []Slot
	_, classes := p.Types.Offered(p.Start)
	for _, i := range classes {
		if p.Types.Classes[i].CapacityType != Spot {
			if one, found := s.slotOf(i, p.Eligible.Clone()); found {
				one.Class = -1
				list = append(list, one)
			}
			continue
		}
		for rest := range s.share.rests {
			kinds := bitset.New(p.Types.Len())
			for kind := range p.Eligible.All() {
				if kind%s.share.rests == rest {
					kinds.Add(kind)
				}
			}
			if one, found := s.slotOf(i, kinds); found {
				list = append(list, one)
			}
		}
	}
	if len(list) == 0 {
		return Slot{}, false
	}
	return slices.MinFunc(list, func(x, y Slot) int { return cmp.Or(cmp.Compare(x.Price, y.Price), cmp.Compare(x.load, y.load)) }), true
}

// slotOf returns a class with those of the types that are within their shares and as large as the cheapest of them:
// with types of all sizes, the largest would count for the load of each and the smallest for the whole.
func (s *Sharing) slotOf(class int, kinds bitset.Set) (Slot, bool) {
	p, c := s.pool, &s.pool.Types.Classes[class]
	one, best := Slot{Class: class, Kinds: bitset.New(p.Types.Len())}, -1
	var within []int
	for kind := range kinds.All() {
		cpu := cpuOf(p, kind)
		if !c.Types.Has(kind) || c.CapacityType == Spot && !s.share.admits(typeZone{kind, c.Zone}, s.share.whole+cpu*s.more) {
			continue
		}
		within = append(within, kind)
		if best < 0 || c.Price[kind] < c.Price[best] {
			best = kind
		}
	}
	if best < 0 {
		return one, false
	}
	for _, kind := range within {
		if cpuOf(p, kind) == cpuOf(p, best) {
			one.Kinds.Add(kind)
			one.load = max(one.load, s.share.load[typeZone{kind, c.Zone}])
		}
	}
	one.Price = c.Price[best]
	return one, true
}
