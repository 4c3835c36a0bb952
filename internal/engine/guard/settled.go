package guard

import (
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Payback is the default time over which a saving must exceed the price of its disruption.
const Payback = time.Hour

// MinStay is the default time for which consolidation does not change the result of an earlier consolidation.
const MinStay = time.Hour

// LeastStay is the smallest MinStay. kube-scheduler may bind pods elsewhere than planned, and where moving is free,
// every pass would find a change.
const LeastStay = time.Minute

// SettledFrom returns when consolidation may change its earlier result on this node: a node that it launched, or moved
// pods to, to reduce cost. It is the zero time for every other node, and for an empty one. Nodes launched for pods, or
// in place of a drifted or expired node, follow their pool's consolidateAfter alone. No cycle is possible: each
// consolidation reduces the cost of the fleet, and the nodes that it launches or moves pods to are protected.
func (g *Guard) SettledFrom(n *model.Node) time.Time {
	if n.Reschedulable() == 0 {
		return time.Time{}
	}
	since := n.ConsolidatedAt
	if launched := launchedAt(n); n.Replacement && launched.After(since) {
		since = launched
	}
	if since.IsZero() {
		return since
	}
	return since.Add(max(0, g.minStayOf(n)))
}

// minStayOf returns the pool's minimum stay, else the pool's payback, else the guard's MinStay.
func (g *Guard) minStayOf(n *model.Node) time.Duration {
	stay := g.MinStay
	if pool := g.snap.Pool(n.Pool); pool != nil {
		switch {
		case pool.MinStay != 0:
			stay = max(0, pool.MinStay)
		case pool.Payback != 0:
			stay = max(0, pool.Payback)
		}
	}
	if stay == 0 {
		return LeastStay
	}
	return stay
}

func launchedAt(n *model.Node) time.Time {
	if n.InitializedAt.IsZero() {
		return n.Created
	}
	return n.InitializedAt
}

func (g *Guard) settled(n *model.Node) plan.Verdict {
	if g.SettledFrom(n).After(g.snap.Now) {
		return plan.Verdict{Code: plan.NodeUnsettled, Node: n.Name, Need: int64(g.minStayOf(n) / time.Second)}
	}
	return plan.Verdict{}
}
