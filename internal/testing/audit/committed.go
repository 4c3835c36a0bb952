package audit

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// commitments checks that machines cost what the commitments leave them, the oldest first, and that the claims of the plan
// take no more than is left then.
func (j *judge) commitments(claims []plan.NewClaim) {
	left := map[string]int64{}
	for _, pool := range j.snap.Pools {
		for _, o := range offerings(pool, "") {
			if o.Units > 0 {
				left[o.ReservationID] = o.Limit
			}
		}
	}
	if len(left) == 0 {
		return
	}
	nodes := slices.SortedFunc(slices.Values(j.snap.Nodes), func(a, b *model.Node) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	for _, n := range nodes {
		switch pool := j.snap.Pool(n.Pool); {
		case n.Claim == "" || n.Deleting || pool == nil:
		case n.Stage == model.Launching: // which machine it becomes is not known
			for id, units := range n.Uses() {
				left[id] -= units
			}
		default:
			j.covered(n, pool, left)
		}
	}
	for i := range claims {
		c := &claims[i]
		if _, is := model.CommitmentName(c.Reservation); !is || len(c.Options) == 0 {
			continue
		}
		for _, o := range offerings(j.snap.Pool(c.Pool), c.Options[0].Type) {
			if o.ReservationID == c.Reservation && o.Zone == c.Options[0].Zone {
				left[c.Reservation] -= units(o)
			}
		}
		if left[c.Reservation] < 0 {
			j.blame("commitment", c.Name, "is beyond the limit of %s by %d", c.Reservation, -left[c.Reservation])
		}
	}
}

// covered checks the price of a machine, and takes what it uses of the commitments.
func (j *judge) covered(n *model.Node, pool *model.Pool, left map[string]int64) {
	var own []*model.Offering
	listed, price, rest := int64(0), 0.0, 1.0
	for _, o := range offerings(pool, n.Labels[model.LabelType]) {
		if o.Zone != n.Labels[model.LabelZone] || o.CapacityType != n.Labels[model.LabelCapacityType] {
			continue
		}
		if o.Units > 0 {
			own = append(own, o)
		} else {
			listed = o.Price
		}
	}
	slices.SortFunc(own, func(a, b *model.Offering) int { return cmp.Compare(a.ReservationID, b.ReservationID) })
	for _, o := range own {
		part := min(rest, float64(max(0, left[o.ReservationID]))/float64(units(o)))
		left[o.ReservationID] -= int64(float64(part*float64(units(o))) + 0.5)
		price, rest = price+part*float64(o.Price), rest-part
	}
	price += rest * float64(listed)
	if diff := float64(n.Price) - price; len(own) > 0 && (diff < -3 || diff > 3) {
		j.blame("commitment", n.Name, "costs %d, want %.0f of %d", n.Price, price, listed)
	}
}

// units returns what a machine takes of the commitment of the offering.
func units(o *model.Offering) int64 {
	if o.PerPrice > 0 {
		return o.Price * o.PerPrice
	}
	return o.Units
}

// offerings returns those of a type of the pool, "" for all types.
func offerings(pool *model.Pool, name string) (all []*model.Offering) {
	if pool == nil || pool.PoolSpec.Catalog == nil {
		return nil
	}
	for i := range pool.PoolSpec.Catalog.Types {
		if t := &pool.PoolSpec.Catalog.Types[i]; name == "" || t.Name == name {
			for k := range t.Offerings {
				all = append(all, &t.Offerings[k])
			}
		}
	}
	return all
}

// paysFor reports whether the claim may be bought at the price of the offering: a commitment is for the claims that count on
// it.
func paysFor(o *model.Offering, c *plan.NewClaim) bool {
	_, counts := model.CommitmentName(c.Reservation)
	return o.ReservationID == c.Reservation || o.Units == 0 && !counts
}

// unused checks that a claim is in a reservation that has room left for a type of the claim. It is silent where one machine
// cannot be judged alone: in pools with limits or minValues, and for pods with preferences or rules for domains other than
// nodes.
func (j *judge) unused(c *plan.NewClaim, pool *model.PoolSpec, left map[string]int) {
	least := func(r label.Requirement) bool { return r.MinValues > 0 }
	if len(pool.Limits) > 0 || slices.ContainsFunc(pool.Requirements, least) || slices.ContainsFunc(c.Pods, j.dependsOnZones) {
		return
	}
	for i := range pool.Catalog.Types {
		t := &pool.Catalog.Types[i]
		if !slices.ContainsFunc(c.Options, func(o plan.Option) bool { return o.Type == t.Name }) {
			continue
		}
		for k := range t.Offerings {
			at := &t.Offerings[k]
			if !at.Available || at.Units > 0 || left[at.ReservationID] <= 0 {
				continue
			}
			reqs := slices.DeleteFunc(slices.Clone(c.Requirements), func(r label.Requirement) bool {
				return r.Key == model.LabelCapacityType || says(at.Requirements, r.Key)
			})
			o := outcome{j.promise(slices.Concat(reqs, pool.Requirements), c.Labels, c.Requests, pool.Catalog), t, at}
			if o.possible() && everyValue(pool.Requirements, o.values) &&
				!slices.ContainsFunc(c.Pods, func(p *model.Pod) bool { return !admits(p, o.values) }) {
				j.blame("preferred", c.Name, "costs %d, and reservation %s has %d left of %s", c.Options[0].Price, at.ReservationID,
					left[at.ReservationID], t.Name)
			}
		}
	}
}

// dependsOnZones reports whether the pod has preferences or rules for domains other than nodes, or such rules of other pods
// select it.
func (j *judge) dependsOnZones(p *model.Pod) bool {
	spread := func(s model.Spread) bool { return s.Key != model.LabelHostname }
	term := func(t model.Term) bool { return t.Key != model.LabelHostname }
	selects := func(other *model.Pod) bool {
		return slices.ContainsFunc(other.Spread, func(s model.Spread) bool { return spread(s) && s.Selector.Selects(p.Namespace, p.Labels) }) ||
			slices.ContainsFunc(other.Terms, func(t model.Term) bool { return term(t) && t.Selector.Selects(p.Namespace, p.Labels) })
	}
	return len(p.Preferred) > 0 || slices.ContainsFunc(p.Spread, spread) || slices.ContainsFunc(p.Terms, term) ||
		slices.ContainsFunc(j.snap.Groups, func(g *model.Group) bool { return selects(g.Pods[0]) }) ||
		slices.ContainsFunc(j.snap.Nodes, func(n *model.Node) bool { return slices.ContainsFunc(n.Pods, selects) })
}
