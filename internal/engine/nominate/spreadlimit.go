package nominate

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Limit on nominations to one node for pods with topology spread constraints.
//
// A pod with a constraint of maxSkew k, in a domain with b more selected pods than the domain with the fewest, is
// admissible beside j other pods nominated to the node when b + j + 1 <= k. Nominations to other nodes do not count.
// With at most k nominated pods on a node, itself included, every pod in the domain with the fewest is admissible (b =
// 0, j < k). When no nominated pod remains there, that domain has its final count, and the final counts are all within
// k. So every pod becomes admissible in time. This holds for pods that their own constraint selects and that have no
// other constraint which could exclude them. Of other pods, only one is nominated at a time. A constraint whose pods
// can be in one domain only excludes no pod, unless minDomains is greater than one. See
// https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/

// nominatedPods are the pods nominated to a node, and the counts of their spread constraints.
type nominatedPods struct {
	*nominator
	all    []*model.Pod
	limits []*spreadLimit
	known  map[*model.Shape]bool
}

// spreadLimit is the nominated pods that one hard spread constraint counts.
type spreadLimit struct {
	shape  *model.Shape
	spread *model.Spread
	size   int
	// most is the largest permitted size: 1 as soon as some pods have another shape, 0 beside pods with the constraint
	// that it does not count.
	most int
}

func (p *nominatedPods) add(pod *model.Pod) {
	for _, c := range p.spreadLimitsOf(pod) {
		if !p.known[pod.Shape] {
			p.limits = append(p.limits, c)
		}
	}
	if p.known == nil {
		p.known = map[*model.Shape]bool{}
	}
	p.known[pod.Shape] = true
	p.all = append(p.all, pod)
	for _, c := range p.limits {
		c.add(pod)
	}
}

// exceeds reports whether a spread constraint, of the pod or of a pod already nominated, would count too many of them.
func (p *nominatedPods) exceeds(pod *model.Pod) bool {
	full := func(c *spreadLimit) bool {
		with := *c
		with.add(pod)
		return with.size > with.most
	}
	if slices.ContainsFunc(p.limits, full) {
		return true
	}
	return !p.known[pod.Shape] && slices.ContainsFunc(p.spreadLimitsOf(pod), full)
}

// spreadLimitsOf returns, for each constraint of the pod, the nominated pods that it counts.
func (p *nominatedPods) spreadLimitsOf(pod *model.Pod) []*spreadLimit {
	var limits []*spreadLimit
	for i := range pod.Spread {
		if s := &pod.Spread[i]; !s.Soft && len(s.Selector.Requirements) > 0 && !p.oneDomain(pod, s) {
			limits = append(limits, &spreadLimit{shape: pod.Shape, spread: s, most: s.MaxSkew})
		}
	}
	for _, c := range limits {
		if len(limits) > 1 {
			c.most = 1
		}
		for _, other := range p.all {
			c.add(other)
		}
	}
	return limits
}

func (c *spreadLimit) add(pod *model.Pod) {
	switch counts := c.spread.Selector.Selects(pod.Namespace, pod.Labels); {
	case counts && pod.Shape == c.shape:
		c.size++
	case counts:
		c.size++
		c.most = min(c.most, 1)
	case pod.Shape == c.shape:
		c.most = 0
	}
}

// oneDomain reports whether all nodes that the pod's constraint may count are in one domain, which then has the fewest
// pods.
func (n *nominator) oneDomain(pod *model.Pod, s *model.Spread) bool {
	if s.Key == model.LabelHostname || s.MinDomains > 1 {
		return false
	}
	one, known := n.single[s]
	if !known {
		one = n.domains(pod, s) == 1
		n.single[s] = one
	}
	return one
}

// domains counts the domains of the nodes that the constraint may count. It returns math.MaxInt while a node without
// the label may still join an unknown domain.
func (n *nominator) domains(pod *model.Pod, s *model.Spread) int {
	group, values := n.groups[pod.Shape], map[string]bool{}
	for _, node := range n.snap.Nodes {
		value, has := node.Labels[s.Key]
		switch {
		case !s.IgnoreAffinity && group != nil && !n.accepts(group, node):
		case has:
			values[value] = true
		case node.Stage < model.Registered:
			return math.MaxInt
		}
	}
	return len(values)
}

// accepts reports whether the node matches, or may match once its labels are known, the node affinity of the group's
// pods.
func (n *nominator) accepts(group *model.Group, node *model.Node) bool {
	for _, row := range group.Affinity {
		if n.snap.Space.Compatible(row, node.Row) {
			return true
		}
	}
	return len(group.Affinity) == 0
}
