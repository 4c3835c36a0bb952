package placement

import (
	"math"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// What the rules of an inquiry say together: the verdict, the rules that excluded types, and the nearest changes.

// walk evaluates the rules in order until no type is left.
func (q *inquiry) walk(firstResource int) plan.PoolVerdict {
	v := plan.PoolVerdict{Pool: q.pool.spec.Name}
	left := q.pool.spec.Eligible.Clone()
	for i := range q.rules {
		before := left.Count()
		all := left.Clone()
		left.AndWith(q.rules[i].passes)
		after := left.Count()
		rule := q.complete(q.rules[i].verdict, all)
		rule.Types = before
		if before > after {
			v.Filters = append(v.Filters, plan.Filter{Rule: rule, Before: before, After: after})
		}
		if after > 0 {
			continue
		}
		if rule.Code == plan.ResourceTooLarge {
			rule = q.tooLarge(rule, q.left(firstResource))
		}
		v.Verdict, v.Also = rule, q.also(i)
		return v
	}
	v.Verdict = q.tooUniform(left, q.both)
	return v
}

// also returns further label rules, each of which excludes every type, if the refusing rule is a label rule.
func (q *inquiry) also(rule int) []plan.Verdict {
	if q.rules[rule].without == nil {
		return nil
	}
	var also []plan.Verdict
	for i := rule + 1; i < len(q.rules); i++ {
		if next := &q.rules[i]; next.without != nil && !next.passes.Intersects(q.pool.spec.Eligible) {
			v := next.verdict
			v.Types = q.pool.spec.Eligible.Count()
			also = append(also, v)
		}
	}
	return also
}

// complete sets the operands that depend on the types before the rule.
func (q *inquiry) complete(v plan.Verdict, among bitset.Set) plan.Verdict {
	switch v.Code {
	case plan.ResourceTooLarge:
		v.Have, v.Daemons = q.most(v.Resource, among), q.leastDaemons(v.Resource, among)
	case plan.LimitReached:
		v.Need = math.MaxInt64
		for t := range among.All() {
			if over := plan.LimitVerdict(q.pool.ledger, q.cheapestUse(t)); !over.OK() && over.Need < v.Need {
				v.Resource, v.Need, v.Have = over.Resource, over.Need, over.Have
			}
		}
	case plan.QuotaReached:
		least := int64(math.MaxInt64)
		for t := range among.All() {
			if one, price := q.quotaFor(t); !one.OK() && price < least {
				v, least = one, price
			}
		}
	}
	return v
}

func (q *inquiry) most(r quantity.Resource, among bitset.Set) int64 {
	var most int64
	for t := range among.All() {
		most = max(most, q.rooms.Most(t, r))
	}
	return most
}

// leastDaemons returns the amount of the resource that the DaemonSets of each node take.
func (q *inquiry) leastDaemons(r quantity.Resource, among bitset.Set) int64 {
	least := int64(math.MaxInt64)
	for t := range among.All() {
		daemons, _ := q.rooms.Daemons(t)
		least = min(least, daemons.At(r))
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// tooLarge separates a resource that no type has enough of from several that no type has together.
func (q *inquiry) tooLarge(v plan.Verdict, all bitset.Set) plan.Verdict {
	v.Types, v.Have, v.Daemons = all.Count(), q.most(v.Resource, all), q.leastDaemons(v.Resource, all)
	if v.Need > 0 && v.Have >= v.Need {
		v.Code = plan.CombinationTooLarge
	}
	return v
}

// tooUniform returns the refusal of a minValues requirement that the types do not satisfy with the offerings of the
// row.
func (q *inquiry) tooUniform(types bitset.Set, row label.Row) plan.Verdict {
	if q.of.opts.RelaxMinValues || len(q.pool.minimums) == 0 {
		return plan.Verdict{}
	}
	_, classes := q.pool.offered(row)
	v := q.pool.diverse(types, row, classes)
	if !v.OK() {
		v.Types = types.Count()
	}
	return v
}

// nearest lists the rules without which types would be left, and enough different ones. If only minValues is not
// satisfied, no amount of a resource would help, so no resource is listed.
func (q *inquiry) nearest() []plan.Change {
	var changes []plan.Change
	for i := range q.rules {
		if q.neverOffered(i) {
			continue
		}
		left := q.pool.spec.Eligible.Clone()
		for j := range q.rules {
			if i != j {
				left.AndWith(q.passes(j, i))
			}
		}
		n := left.Count()
		row := q.both
		if q.rules[i].without != nil {
			row = q.rowWithout(q.rules[i].verdict.Key)
		}
		rule := q.complete(q.rules[i].verdict, left)
		if amount := rule.Code == plan.ResourceTooLarge && rule.Have >= rule.Need; n > 0 && !amount && q.tooUniform(left, row).OK() {
			changes = append(changes, plan.Change{Rule: rule, Types: n})
		}
	}
	return changes
}

// neverOffered reports whether a rule is about availability and no such offering exists at any time.
func (q *inquiry) neverOffered(rule int) bool {
	if q.rules[rule].verdict.Code != plan.NoOffering {
		return false
	}
	_, classes := q.pool.spec.Types.Offered(q.both)
	return len(classes) == 0
}

// passes returns the types that pass a rule when another rule is relaxed.
func (q *inquiry) passes(rule, without int) bitset.Set {
	switch q.rules[rule].verdict.Code {
	case plan.TypesSpared:
		return q.withoutSpecial(without)
	case plan.NoOffering, plan.ReservationTaken:
		if sale := q.rules[without].without; sale != nil {
			return sale
		}
	}
	return q.rules[rule].passes
}
