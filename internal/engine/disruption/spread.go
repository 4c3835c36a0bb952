package disruption

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// keepsSpread holds spot nodes whose going would leave too much of their pool's spot capacity with one type in one zone:
// what one wave of interruptions takes (PoolSpec.MaxSpotShare). What is bought in their place keeps to the share by
// itself; here it is about what is left. Where it is more than a node too much already, it may not become more.
func (w *world) keepsSpread(c *change) plan.Verdict {
	var names, pools []string
	for _, n := range c.nodes {
		names = append(names, n.Name)
		pool := w.snap.Pool(n.Pool)
		if pool != nil && pool.MaxSpotShare > 0 && n.Labels[model.LabelCapacityType] == spot && !slices.Contains(pools, n.Pool) {
			pools = append(pools, n.Pool)
		}
	}
	if len(pools) == 0 {
		return plan.Verdict{}
	}
	after := w.snap.Without(names...)
	bought := append(w.bought[:len(w.bought):len(w.bought)], c.claims...)
	for _, pool := range pools {
		if now, then := placement.CrowdedSpot(w.snap, pool, w.bought), placement.CrowdedSpot(after, pool, bought); then > now {
			return plan.Verdict{Code: plan.SpotShareExceeded, Node: names[0], Need: w.snap.Pool(pool).MaxSpotShare, Have: then}
		}
	}
	return plan.Verdict{}
}
