package disruption

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
)

// Commands may be carried out in any order, at the same time, or in part. Room and limits are shared out as the search
// goes; what pods demand of each other (spread, affinity and anti-affinity by zone, say) is kept apart here: pods that an
// earlier change moves may be at their old place or at their new one, and a later change must be right either way.

// movingOf is what the next what-if must not be sure of once the change is decided.
func (w *world) movingOf(c *change) placement.Moving {
	var m placement.Moving
	for _, n := range c.nodes {
		if len(n.Counts) > 0 {
			m.From = append(m.From, placement.Stay{Row: n.Row, Taints: n.Taints, Counts: n.Counts})
		}
	}
	for _, s := range c.seats {
		if counts, n := c.marks(s.Pods), w.snap.Node(s.Node); n != nil && len(counts) > 0 {
			m.To = append(m.To, placement.Stay{Row: n.Row, Taints: n.Taints, Counts: counts, Shown: true})
		}
	}
	for i := range c.claims {
		counts := c.marks(c.claims[i].Pods)
		if len(counts) == 0 {
			continue
		}
		if n := w.snap.Future(replacementSpec(w.snap, &c.claims[i]), c.claims[i].Types()); n != nil {
			m.To = append(m.To, placement.Stay{Row: n.Row, Taints: n.Taints, Counts: counts})
		}
	}
	return m
}

// marks are what the pods are counted by.
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
			continue // nobody counts them and they count nobody
		}
		for _, p := range g.Pods {
			groups[p] = g
		}
	}
	return groups
}

// ties are the marks through which a change and others may depend on each other: what its pods ask for, and what they are
// asked for by.
type ties struct{ reads, writes map[int]bool }

// tiesOf leaves aside what cannot tie commands together: wishes, and how many may be on one host, because nobody comes
// to a node that is left.
func (w *world) tiesOf(c *change) ties {
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

// bind reports whether one of the two depends on the other.
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

// untie splits the changes of one outcome into those that hold whatever becomes of the others, and those that must be
// asked again alone: each of two that are tied together was decided as if the other had been made.
func (w *world) untie(changes []*change) (free, tied []*change) {
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

// again asks about the nodes of the changes one change after the other, now that others have been decided, and returns
// the nodes that have to be asked alone. What has fallen apart is asked again part by part.
func (s *search) again(changes []*change) (rest []*model.Node) {
	for len(changes) > 0 {
		c := changes[0]
		changes = changes[1:]
		o := s.without(c.nodes, s.closed)
		parts := s.changes(o)
		switch {
		case len(o.homeless) == 0 && len(parts) > 1:
			changes = append(parts, changes...)
		case len(o.homeless) == 0 && s.decide(parts[0]).OK():
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
