package guard

import (
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Payback is the default time over which a saving must exceed the price of its disruption.
const Payback = time.Hour

// Settling is how long consolidation leaves a node unchanged that it launched or moved pods to: pods that it evicted are
// created again, and bound, within that time.
const Settling = time.Minute

// ConsolidatedAt returns when consolidation last launched the node or moved pods to it, to reduce cost. It is the zero
// time for every other node, and for an empty one. Nodes launched for pods, or in place of a drifted or expired node,
// follow their pool's consolidateAfter alone.
func ConsolidatedAt(n *model.Node) time.Time {
	if n.Reschedulable() == 0 {
		return time.Time{}
	}
	since := n.ConsolidatedAt
	if launched := launchedAt(n); n.Replacement && launched.After(since) {
		since = launched
	}
	return since
}

// SettledFrom returns when consolidation may change its earlier result on this node; the zero time if there is none.
func (g *Guard) SettledFrom(n *model.Node) time.Time {
	since := ConsolidatedAt(n)
	if since.IsZero() {
		return since
	}
	return since.Add(g.Settling)
}

func launchedAt(n *model.Node) time.Time {
	if n.InitializedAt.IsZero() {
		return n.Created
	}
	return n.InitializedAt
}

func (g *Guard) settled(n *model.Node) plan.Verdict {
	if g.SettledFrom(n).After(g.snap.Now) {
		return plan.Verdict{Code: plan.NodeUnsettled, Node: n.Name, Need: int64(g.Settling / time.Second)}
	}
	return plan.Verdict{}
}
