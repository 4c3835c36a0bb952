package disruption

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
)

// Commands may be carried out in any order, concurrently, or in part. The search divides room and limits between
// commands. This file separates commands by the rules between pods (spread, affinity and anti-affinity by zone, for
// example): pods that an earlier change moves may be on their old or on their new node, and a later change must be
// correct in both cases.

// movingOf returns the uncertainty that the change introduces for later what-ifs once it is decided.
func (w *projection) movingOf(c *change) placement.Moving {
	var m placement.Moving
	for _, n := range c.nodes {
		if len(n.Counts) > 0 {
			m.From = append(m.From, placement.Location{Row: n.Row, Taints: n.Taints, Counts: n.Counts})
		}
	}
	for _, s := range c.assignments {
		if counts, n := c.marks(s.Pods), w.snap.Node(s.Node); n != nil && len(counts) > 0 {
			m.To = append(m.To, placement.Location{Row: n.Row, Taints: n.Taints, Counts: counts, Shown: true})
		}
	}
	for i := range c.claims {
		counts := c.marks(c.claims[i].Pods)
		if len(counts) == 0 {
			continue
		}
		if n := w.snap.Future(c.claims[i].FutureSpec(w.snap), c.claims[i].Types()); n != nil {
			m.To = append(m.To, placement.Location{Row: n.Row, Taints: n.Taints, Counts: counts})
		}
	}
	return m
}

// marks returns the counts of the marks of the pods.
func (c *change) marks(pods []*model.Pod) []model.MarkCount {
	var counts []model.MarkCount
	add := func(mark int) {
		at, known := slices.BinarySearchFunc(counts, mark, func(c model.MarkCount, mark int) int { return cmp.Compare(c.Mark, mark) })
		if !known {
			counts = slices.Insert(counts, at, model.MarkCount{Mark: mark})
		}
		counts[at].Count++
	}
	for _, p := range pods {
		g := c.groups[p]
		if g == nil {
			continue
		}
		for _, mark := range g.Matches {
			add(mark)
		}
		for _, mark := range g.CarrierMarks {
			if mark >= 0 {
				add(mark)
			}
		}
	}
	return counts
}

func groupsOf(o *outcome) map[*model.Pod]*model.Group {
	groups := map[*model.Pod]*model.Group{}
	for _, g := range o.groups {
		if len(g.Matches) == 0 && len(g.BlockedBy) == 0 && len(g.Terms) == 0 && len(g.Spread) == 0 {
			continue // no rule selects these pods, and they have no rule
		}
		for _, p := range g.Pods {
			groups[p] = g
		}
	}
	return groups
}

// ties holds the marks through which a change and others may depend on each other: reads are the marks in the rules
// of its pods, writes the marks that select its pods.
type ties struct{ reads, writes map[int]bool }

// tiesOf returns the ties of a change. It ignores what cannot tie commands together: preferences, and limits per
// host, because no pod is bound to a node that is being removed.
func (w *projection) tiesOf(c *change) ties {
	t := ties{map[int]bool{}, map[int]bool{}}
	for _, n := range c.nodes {
		for _, p := range n.Pods {
			g := c.groups[p]
			if g == nil {
				continue
			}
			for _, mark := range g.Matches {
				t.writes[mark] = true
			}
			for _, mark := range g.BlockedBy {
				if w.snap.Marks[mark].Key != model.LabelHostname {
					t.reads[mark] = true
				}
			}
			for i := range g.Spread {
				if s := &g.Spread[i]; !s.Soft && s.Key != model.LabelHostname {
					t.reads[g.SpreadMarks[i]] = true
				}
			}
			for i := range g.Terms {
				if term := &g.Terms[i]; term.Weight == 0 && (term.Key != model.LabelHostname || !term.Anti) {
					t.reads[g.TermMarks[i]] = true
				}
				if g.CarrierMarks[i] >= 0 {
					t.writes[g.CarrierMarks[i]] = true
				}
			}
		}
	}
	return t
}

// bind reports whether one of the two changes depends on the other.
func (t ties) bind(other ties) bool {
	return meet(t.reads, other.writes) || meet(other.reads, t.writes)
}

func meet(a, b map[int]bool) bool {
	for mark := range a {
		if b[mark] {
			return true
		}
	}
	return false
}

// untie splits the changes of one outcome into those that hold independently of the others, and those that must be
// evaluated again alone: each of two tied changes was decided under the assumption that the other is made.
func (w *projection) untie(changes []*change) (free, tied []*change) {
	all := make([]ties, len(changes))
	for i, c := range changes {
		all[i] = w.tiesOf(c)
	}
	for i, c := range changes {
		bound := false
		for k := range all {
			bound = bound || k != i && all[i].bind(all[k])
		}
		if bound {
			tied = append(tied, c)
		} else {
			free = append(free, c)
		}
	}
	return free, tied
}

// again evaluates the nodes of the changes, one change after the other, now that others have been decided. It returns
// the nodes that must be evaluated individually. If a change splits into parts, each part is evaluated again.
func (s *search) again(changes []*change) (rest []*model.Node) {
	for len(changes) > 0 {
		c := changes[0]
		changes = changes[1:]
		o := s.withoutRelaunch(c.nodes, s.closed)
		parts := s.changes(o)
		switch {
		case len(o.unplaced) == 0 && len(parts) > 1:
			changes = append(parts, changes...)
		case len(o.unplaced) == 0 && s.decide(parts[0]).OK():
			s.accept(parts)
		default:
			for _, n := range c.nodes {
				delete(s.waste, n.Name)
			}
			rest = append(rest, c.nodes...)
		}
	}
	return rest
}
