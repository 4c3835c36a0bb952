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
// have left it.
func (g *Guard) SettledFrom(n *model.Node) time.Time {
	payback := g.Payback
	if pool := g.snap.Pool(n.Pool); pool != nil && pool.Payback != 0 {
		payback = pool.Payback
	}
	if payback <= 0 || Inhabitants(n) == 0 {
		return time.Time{}
	}
	since := n.ConsolidatedAt
	if n.Replacement || mostlyThere(n) {
		bought := n.InitializedAt
		if bought.IsZero() {
			bought = n.Created
		}
		if bought.After(since) {
			since = bought
		}
	}
	if since.IsZero() {
		return since
	}
	return since.Add(payback)
}

// mostlyThere reports whether at least half of the pods that the node was bought for are on it. A pod that ran elsewhere
// then could not come itself: one of its controller counts for it.
func mostlyThere(n *model.Node) bool {
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
	count := len(there)
	for i, owner := range n.BoughtOwners[:min(len(n.BoughtOwners), len(n.BoughtFor))] {
		if owner != "" && !there[n.BoughtFor[i]] && heirs[owner] > 0 {
			heirs[owner]--
			count++
		}
	}
	return count > 0 && 2*count >= len(n.BoughtFor)
}

func (g *Guard) settled(n *model.Node) Verdict {
	if g.SettledFrom(n).After(g.snap.Now) {
		return Verdict{Code: NodeUnsettled, Node: n.Name}
	}
	return Verdict{}
}
