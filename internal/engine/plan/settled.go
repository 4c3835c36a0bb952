package plan

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Payback is the time over which a saving must usually exceed its price, and for which what was bought usually stays.
const Payback = time.Hour

// SettledFrom is when the purchase of the node will have paid back, so that consolidation may undo it: nothing that was
// just decided is undone a moment later, and a rolling update makes no nodes that live five minutes. Pods that were moved
// to save money stay as long where they were sent to. It is the zero time where none of this matters: for empty nodes, for
// those that nobody remembers to have been bought for something, and where most of the pods that the node was bought for
// are no more. Where they are does not matter: in a rolling update many find a place that has become free meanwhile, and
// would need the node again in the next one.
func (g *Guard) SettledFrom(n *model.Node) time.Time {
	payback := g.paybackOf(n)
	if payback <= 0 || Inhabitants(n) == 0 {
		return time.Time{}
	}
	since, bought := n.ConsolidatedAt, boughtAt(n)
	if bought.After(since) && (n.Replacement || g.mostlyAlive(n)) {
		since = bought
	}
	if since.IsZero() {
		return since
	}
	return since.Add(payback)
}

// LeastStay is for how long what was decided stands where nothing has to pay back: kube-scheduler puts pods elsewhere than
// planned, and where moving is free every look at the cluster would find something to change.
const LeastStay = time.Minute

func (g *Guard) paybackOf(n *model.Node) time.Duration {
	payback := g.Payback
	if pool := g.snap.Pool(n.Pool); pool != nil && pool.Payback != 0 {
		payback = max(0, pool.Payback)
	}
	if payback == 0 {
		return LeastStay
	}
	return payback
}

// paidBack reports whether the purchase of the node is so long ago that nobody asks why it was made.
func (g *Guard) paidBack(n *model.Node) bool {
	return boughtAt(n).Add(g.paybackOf(n)).Before(g.snap.Now)
}

func boughtAt(n *model.Node) time.Time {
	if n.InitializedAt.IsZero() {
		return n.Created
	}
	return n.InitializedAt
}

// mostlyAlive reports whether at least half of the pods that the node was bought for are there, on it or anywhere. A pod
// that ran elsewhere then could not come itself: one of its controller that is on the node counts for it.
func (g *Guard) mostlyAlive(n *model.Node) bool {
	if len(n.BoughtFor) == 0 {
		return false
	}
	there, heirs := map[string]bool{}, map[string]int{}
	for _, p := range n.Pods {
		if slices.Contains(n.BoughtFor, p.UID) {
			there[p.UID] = true
		} else {
			heirs[p.Controller.UID]++
		}
	}
	if 2*len(there) < len(n.BoughtFor) && !g.paidBack(n) {
		alive := g.aliveOf()
		for _, uid := range n.BoughtFor {
			if alive[uid] {
				there[uid] = true
			}
		}
	}
	count := len(there)
	for i, owner := range n.BoughtOwners[:min(len(n.BoughtOwners), len(n.BoughtFor))] {
		if owner != "" && !there[n.BoughtFor[i]] && heirs[owner] > 0 {
			heirs[owner]--
			count++
		}
	}
	return count > 0 && 2*count >= len(n.BoughtFor)
}

// aliveOf says of the pods that nodes were bought for not long ago which are there. It takes a pass over all pods, the
// first time.
func (g *Guard) aliveOf() map[string]bool {
	if g.alive != nil {
		return g.alive
	}
	g.alive = map[string]bool{}
	for _, n := range g.snap.Nodes {
		if len(n.BoughtFor) > 0 && !g.paidBack(n) {
			for _, uid := range n.BoughtFor {
				g.alive[uid] = false
			}
		}
	}
	note := func(pods []*model.Pod) {
		for _, p := range pods {
			if _, asked := g.alive[p.UID]; asked && !p.Terminating {
				g.alive[p.UID] = true
			}
		}
	}
	for _, n := range g.snap.Nodes {
		note(n.Pods)
	}
	for _, group := range g.snap.Groups {
		note(group.Pods)
	}
	return g.alive
}

func (g *Guard) settled(n *model.Node) Verdict {
	if g.SettledFrom(n).After(g.snap.Now) {
		return Verdict{Code: NodeUnsettled, Node: n.Name}
	}
	return Verdict{}
}
