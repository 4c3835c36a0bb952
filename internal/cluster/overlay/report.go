package overlay

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
)

// Change is what an overlay does, or would do if another one did not overrule it.
type Change struct {
	Overlay, Pool, Type string
	// Offering is the name of the offering with a new price: type/zone/capacity type, and the reservation if there is
	// one. It is empty for a resource.
	Offering string
	// Raw is the provider's price, and Price the one in effect, in USD per hour.
	Raw, Price float64
	// Resource and Amount, in the units of cloud.InstanceType, describe a change of capacity.
	Resource string
	Amount   int64
	// By is the overlay that takes precedence, "" if this one has an effect.
	By string
}

// Report is the state of one overlay.
type Report struct {
	Name string
	// Reason is that of the condition ValidationSucceeded if it is False, else "".
	Reason string
	// Message explains the reason, or what the overlay does.
	Message string
	// PriceTypes and CapacityTypes are the numbers of types that it changes.
	PriceTypes, CapacityTypes int
}

// Reports returns the state of all overlays, by name.
func (out *Outcome) Reports() []Report { return out.reports }

// Changes returns what the overlays do to a pool, in the order of its types.
func (out *Outcome) Changes(p Pool) []Change {
	var list []Change
	out.apply(p, func(c Change) { list = append(list, c) })
	return list
}

// tally counts what an overlay does.
type tally struct {
	offerings, priced, resized, pools map[string]bool
	overruled                         map[string]bool // the names of the overlays that take precedence
}

func (s *Set) reports(out *Outcome, pools []Pool, conflicts map[string]*conflict) []Report {
	tallies := map[string]*tally{}
	for _, o := range out.winners {
		tallies[o.name] = &tally{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	}
	for _, p := range pools {
		if known := out.resultOf(p); known != nil {
			known.pools = append(known.pools, p.Name)
			continue
		}
		r := &result{ofPool: s.ofPool(p.Name, p.Labels), from: p.Types, pools: []string{p.Name}}
		r.types, r.marks = out.apply(p, func(c Change) { tallies[c.Overlay].add(c) })
		out.known = append(out.known, r)
	}
	for _, t := range tallies {
		t.addPools(out.known)
	}
	var list []Report
	for name, problem := range s.invalid {
		list = append(list, Report{Name: name, Reason: karpv1alpha1.ReasonRuntimeValidation, Message: problem})
	}
	for name, c := range conflicts {
		list = append(list, Report{Name: name, Reason: karpv1alpha1.ReasonConflict, Message: c.String()})
	}
	out.rules = map[string]*tally{}
	for name, t := range tallies {
		if strings.HasPrefix(name, rulePrefix) {
			out.rules[name] = t
		} else {
			list = append(list, Report{Name: name, Message: t.String(len(pools)), PriceTypes: len(t.priced), CapacityTypes: len(t.resized)})
		}
	}
	slices.SortFunc(list, func(a, b Report) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (t *tally) add(c Change) {
	switch {
	case c.By != "":
		t.overruled[c.By] = true
		return
	case c.Resource != "":
		t.resized[c.Type] = true
	default:
		t.offerings[c.Offering], t.priced[c.Type] = true, true
	}
	t.pools[c.Pool] = true
}

// addPools adds the pools with the same results as those that were counted.
func (t *tally) addPools(results []*result) {
	for _, r := range results {
		for _, name := range r.pools[1:] {
			if t.pools[r.pools[0]] {
				t.pools[name] = true
			}
		}
	}
}

// String describes the effect in all pools.
func (t *tally) String(pools int) string {
	var by string
	if len(t.overruled) > 0 {
		by = fmt.Sprintf("overlays with precedence: %q", slices.Sorted(maps.Keys(t.overruled)))
	}
	switch {
	case len(t.pools) == 0 && by == "":
		return fmt.Sprintf("applies to nothing: no instance type of %d pools matches", pools)
	case len(t.pools) == 0:
		return "applies to nothing; " + by
	}
	text := fmt.Sprintf("price of %d offerings of %d types, capacity of %d types, in %d of %d pools",
		len(t.offerings), len(t.priced), len(t.resized), len(t.pools), pools)
	if by != "" {
		text += "; " + by
	}
	return text
}
