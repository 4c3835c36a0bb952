package nominate

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Selection tells which pods of a plan are nominated, for one snapshot in which the plan's claims do not exist yet.
type Selection struct{ nominator *nominator }

// Select returns the Selection of the plan.
func Select(snap *model.Snapshot, p *plan.Provision) *Selection {
	n := newNominator(snap)
	n.launching = len(p.Claims) > 0
	return &Selection{n}
}

// Pending reports whether a pending pod has that UID.
func (s *Selection) Pending(uid string) bool { return s.nominator.pending[uid] != nil }

// Nominated returns the UIDs of those pending pods that have, or are about to get, a nomination to the node.
func (s *Selection) Nominated(pods []*model.Pod, node string) map[string]bool {
	return s.nominator.nominated(s.nominator.present(pods), node)
}
