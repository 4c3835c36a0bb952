package disruption

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/spotshare"
)

// keepsSpread refuses to remove spot nodes if that leaves too much of their pool's spot capacity with one type in one
// zone, which a single wave of interruptions may take (PoolSpec.MaxSpotShare). Replacements respect the share by
// themselves; this check is about the remaining nodes. If the excess is already more than one node, it must not
// increase.
func (w *projection) keepsSpread(c *change) plan.Verdict {
	decidedClaims := append(w.decidedClaims[:len(w.decidedClaims):len(w.decidedClaims)], c.claims...)
	return spotShareVerdict(c, w.snap,
		func(pool string) int64 { return spotshare.Exceeded(w.snap, pool, w.decidedClaims) },
		func(after *model.Snapshot, pool string) int64 {
			return spotshare.Exceeded(after, pool, decidedClaims)
		})
}

// keepsShare does the same check for a command in progress with replacements that are not launched yet, on the
// current nodes: others may have been removed since it was proposed.
func (j *judgment) keepsShare(c *change, cmd plan.Command) plan.Verdict {
	var futures []*model.Node
	for i := range cmd.Replacements {
		if n := j.future[cmd.Replacements[i].Name]; n != nil {
			futures = append(futures, n)
		}
	}
	return spotShareVerdict(c, j.began,
		func(pool string) int64 { return spotshare.Exceeded(j.began, pool, nil) },
		func(after *model.Snapshot, pool string) int64 {
			return spotshare.Exceeded(after.With(futures...), pool, nil)
		})
}

// spotShareVerdict returns the verdict on the removal of spot nodes, from how concentrated their pools are now, and
// then, without the nodes.
func spotShareVerdict(c *change, snap *model.Snapshot, now func(pool string) int64, then func(after *model.Snapshot, pool string) int64) plan.Verdict {
	var names, pools []string
	for _, n := range c.nodes {
		names = append(names, n.Name)
		pool := snap.Pool(n.Pool)
		if pool != nil && pool.MaxSpotShare > 0 && n.Labels[model.LabelCapacityType] == spotshare.Spot && !slices.Contains(pools, n.Pool) {
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
