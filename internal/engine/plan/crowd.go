package plan

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// How many pods that spread a node may be promised to.
//
// A pod with a constraint of maxSkew k, in a domain that has b more of those it counts than the emptiest, is admissible
// beside j others that are nominated to the node when b + j + 1 <= k; nominations to other nodes do not count. With at
// most k of them on a node, itself included, whoever is in the emptiest domain is admissible (b = 0, j < k). When nobody
// is left there, the emptiest domain has what it has in the end, and in the end all are within k: so everybody's turn
// comes. That holds for pods that count themselves and have no other constraint that could keep them out; of others only
// one is nominated at a time. A constraint whose pods can be in one domain only keeps nobody out, unless minDomains asks
// for more.

// promises are the pods that a node is promised to, and what their spread constraints count of them.
type promises struct {
	*nominator
	all    []*model.Pod
	crowds []*crowd
	known  map[*model.Shape]bool
}

// crowd is the promised pods that one hard spread constraint counts.
type crowd struct {
	shape  *model.Shape
	spread *model.Spread
	size   int
	// most is how many there may be: 1 as soon as some are of another shape, none beside pods with the constraint that it
	// does not count.
	most int
}

func (p *promises) add(pod *model.Pod) {
	for _, c := range p.crowdsOf(pod) {
		if !p.known[pod.Shape] {
			p.crowds = append(p.crowds, c)
		}
	}
	if p.known == nil {
		p.known = map[*model.Shape]bool{}
	}
	p.known[pod.Shape] = true
	p.all = append(p.all, pod)
	for _, c := range p.crowds {
		c.add(pod)
	}
}

// keepOut reports whether a spread constraint of the pod would count too many of the others, or one of theirs.
func (p *promises) keepOut(pod *model.Pod) bool {
	full := func(c *crowd) bool {
		with := *c
		with.add(pod)
		return with.size > with.most
	}
	if slices.ContainsFunc(p.crowds, full) {
		return true
	}
	return !p.known[pod.Shape] && slices.ContainsFunc(p.crowdsOf(pod), full)
}

// crowdsOf are those of the promised pods that the constraints of the pod count.
func (p *promises) crowdsOf(pod *model.Pod) []*crowd {
	var crowds []*crowd
	for i := range pod.Spread {
		if s := &pod.Spread[i]; !s.Soft && len(s.Selector.Requirements) > 0 && !p.oneDomain(pod, s) {
			crowds = append(crowds, &crowd{shape: pod.Shape, spread: s, most: s.MaxSkew})
		}
	}
	for _, c := range crowds {
		if len(crowds) > 1 {
			c.most = 1
		}
		for _, other := range p.all {
			c.add(other)
		}
	}
	return crowds
}

func (c *crowd) add(pod *model.Pod) {
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

// oneDomain reports whether all nodes that the pod's constraint may count are in one domain, which then is the emptiest.
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

// domains counts the domains of the nodes that the constraint may count; there are any number while a node may come to
// be in one that is not known yet.
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

// accepts reports whether the node is, or may come to be, one that the node affinity of the group's pods accepts.
func (n *nominator) accepts(group *model.Group, node *model.Node) bool {
	for _, row := range group.Affinity {
		if n.snap.Space.Compatible(row, node.Row) {
			return true
		}
	}
	return len(group.Affinity) == 0
}

// admits reports whether taints and node affinity let a pending pod onto the node, or may let it once the node is there.
func (n *nominator) admits(node *model.Node, pod *model.Pod) bool {
	_, untolerated := model.Untolerated(node.Taints, pod.Tolerations)
	group := n.groups[pod.Shape]
	return !untolerated && (group == nil || n.accepts(group, node))
}
