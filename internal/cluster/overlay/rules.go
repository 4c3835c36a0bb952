package overlay

import (
	"fmt"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
)

// Rules of the price file are overlays that come before all NodeOverlays, in the order of the file. A rule with a limit
// changes no price: it adds a commitment to the offerings, whose prices are those of the provider, or of other rules and
// NodeOverlays, beyond the limit.

// rulePrefix is before the names of rules, among those of NodeOverlays.
const rulePrefix = "price-file/"

// WithRules adds the rules of the price file. A rule with an invalid requirement is an error, which names it.
func (s *Set) WithRules(rules []pricerule.Rule) (*Set, error) {
	with := *s
	with.overlays = nil
	for i := range rules {
		o, err := s.compileRule(&rules[i], i)
		if err != nil {
			return nil, err
		}
		with.overlays = append(with.overlays, o)
	}
	with.overlays = append(with.overlays, s.overlays...)
	return &with, nil
}

func (s *Set) compileRule(r *pricerule.Rule, rank int) (*compiled, error) {
	o := &compiled{name: rulePrefix + r.Name, weight: math.MaxInt32 - int32(rank), rule: r, rank: rank, changesPrice: true}
	if problem := o.require(r.Requirements, s.rules); problem != "" {
		return nil, fmt.Errorf("rules[%d].%s", rank, problem)
	}
	for _, w := range o.wants {
		s.keys[w.key] = true
	}
	o.adjusts = r.Factor != nil
	return o, nil
}

// limited reports whether the overlay is a commitment.
func (o *compiled) limited() bool { return o.rule != nil && o.rule.UpTo != nil }

// commit adds the commitments to the offerings of a type, and reports whether there are any. t is what other overlays made
// of the provider's type.
func (out *Outcome) commit(ofPool facts, t, raw *cloud.InstanceType) bool {
	found := false
	for _, o := range out.winners {
		if !o.limited() {
			continue
		}
		for _, k := range out.set.matching(o, ofPool, raw) {
			if raw.Offerings[k].Unpriced {
				continue
			}
			if !found {
				t.Offerings, found = slices.Clone(t.Offerings), true
			}
			of := &t.Offerings[k]
			of.Commitments = append(slices.Clip(of.Commitments), o.rule.Commitment(o.rank, raw.Name, raw.Offerings[k].Price))
		}
	}
	return found
}
