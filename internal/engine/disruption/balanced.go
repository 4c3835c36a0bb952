package disruption

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// The policy Balanced compares, pool by pool, the part of the pool's cost that a change saves with the part of the
// pool's eviction cost that it causes. A change is approved if the first is at least half of the second in every
// Balanced pool of its nodes. Other pools are not considered. See https://karpenter.sh/docs/concepts/disruption/ and
// docs/disruption.md.

// LeastScore is the minimum ratio of the two parts.
const LeastScore = 0.5

// leastScore is LeastScore in thousandths.
const leastScore = int64(1000 * LeastScore)

// balancedPolicy is the name of the consolidation policy in the API.
const balancedPolicy = "Balanced"

// scale holds the total cost and eviction cost of a pool.
type scale struct {
	cost     int64
	eviction int64
}

// scales returns the sums of cost and eviction cost of the nodes by pool, and their total cost, nano-USD per hour.
func (w *projection) scales(nodes []*model.Node) (byPool map[string]scale, total int64) {
	byPool = map[string]scale{}
	for _, n := range nodes {
		s := byPool[n.Pool]
		s.cost += w.cost(n)
		s.eviction += 1000 + evictionCost(n)
		byPool[n.Pool] = s
		total += w.cost(n)
	}
	return byPool, total
}

func (w *projection) balanced(c *change) plan.Verdict {
	parts, total := w.scales(c.nodes)
	for _, pool := range w.snap.Pools {
		part, concerned := parts[pool.Name]
		if !concerned || pool.Policy != balancedPolicy {
			continue
		}
		saving := float64(c.worth.Saving) * float64(part.cost) / float64(max(total, 1))
		if score := score(saving, part, w.whole(pool.Name)); score < leastScore {
			return c.refuse(plan.ScoreTooLow, leastScore, score)
		}
	}
	return plan.Verdict{}
}

// score returns the score in thousandths.
func score(saving float64, part, whole scale) int64 {
	switch {
	case saving <= 0 || whole.cost == 0 || whole.eviction == 0:
		return 0
	case part.eviction == 0:
		return math.MaxInt64
	}
	return int64(1000 * (saving / float64(whole.cost)) / (float64(part.eviction) / float64(whole.eviction)))
}

// whole returns the totals of the pool at the beginning of the run.
func (w *projection) whole(pool string) scale {
	if w.wholes == nil {
		w.wholes, _ = w.scales(slices.DeleteFunc(slices.Clone(w.began.Nodes), func(n *model.Node) bool { return !n.Ours() }))
	}
	return w.wholes[pool]
}
