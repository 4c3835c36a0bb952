package disruption

import (
	"math"

	"github.com/karpenter-go/karpenter/internal/engine/bound"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// boundWork keeps the computation of a fleet's bound within a second. More work has not improved the bound for the
// measured fleets.
const boundWork = 100_000_000

// LeastCost returns lower bounds of the price and the cost of the given nodes for any plan, in nano-USD per hour.
// Nodes that must be kept count as they are. The pods of the others are packed anew, onto any available offering, the
// free room of kept nodes, and any of the others, which a plan may keep at its price. Nodes of unknown price stay and
// cost nothing, as in the figures of the fleet. So neither bound is above what the nodes cost today, unless some are
// being deleted. Budgets, the prices of moves, time-dependent limits and pending pods are ignored.
func LeastCost(snap *model.Snapshot, opts Options, about func(*model.Node) bool) (price, cost int64) {
	g := guard.New(snap)
	var going []string
	var held []*model.Node
	moving := map[*model.Pod]bool{}
	for _, n := range snap.Nodes {
		switch {
		case !n.Ours() || !about(n):
			continue
		case n.Deleting:
		case n.LeastPrice() == 0:
			continue
		case !mayGo(g, n, snap):
			price += n.LeastPrice()
			cost += opts.CostOf(snap, n)
			continue
		default:
			held = append(held, n)
		}
		going = append(going, n.Name)
		for _, p := range n.Pods {
			if p.Reschedulable && p.Rejected == nil {
				moving[p] = true
			}
		}
	}
	if len(moving) == 0 {
		return price, cost
	}
	least := int64(math.MaxInt64)
	for _, p := range snap.Pools {
		least = min(least, opts.Placement.NodePriceOf(p.PoolSpec))
	}
	b := bound.Of(snap.Without(going...), bound.Options{NodePrice: least, Work: boundWork, Held: held,
		Pods: func(p *model.Pod) bool { return moving[p] }})
	return price + b.Price, cost + b.Cost
}

// mayGo reports whether there is a reason for which the node may be removed, now or at a later time.
func mayGo(g *guard.Guard, n *model.Node, snap *model.Snapshot) bool {
	reasons := []plan.Reason{plan.Empty, plan.Underutilized}
	if n.Drifted != "" {
		reasons = append(reasons, plan.Drifted)
	}
	if from := RenewFrom(n); !from.IsZero() && !from.After(snap.Now) {
		reasons = append(reasons, plan.Expired)
	}
	for _, reason := range reasons {
		switch g.Removable(n, reason).Code {
		case plan.OK, plan.NodeTooYoung, plan.NodeUnsettled, plan.NodeExpecting, plan.NodeNominated:
			return true
		}
	}
	return false
}
