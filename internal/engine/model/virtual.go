package model

import "slices"

// keyDisrupted is the key of the taint that NodeSpec.Disrupted stands for.
const keyDisrupted = "karpenter.sh/disrupted"

// AfterPlan returns the snapshot on which virtual pods are planned: the pending pods of Groups are where their plan has
// them, on nodes of the snapshot (assignments, by node) and on nodes to launch (futures, see Future). Groups holds the
// virtual pods. No pod is left of those that the plan refuses. The receiver is unchanged.
func (s *Snapshot) AfterPlan(assignments []Assignment, futures []*Node) *Snapshot {
	what := s.With(futures...).Bound(assignments)
	what.Groups, what.Virtual, what.Rejected = s.Virtual, nil, nil
	what.Turns, what.ClaimNames, what.EvictionBlocked = nil, nil, nil
	return what
}

// Reopened returns the snapshot in which the nodes that open selects accept pods although they carry the disruption
// taint. The receiver is unchanged.
func (s *Snapshot) Reopened(open func(*Node) bool) *Snapshot {
	fresh := map[*Node]*Node{}
	for _, n := range s.Nodes {
		if n.Disrupted && open(n) {
			spec, node := *n.NodeSpec, *n
			spec.Disrupted, node.NodeSpec = false, &spec
			spec.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t Taint) bool { return t.Key == keyDisrupted })
			fresh[n] = &node
		}
	}
	if len(fresh) == 0 {
		return s
	}
	return s.replacing(fresh)
}

// WithVirtual returns the snapshot with those virtual pods only that keep selects. The receiver is unchanged.
func (s *Snapshot) WithVirtual(keep func(*Pod) bool) *Snapshot {
	what := *s
	what.Virtual = make([]*Group, 0, len(s.Virtual))
	for _, g := range s.Virtual {
		kept := *g
		kept.Pods = nil
		for _, p := range g.Pods {
			if keep(p) {
				kept.Pods = append(kept.Pods, p)
			}
		}
		switch len(kept.Pods) {
		case 0:
		case len(g.Pods):
			what.Virtual = append(what.Virtual, g)
		default:
			what.Virtual = append(what.Virtual, &kept)
		}
	}
	return &what
}
