package overlay

import (
	"fmt"
	"math"
	"slices"
	"strings"

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
	o.opens = r.Prices != nil || r.Price != nil && namesTypesOnly(r.InstanceTypes)
	o.adjusts = !o.opens
	return o, nil
}

// namesTypesOnly reports whether the patterns are names of instance types. A price for more opens no offering, as in a
// NodeOverlay.
func namesTypesOnly(patterns []string) bool {
	return len(patterns) > 0 && !slices.ContainsFunc(patterns, func(p string) bool { return strings.ContainsAny(p, `*?[\`) })
}

// limited reports whether the overlay is a commitment.
func (o *compiled) limited() bool { return o.rule != nil && o.rule.UpTo != nil }

// commit adds the commitments to the offerings of a type, and reports whether there are any. t is what other overlays made
// of the provider's type. It calls note, if it is not nil, for each commitment.
func (out *Outcome) commit(pool string, ofPool facts, t, raw *cloud.InstanceType, note func(Change)) bool {
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
			tell(note, Change{Overlay: o.name, Pool: pool, Type: raw.Name, Offering: offeringName(raw, k), Raw: raw.Offerings[k].Price,
				Price: o.rule.Of(raw.Name, raw.Offerings[k].Price)})
		}
	}
	return found
}

// RuleProblems returns what of the rules of the price file has no effect in the catalogs that the outcome was resolved for,
// in the order of the file. Rules of the provider are left out: what an account has bought may be for other clusters.
func (out *Outcome) RuleProblems() []Report {
	var types []*cloud.InstanceType
	seen := map[*cloud.InstanceType]bool{}
	for _, r := range out.known {
		for i := range r.from {
			if t := &r.from[i]; !seen[t] {
				seen[t] = true
				types = append(types, t)
			}
		}
	}
	var list []Report
	for _, o := range out.winners {
		if o.rule == nil || o.rule.OfCloud || len(types) == 0 {
			continue
		}
		if problem := out.rules[o.name].problem(o.rule, types); problem != "" {
			list = append(list, Report{Name: o.rule.Name, Message: problem})
		}
	}
	return list
}

// problem returns what of a rule has no effect, "" if all has one.
func (t *tally) problem(r *pricerule.Rule, types []*cloud.InstanceType) string {
	effect := len(t.pools) > 0
	if !effect && len(t.overruled) > 0 {
		return "has no effect: an earlier rule sets the price of all that it matches"
	}
	switch unmatched := r.Unmatched(types, effect); {
	case len(unmatched) > 0 && effect:
		return "matches nothing by " + some(unmatched) + ": no instance type has that"
	case len(unmatched) > 0:
		return "has no effect: no instance type matches " + some(unmatched)
	case !effect:
		return "has no effect: no offering matches all of its fields and has a price"
	}
	return ""
}

// some joins the first three texts, with the number of the others.
func some(texts []string) string {
	if more := len(texts) - 3; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts[:3], ", "), more)
	}
	return strings.Join(texts, ", ")
}
