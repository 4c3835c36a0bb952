package placement

import (
	"math"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// verdicts asks every pool once more why it has no place for the group. This runs only for pods that are refused, so
// it may take its time: it names the first rule that left nothing, in the order in which a user would check.
func (r *run) verdicts(t *task) plan.Refusal {
	refusal := plan.Refusal{Pods: t.left}
	switch {
	case len(t.group.Rows) == 0:
		refusal.Verdict = plan.Verdict{Code: plan.PodContradiction, Key: t.group.Contradiction}
	case len(r.snap.Pools) == 0:
		refusal.Verdict = plan.Verdict{Code: plan.NoPools}
	default:
		between := r.between(t)
		for _, m := range r.pools {
			v := r.verdict(m, t.group)
			if v.OK() {
				v = between
			}
			refusal.Pools = append(refusal.Pools, plan.PoolVerdict{Pool: m.pool.Name, Verdict: v})
		}
	}
	return refusal
}

// between is the rule between pods that keeps the task out of its domains, OK when none does.
func (r *run) between(t *task) plan.Verdict {
	if len(t.rules.hostAffinities) > 0 && !r.firstOfItsKind(t) {
		return plan.Verdict{Code: plan.AffinityUnmet, Key: t.rules.host}
	}
	var v plan.Verdict
	for _, d := range t.domains {
		if v = r.admits(t, d); v.OK() {
			return v
		}
	}
	return v
}

func (r *run) verdict(m *market, g *model.Group) plan.Verdict {
	p := m.pool
	switch {
	case p.Blocked != nil:
		return plan.Verdict{Code: plan.PoolBlocked, Rejection: p.Blocked}
	case !p.Valid:
		return plan.Verdict{Code: plan.PoolContradiction, Key: p.Contradiction}
	case p.Types == nil:
		return plan.Verdict{Code: plan.NoOffering}
	}
	if taint, no := model.Untolerated(p.Taints, g.Tolerations); no {
		return plan.Verdict{Code: plan.TaintNotTolerated, Taint: taint}
	}
	// Of several alternatives the one that got furthest says most.
	var best plan.Verdict
	for i, row := range g.Rows {
		if v := r.verdictOn(m, g, row); i == 0 || furthest(v) > furthest(best) {
			best = v
		}
	}
	return best
}

// furthest ranks how many rules were passed before the refusal.
func furthest(v plan.Verdict) int {
	switch v.Code {
	case plan.LabelUndefined, plan.LabelExcluded:
		return 0
	case plan.TypesExcluded:
		return 1
	case plan.ResourceTooLarge, plan.CombinationTooLarge:
		return 2
	case plan.NoOffering:
		return 3
	}
	return 4
}

func (r *run) verdictOn(m *market, g *model.Group, row label.Row) plan.Verdict {
	space, p := r.snap.Space, m.pool
	both := make(label.Row, space.Words())
	if !space.And(both, p.Start, row) {
		key, _ := space.Conflict(p.Start, row)
		code := plan.LabelExcluded
		if undefined := r.unsaid(m); !p.Catalogue.WellKnown[space.Name(key)] && space.EqualKey(p.Start, undefined, key) {
			code = plan.LabelUndefined
		}
		return plan.Verdict{Code: code, Key: key}
	}
	types := p.Eligible.Clone()
	for k := label.Key(0); int(k) < space.Len(); k++ {
		before := types.Count()
		if !p.Types.Narrow(types, both, k) {
			return plan.Verdict{Code: plan.TypesExcluded, Key: k, Types: before}
		}
	}
	m.spareSpecial(types, asksSpecial(r.snap, g))
	if v := tooLarge(m, g, types); !v.OK() {
		return v
	}
	count := types.Count()
	onSale, _ := m.offered(both)
	types.AndWith(onSale)
	if types.Empty() {
		return plan.Verdict{Code: plan.NoOffering, Types: count}
	}
	return r.overLimit(m, types)
}

// tooLarge keeps the types that hold one pod of the group, and says what none has enough of.
func tooLarge(m *market, g *model.Group, types bitset.Set) plan.Verdict {
	all := types.Clone()
	short := m.pool.WithAtLeast(types, g.Requests)
	if short < 0 {
		return plan.Verdict{}
	}
	v := plan.Verdict{Code: plan.ResourceTooLarge, Resource: short, Need: g.Requests.At(short), Types: all.Count()}
	for t := range all.All() {
		v.Have = max(v.Have, m.pool.Net[t].At(short))
	}
	if v.Have >= v.Need {
		v.Code = plan.CombinationTooLarge
	}
	return v
}

// overLimit says which limit leaves too little for even the smallest type.
func (r *run) overLimit(m *market, types bitset.Set) plan.Verdict {
	if m.nodes == 0 {
		return plan.Verdict{Code: plan.NodeLimitReached, Have: m.pool.NodeLimit}
	}
	least := quantity.Vector(nil)
	resource := quantity.Resource(0)
	need := int64(math.MaxInt64)
	for t := range types.All() {
		over, within := m.within(m.pool.Types.Total[t])
		if !within && m.pool.Types.Total[t].At(over) < need {
			least, resource, need = m.pool.Types.Total[t], over, m.pool.Types.Total[t].At(over)
		}
	}
	if least == nil {
		// Nothing about the pool alone refuses.
		return m.diverse(types)
	}
	return plan.Verdict{Code: plan.LimitReached, Resource: resource, Need: need, Have: m.remaining[resource], Types: types.Count()}
}
