package plan

import (
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Payback is the time over which a saving must exceed the price of its disruption, where nothing else is set.
const Payback = time.Hour

// MinStay is for how long what a consolidation did stands, where nothing else is set.
const MinStay = time.Hour

// LeastStay is the least MinStay: kube-scheduler puts pods elsewhere than planned, and where moving is free every look at
// the cluster would find something to change.
const LeastStay = time.Minute

// SettledFrom is when consolidation may change again what it has done here: launch the node to save money, or send pods to
// it for that. It is the zero time for every other node, and for an empty one. A node that was launched for pods, or in place
// of one that drifted or expired, follows its pool's consolidateAfter alone. That cannot go round in a circle: each
// consolidation makes the fleet cheaper, and what it launches, and where it sends pods, stays.
func (g *Guard) SettledFrom(n *model.Node) time.Time {
	if Inhabitants(n) == 0 {
		return time.Time{}
	}
	since := n.ConsolidatedAt
	if launched := launchedAt(n); n.Replacement && launched.After(since) {
		since = launched
	}
	if since.IsZero() {
		return since
	}
	return since.Add(max(0, g.stayOf(n)))
}

// stayOf is the pool's minimum stay, its payback where it says only that, else what the run says.
func (g *Guard) stayOf(n *model.Node) time.Duration {
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

func (g *Guard) settled(n *model.Node) Verdict {
	if g.SettledFrom(n).After(g.snap.Now) {
		return Verdict{Code: NodeUnsettled, Node: n.Name, Need: int64(g.stayOf(n) / time.Second)}
	}
	return Verdict{}
}
