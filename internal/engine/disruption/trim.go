package disruption

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// A new node is launched from a list of types, and the provider may select any of them. So that a change pays
// whatever is selected, the list is reduced: to one capacity type, to the zones where the cheapest type is cheap
// enough, and to the types that are cheap enough in all of these zones. A type that is removed with the change is not in
// the list unless it has become cheaper: no node is replaced by an equal one. Where several nodes are replaced together,
// the cheapest type of a new node may be such a type: the saving is that of all of them.

// spotFlexibility is how many types cheaper than a spot node must exist before one spot node is replaced by another.
// With a shorter list it would be replaced again and again by the types that are most likely to be interrupted.
// Source: https://karpenter.sh/docs/concepts/disruption/#consolidation
const spotFlexibility = 15

// claimOfferings holds the offerings for a new node: those that its claim admits, of one capacity type.
type claimOfferings struct {
	pool    *model.Pool
	classes []*model.OfferClass
}

// trim reduces the claim's list to types that cost at most slack more than its cheapest type.
func (w *projection) trim(c *change, claim *plan.NewClaim, slack int64) plan.Verdict {
	first := claim.Options[0]
	most := first.Price + slack
	s := w.offeringsFor(claim, first.CapacityType)
	no := c.noSaving()
	if s.pool == nil {
		return no
	}
	s.keepZones(first.Type, most)
	kept := make([]plan.Option, 0, len(claim.Options))
	for _, o := range claim.Options {
		best, worst := s.priceRange(o.Type)
		excluded := c.hasLike(o, worst) && (len(c.nodes) == 1 || o.Type != first.Type)
		if best != nil && o.CapacityType == first.CapacityType && worst <= most && !excluded {
			t, _ := s.pool.Types.Lookup(o.Type)
			o.Zone, o.Price = best.Zone, best.Price[t]
			kept = append(kept, o)
		}
	}
	if len(kept) == 0 {
		return no
	}
	slices.SortStableFunc(kept, func(a, b plan.Option) int { return cmp.Compare(a.Price, b.Price) })
	if first.CapacityType == spot && len(c.nodes) == 1 && len(c.claims) == 1 && c.nodes[0].Labels[model.LabelCapacityType] == spot {
		if len(kept) < spotFlexibility {
			return plan.Verdict{Code: plan.SpotForbidden, Node: c.nodes[0].Name}
		}
		kept = kept[:max(spotFlexibility, enoughFor(s.pool, claim, kept))]
	}
	if !diverse(s.pool, claim, kept) {
		return no
	}
	claim.Options = kept
	claim.Requirements = s.requirements(claim.Requirements, kept)
	return plan.Verdict{}
}

func (w *projection) offeringsFor(claim *plan.NewClaim, capacityType string) claimOfferings {
	pool := w.snap.Pool(claim.Pool)
	if pool == nil || pool.Types == nil {
		return claimOfferings{}
	}
	// The list of types is not in the row: the space does not contain their names.
	row, _, ok := w.snap.Space.Encode(slices.DeleteFunc(slices.Clone(claim.Requirements), func(r label.Requirement) bool {
		return r.Key == model.LabelType
	}))
	if !ok {
		return claimOfferings{}
	}
	s := claimOfferings{pool: pool}
	for i := range pool.Types.Classes {
		if c := &pool.Types.Classes[i]; c.CapacityType == capacityType && c.Admits(w.snap.Space, row) {
			s.classes = append(s.classes, c)
		}
	}
	return s
}

// keepZones removes the zones where the type costs more than most.
func (s *claimOfferings) keepZones(name string, most int64) {
	t, _ := s.pool.Types.Lookup(name)
	s.classes = slices.DeleteFunc(s.classes, func(c *model.OfferClass) bool { return !c.Types.Has(t) || c.Price[t] > most })
}

// priceRange returns the cheapest available offering of the type, nil if there is none, and the highest price at which
// it may be delivered: an unavailable offering may become available again.
func (s *claimOfferings) priceRange(name string) (best *model.OfferClass, worst int64) {
	t, known := s.pool.Types.Lookup(name)
	if !known {
		return nil, 0
	}
	for _, c := range s.classes {
		if c.Price[t] == model.NoPrice {
			continue
		}
		worst = max(worst, c.Price[t])
		if c.Types.Has(t) && (best == nil || c.Price[t] < best.Price[t]) {
			best = c
		}
	}
	return best, worst
}

// hasLike reports whether the change removes a node of the type that costs no more.
func (c *change) hasLike(o plan.Option, worst int64) bool {
	return slices.ContainsFunc(c.nodes, func(n *model.Node) bool {
		return n.Labels[model.LabelType] == o.Type && n.Labels[model.LabelCapacityType] == o.CapacityType && n.Price <= worst
	})
}

// requirements returns the claim's requirements with the reduced lists.
func (s *claimOfferings) requirements(reqs []label.Requirement, kept []plan.Option) []label.Requirement {
	reqs = slices.Clone(reqs)
	types := make([]string, len(kept))
	for i, o := range kept {
		types[i] = o.Type
	}
	var zones []string
	for _, c := range s.classes {
		if !slices.Contains(zones, c.Zone) {
			zones = append(zones, c.Zone)
		}
	}
	slices.Sort(zones)
	reqs = demand(reqs, model.LabelType, types)
	reqs = demand(reqs, model.LabelCapacityType, []string{kept[0].CapacityType})
	return demand(reqs, model.LabelZone, zones)
}

// demand sets the values of a label.
func demand(reqs []label.Requirement, key string, values []string) []label.Requirement {
	at := slices.IndexFunc(reqs, func(r label.Requirement) bool { return r.Key == key })
	if at < 0 {
		return append(reqs, label.Requirement{Key: key, Operator: label.In, Values: values})
	}
	reqs[at].Operator, reqs[at].Values = label.In, values
	return reqs
}

// diverse reports whether the options have the number of values that the claim's minValues require.
func diverse(pool *model.Pool, claim *plan.NewClaim, options []plan.Option) bool {
	for _, r := range claim.Requirements {
		if r.MinValues > 0 && !claim.MinValuesRelaxed && valuesOf(pool, r.Key, options) < r.MinValues {
			return false
		}
	}
	return true
}

// enoughFor returns how many of the options, cheapest first, are needed for the claim's minValues.
func enoughFor(pool *model.Pool, claim *plan.NewClaim, options []plan.Option) int {
	for n := 1; n < len(options); n++ {
		if diverse(pool, claim, options[:n]) {
			return n
		}
	}
	return len(options)
}

// valuesOf counts the values of a label among the types.
func valuesOf(pool *model.Pool, key string, options []plan.Option) int {
	seen := map[string]bool{}
	for _, o := range options {
		if key == model.LabelType {
			seen[o.Type] = true
			continue
		}
		t, _ := pool.Types.Lookup(o.Type)
		for _, r := range pool.Types.Catalog.Types[t].Requirements {
			if r.Key == key && r.Operator == label.In {
				for _, v := range r.Values {
					seen[v] = true
				}
			}
		}
	}
	return len(seen)
}
