package disruption

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/spotshare"
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

// claimOfferings holds the offerings for a new node: those that its claim admits.
type claimOfferings struct {
	pool *model.Pool
	row  label.Row
	// classes of offerings, as their numbers.
	classes []int
	// minimums are the minValues of the claim that some list may miss.
	minimums []minimum
}

// minimum is how many values of a label the types must have together with their offerings.
type minimum struct {
	key    string
	need   int
	values *model.Variety
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
	if first.CapacityType == spotshare.Spot && len(c.nodes) == 1 && len(c.claims) == 1 && c.nodes[0].Labels[model.LabelCapacityType] == spotshare.Spot {
		if len(kept) < spotFlexibility {
			return plan.Verdict{Code: plan.SpotForbidden, Node: c.nodes[0].Name}
		}
		kept = kept[:max(spotFlexibility, s.enoughOf(kept))]
	}
	if !s.diverse(kept) {
		return no
	}
	claim.Options = kept
	claim.Requirements = s.requirements(claim.Requirements, kept)
	return plan.Verdict{}
}

// offeringsFor returns the offerings for a new node of one capacity type, or of all of them if it is "".
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
	model.PinCommitment(w.snap.Space, row, claim.Reservation)
	s := claimOfferings{pool: pool, row: row}
	for i := range pool.Types.Classes {
		if c := &pool.Types.Classes[i]; (capacityType == "" || c.CapacityType == capacityType) && c.Admits(w.snap.Space, row) {
			s.classes = append(s.classes, i)
		}
	}
	for _, r := range claim.Requirements {
		if r.MinValues > 1 && !claim.MinValuesRelaxed {
			s.minimums = append(s.minimums, minimum{r.Key, r.MinValues, pool.Types.NewVariety(r.Key)})
		}
	}
	return s
}

// class returns the class of offerings with the number.
func (s *claimOfferings) class(i int) *model.OfferClass { return &s.pool.Types.Classes[i] }

// keepZones removes the zones where the type costs more than most.
func (s *claimOfferings) keepZones(name string, most int64) {
	t, _ := s.pool.Types.Lookup(name)
	s.classes = slices.DeleteFunc(s.classes, func(i int) bool { return !s.class(i).Types.Has(t) || s.class(i).Price[t] > most })
}

// priceRange returns the cheapest available offering of the type, nil if there is none, and the highest price at which
// it may be delivered: an unavailable offering may become available again.
func (s *claimOfferings) priceRange(name string) (best *model.OfferClass, worst int64) {
	t, known := s.pool.Types.Lookup(name)
	if !known {
		return nil, 0
	}
	for _, i := range s.classes {
		c := s.class(i)
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
	for _, i := range s.classes {
		if zone := s.class(i).Zone; !slices.Contains(zones, zone) {
			zones = append(zones, zone)
		}
	}
	slices.Sort(zones)
	reqs = demand(reqs, model.LabelType, types)
	reqs = demand(reqs, model.LabelCapacityType, []string{kept[0].CapacityType})
	return demand(reqs, model.LabelZone, zones)
}

// demand sets the values of a label. Relaxed minValues follow them: the API refuses a list that is shorter.
func demand(reqs []label.Requirement, key string, values []string) []label.Requirement {
	at := slices.IndexFunc(reqs, func(r label.Requirement) bool { return r.Key == key })
	if at < 0 {
		return append(reqs, label.Requirement{Key: key, Operator: label.In, Values: values})
	}
	reqs[at].Operator, reqs[at].Values, reqs[at].MinValues = label.In, values, min(reqs[at].MinValues, len(values))
	return reqs
}

// diverse reports whether the options have the number of values that the claim's minValues require.
func (s *claimOfferings) diverse(options []plan.Option) bool {
	if len(s.minimums) == 0 {
		return true
	}
	types := bitset.New(s.pool.Types.Len())
	for _, o := range options {
		if t, known := s.pool.Types.Lookup(o.Type); known {
			types.Add(t)
		}
	}
	return !slices.ContainsFunc(s.minimums, func(n minimum) bool {
		if n.key == model.LabelType {
			return len(options) < n.need
		}
		return n.values.Count(types, s.row, s.classes) < n.need
	})
}

// enoughOf returns how many of the options, cheapest first, are needed for the claim's minValues.
func (s *claimOfferings) enoughOf(options []plan.Option) int {
	for n := 1; n < len(options); n++ {
		if s.diverse(options[:n]) {
			return n
		}
	}
	return len(options)
}
