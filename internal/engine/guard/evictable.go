package guard

import (
	"github.com/karpenter-go/karpenter/internal/engine/eviction"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// evictable returns the first refusing verdict of the node's pods.
func (g *Guard) evictable(n *model.Node) plan.Verdict {
	for _, p := range n.Pods {
		if v := eviction.Allowed(g.snap, p); !v.OK() {
			v.Node = n.Name
			return v
		}
	}
	return plan.Verdict{}
}

// Obstacles returns every verdict that keeps the node, if it could be removed for being underutilized: the annotation of the
// node, what the pool forbids, each pod that cannot be evicted, and a budget without room. Removable and Admit stop at the
// first. A node that is being removed has none.
func (g *Guard) Obstacles(n *model.Node) []plan.Verdict {
	var list []plan.Verdict
	add := func(v plan.Verdict) {
		if !v.OK() {
			v.Node = n.Name
			list = append(list, v)
		}
	}
	pool := g.snap.Pool(n.Pool)
	if pool == nil || pool.Refused != nil || n.Deleting || n.Command != "" || n.Stage != model.Initialized {
		return nil
	}
	if n.DoNotDisrupt {
		add(plan.Verdict{Code: plan.NodeProtected})
	}
	if n.ZoneShifted {
		add(plan.Verdict{Code: plan.ZoneShifted, Name: n.Labels[model.LabelZone]})
	}
	if g.nominated[n.Name] || n.NominatedUntil.After(g.snap.Now) {
		add(plan.Verdict{Code: plan.NodeNominated})
	}
	add(g.holds(n, pool, plan.Underutilized))
	for _, p := range n.Pods {
		for _, v := range eviction.Refusals(g.snap, p) {
			add(v)
		}
	}
	if a := g.Allowance(n.Pool, plan.Underutilized, n.Name); !a.Verdict.OK() {
		add(a.Verdict)
	} else if a.Remaining() == 0 {
		add(plan.Verdict{Code: plan.BudgetExhausted, Have: a.Allowed})
	}
	return list
}

// protected returns the first pod of the node that do-not-disrupt protects now, nil if there is none.
func (g *Guard) protected(n *model.Node) *model.Pod {
	for _, p := range n.Pods {
		if p.ProtectedUntil.After(g.snap.Now) {
			return p
		}
	}
	return nil
}
