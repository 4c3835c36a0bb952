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
	bought := append(w.bought[:len(w.bought):len(w.bought)], c.claims...)
	return crowding(c, w.snap,
		func(pool string) int64 { return placement.CrowdedSpot(w.snap, pool, w.bought) },
		func(after *model.Snapshot, pool string) int64 { return placement.CrowdedSpot(after, pool, bought) })
}

// keepsShare asks the same of a command that is under way and for which not all has been bought yet, on what is there by
// now: others may have left since it was proposed.
func (j *judgement) keepsShare(c *change, cmd plan.Command) plan.Verdict {
	var futures []*model.Node
	for i := range cmd.Replacements {
		if n := j.future[cmd.Replacements[i].Name]; n != nil {
			futures = append(futures, n)
		}
	}
	return crowding(c, j.began,
		func(pool string) int64 { return placement.CrowdedSpot(j.began, pool, nil) },
		func(after *model.Snapshot, pool string) int64 {
			return placement.CrowdedSpot(after.With(futures...), pool, nil)
		})
}

// crowding is the verdict on spot nodes that leave, by how crowded their pools are now, and then, without them.
func crowding(c *change, snap *model.Snapshot, now func(pool string) int64, then func(after *model.Snapshot, pool string) int64) plan.Verdict {
	var names, pools []string
	for _, n := range c.nodes {
		names = append(names, n.Name)
		pool := snap.Pool(n.Pool)
		if pool != nil && pool.MaxSpotShare > 0 && n.Labels[model.LabelCapacityType] == spot && !slices.Contains(pools, n.Pool) {
			pools = append(pools, n.Pool)
		}
	}
	if len(pools) == 0 {
		return plan.Verdict{}
	}
	after := snap.Without(names...)
	for _, pool := range pools {
		if have := then(after, pool); have > now(pool) {
			return plan.Verdict{Code: plan.SpotShareExceeded, Node: names[0], Need: snap.Pool(pool).MaxSpotShare, Have: have}
		}
	}
	return plan.Verdict{}
}
