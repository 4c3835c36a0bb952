package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// A new node whose zone is open may be launched in a zone where no other node is. Then that zone is a domain of spread
// constraints, without a pod, and fewer pods are admissible in the other zones: only a later plan, which knows the
// zone, could place the rest, and would launch more nodes. So where pods cannot be bound for that reason, such nodes
// are pinned to a zone that is a domain anyway. Their claims then list the offerings of that zone only.

// pinOpenBins pins bins for which spread pods cannot be bound, and reports whether it pinned any. It requires
// the counts of bindOrder.find.
func (s *scheduler) pinOpenBins(unbindable []*model.Pod) bool {
	pinned := false
	for _, p := range s.unbound(unbindable) {
		for i := range p.pending.hard().spreads {
			spread := &p.pending.hard().spreads[i]
			if !s.admissibleWithoutOpen(spread, p.row) {
				continue
			}
			for _, b := range s.fleet.bins {
				if s.mayOpenDomain(b, spread.counter) && s.fleet.pin(b, spread.counter) {
					pinned = true
				}
			}
		}
	}
	return pinned
}

// unboundPods are pods of one group that cannot be bound to a node of the row.
type unboundPods struct {
	pending *pendingGroup
	row     label.Row
}

// unbound lists the groups and target rows of pods that cannot be bound.
func (s *scheduler) unbound(pods []*model.Pod) []unboundPods {
	lost := make(map[*model.Pod]bool, len(pods))
	for _, p := range pods {
		lost[p] = true
	}
	var list []unboundPods
	add := func(placed []placedPods, row label.Row) {
		for _, p := range placed {
			if slices.ContainsFunc(p.pods, func(pod *model.Pod) bool { return lost[pod] }) {
				list = append(list, unboundPods{p.pending, row})
			}
		}
	}
	for _, n := range s.nodes.list {
		add(n.placed, n.node.Row)
	}
	for _, b := range s.fleet.bins {
		add(b.placed, b.row)
	}
	return list
}

// admissibleWithoutOpen reports whether the constraint admits one more pod in the domain of the row if the domains that
// no node is certain to have do not count.
func (s *scheduler) admissibleWithoutOpen(spread *spreadRule, row label.Row) bool {
	c := spread.counter
	at := domainOf(s.snap.Space, row, c.key)
	if at < 0 {
		return false
	}
	least, domains := c.counts[at], 0
	for atom := range c.counts {
		if c.has(atom) {
			domains++
			least = min(least, c.sure[atom])
		}
	}
	if domains < spread.minDomains {
		least = 0
	}
	self := 0
	if spread.self {
		self = 1
	}
	return c.counts[at]+self-least <= spread.maxSkew
}

// has reports whether a node is certain to be in the domain.
func (c *counter) has(atom int) bool { return c.certain.Has(atom) || c.sure[atom] > 0 }

// mayOpenDomain reports whether the bin may become a node in a domain that no other node is certain to be in.
func (s *scheduler) mayOpenDomain(b *bin, c *counter) bool {
	opens := false
	c.visit(s.snap.Space, s.claims.resolved(b), s.fleet.poolOf(b).spec.Taints, func(atom int, _ membership) {
		opens = opens || !c.has(atom)
	})
	return opens
}

// pin restricts the bin to the cheapest of the domains that a node is certain to be in, and reports whether there is
// one.
func (f *fleet) pin(b *bin, c *counter) bool {
	var best *bin
	for atom := range c.counts {
		if !c.has(atom) || !f.snap.Space.HasAtom(b.row, c.key, atom) {
			continue
		}
		row := slices.Clone(b.row)
		f.snap.Space.SetOnly(row, c.key, atom)
		if p, kinds, ok := f.narrowed(b, row); ok && (best == nil || p.price < best.price) {
			best = &bin{typeOffering: p, kinds: kinds, row: row}
		}
	}
	if best == nil {
		return false
	}
	b.row = best.row
	f.narrow(b, best.typeOffering, best.kinds)
	return true
}
