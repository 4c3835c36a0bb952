package placement

import (
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Moving is pods that somebody decided to move: until that is done they may still be where they were, and afterwards they
// are not there any more. They count among the most that a domain may have in both places, and in neither for sure, so
// that a plan holds whether they have moved or not. Counts by hostname are left aside: on a node that pods leave nobody
// comes, and on one that they go to they are expected.
type Moving struct {
	// Row and Taints are those of the place, Counts the marks of the pods.
	Row    label.Row
	Taints []model.Taint
	Counts []model.MarkCount
	// Expected: the place is a node of the snapshot that has the pods already. Otherwise it is a node that the snapshot
	// does not show.
	Expected bool
}

// doubt counts pods that are moving.
func (c *counters) doubt(m *Moving) {
	if !m.Expected {
		for _, counter := range c.all {
			counter.notice(c.snap.Space, m.Row, m.Taints)
		}
	}
	for _, mark := range m.Counts {
		if slot := c.slotOf[mark.Mark]; slot >= 0 && !m.Expected {
			c.totals[slot] += mark.Count
		}
		for _, counter := range c.byMark[mark.Mark] {
			counter.visit(c.snap.Space, m.Row, m.Taints, func(atom int, member membership) {
				switch {
				case !m.Expected:
					counter.add(atom, mark.Count, min(member, maybe))
				case member == surely:
					counter.sure[atom] -= mark.Count
				}
			})
		}
	}
}
