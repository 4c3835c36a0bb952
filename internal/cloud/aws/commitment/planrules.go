package commitment

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
)

// leastLeft is the least amount of a rule, in USD per hour: less is what rounding leaves.
const leastLeft = 1e-6

// planGroup is the plans of one kind, term and payment that have the same rates. AWS applies them together.
type planGroup struct {
	kind  string // the name without a number
	name  string
	left  float64 // USD per hour
	rates map[string]float64
	most  float64 // the highest part of a price that they save
}

// plans returns the rules for Savings Plans: those of families, then those of Compute. Within each kind, they are applied
// to the instances outside of the cluster by the part of the on-demand price that they save, and then by the lower rate.
// https://docs.aws.amazon.com/savingsplans/latest/userguide/sp-applying.html
func (a *account) plans(plans []Plan, now time.Time) []pricerule.Rule {
	var rules []pricerule.Rule
	for _, ofFamily := range []bool{true, false} {
		groups := a.grouped(slices.DeleteFunc(slices.Clone(plans), func(p Plan) bool {
			return (p.Family != "") != ofFamily || !p.End.After(now) || p.USD <= 0 || len(p.Rates) == 0
		}))
		a.apply(groups)
		for _, g := range groups {
			if g.left < leastLeft {
				continue
			}
			r := rule(g.name)
			r.Prices, r.UpTo.USDPerHour = g.rates, g.left
			rules = append(rules, r)
		}
	}
	return rules
}

// grouped returns the groups by what they save at most. Names are unique.
func (a *account) grouped(plans []Plan) []*planGroup {
	slices.SortFunc(plans, func(x, y Plan) int { return cmp.Compare(x.ID, y.ID) })
	var groups []*planGroup
	for _, p := range plans {
		g := &planGroup{kind: fmt.Sprintf("sp-%s-%dy-%s", cmp.Or(p.Family, "compute"), p.Years, cmp.Or(p.Payment, "other")), rates: p.Rates}
		g.name = g.kind
		same, known := 1, -1
		for i, other := range groups {
			switch {
			case other.kind != g.kind:
			case maps.Equal(other.rates, p.Rates):
				known = i
			default:
				same++
				g.name = fmt.Sprintf("%s-%d", g.kind, same)
			}
		}
		if known >= 0 {
			groups[known].left += p.USD
			continue
		}
		g.left, g.most = p.USD, math.Inf(-1)
		for of, rate := range p.Rates {
			g.most = max(g.most, a.saved(of, rate))
		}
		groups = append(groups, g)
	}
	slices.SortStableFunc(groups, func(x, y *planGroup) int { return cmp.Or(cmp.Compare(y.most, x.most), cmp.Compare(x.name, y.name)) })
	return groups
}

// saved returns the part of the on-demand price that a rate saves; less than any other if the price is not known.
func (a *account) saved(name string, rate float64) float64 { return 1 - rate/a.types[name].USD }

// apply covers the instances outside of the cluster.
func (a *account) apply(groups []*planGroup) {
	type use struct {
		of          *planGroup
		instance    int
		rate, saved float64
	}
	var uses []use
	for _, g := range groups {
		for i, o := range a.others {
			if rate := g.rates[o.Type]; rate > 0 {
				uses = append(uses, use{g, i, rate, a.saved(o.Type, rate)})
			}
		}
	}
	slices.SortStableFunc(uses, func(x, y use) int { return cmp.Or(cmp.Compare(y.saved, x.saved), cmp.Compare(x.rate, y.rate)) })
	for _, u := range uses {
		took := min(a.left[u.instance]*u.rate, u.of.left)
		a.left[u.instance], u.of.left = a.left[u.instance]-took/u.rate, u.of.left-took
	}
}
