package disruption

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Transfer returns another snapshot of the same nodes and pods with what commands changed between two (After): removals,
// launches, moves and the time. The other may differ from the first in all else, such as the rules of a NodePool, so that a
// question about a fleet at rest need not begin from today's. A node that its pools cannot launch is left out, and its pods
// are pending. Budgets are those of its own time.
func Transfer(first, last, other *model.Snapshot) *model.Snapshot {
	var gone []string
	for _, n := range first.Nodes {
		if last.Node(n.Name) == nil {
			gone = append(gone, n.Name)
		}
	}
	next := other.Without(gone...)
	pending := next.PendingPods()
	var launched, received []*model.Node
	var assignments []model.Assignment
	for _, n := range last.Nodes {
		var pods []*model.Pod
		for _, p := range n.Pods {
			if q := pending[p.UID]; q != nil {
				pods = append(pods, q)
			}
		}
		switch fresh := (*model.Node)(nil); {
		case first.Node(n.Name) == nil:
			if fresh = next.Future(*n.NodeSpec, []string{n.Labels[model.LabelType]}); fresh == nil {
				continue
			}
			launched = append(launched, fresh)
		case len(pods) == 0 || next.Node(n.Name) == nil:
			continue
		default:
			received = append(received, n)
		}
		assignments = append(assignments, model.Assignment{Node: n.Name, Pods: pods})
	}
	next = next.With(launched...).Bound(assignments)
	for _, n := range received {
		own := next.Node(n.Name) // its own copy, because pods were bound to it
		spec := *own.NodeSpec
		spec.ConsolidatedAt = n.ConsolidatedAt
		own.NodeSpec = &spec
	}
	next.Now = last.Now
	return next
}
