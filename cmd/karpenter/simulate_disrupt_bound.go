package main

import (
	"math"

	"github.com/karpenter-go/karpenter/internal/engine/bound"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// boundWork keeps the bound of a fleet within a second; more has not made it better on the fleets that we measure.
const boundWork = 100_000_000

// leastCost is what the nodes in question cost at least, nano-USD per hour, whoever plans: those that stay by rule at what
// they are, and the pods of the others packed anew, onto anything that is on sale and the room that is free on nodes
// that stay. Budgets, prices of disruption and everything that passes with time are left aside; pods that wait for a place
// are too.
func leastCost(snap *model.Snapshot, opts disruption.Options, about func(*model.Node) bool) (price, cost int64) {
	guard := plan.NewGuard(snap)
	guard.MinStay = opts.MinStay
	var going []string
	moving := map[*model.Pod]bool{}
	for _, n := range snap.Nodes {
		switch {
		case !n.Ours() || !about(n):
		case !n.Deleting && !mayGo(guard, n, snap):
			price += n.LeastPrice()
			cost += opts.CostOf(snap, n)
		default:
			going = append(going, n.Name)
			for _, p := range n.Pods {
				if p.Reschedulable && p.Rejected == nil {
					moving[p] = true
				}
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
	b := bound.Of(snap.Without(going...), bound.Options{NodePrice: least, Work: boundWork, Pods: func(p *model.Pod) bool { return moving[p] }})
	return price + b.Price, cost + b.Cost
}

// mayGo reports whether there is a reason for which the node may leave, now or when only time has passed.
func mayGo(guard *plan.Guard, n *model.Node, snap *model.Snapshot) bool {
	reasons := []plan.Reason{plan.Empty, plan.Underutilized}
	if n.Drifted != "" {
		reasons = append(reasons, plan.Drifted)
	}
	if from := disruption.RenewFrom(n); !from.IsZero() && !from.After(snap.Now) {
		reasons = append(reasons, plan.Expired)
	}
	for _, reason := range reasons {
		switch guard.Removable(n, reason).Code {
		case plan.OK, plan.NodeTooYoung, plan.NodeUnsettled, plan.NodeExpecting, plan.NodeNominated:
			return true
		}
	}
	return false
}
