package placement

import (
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Moving is pods that somebody decided to move together: until that is done they are where they were, and afterwards
// where they are to be. A domain has at most the larger of what it has before and after, and for sure only the smaller,
// so that a plan holds whether they have moved or not. Counts by hostname are left aside: on a node that pods leave
// nobody comes, and on one that they go to they are expected.
type Moving struct{ From, To []Stay }

// Stay is where some of the pods are.
type Stay struct {
	// Row and Taints are those of the place, Counts the marks of the pods.
	Row    label.Row
	Taints []model.Taint
	Counts []model.MarkCount
	// Shown: the place is a node of the snapshot that has the pods already. Otherwise the snapshot does not show it.
	Shown bool
}

// ebb is how many pods that move a counter has to count in each of its domains before and after, and how many of the
// latter it counts already.
type ebb struct{ before, after, shown []int }

// doubt counts pods that are moving.
func (c *counters) doubt(m *Moving) {
	ebbs := map[*counter]*ebb{}
	for _, s := range m.From {
		c.stay(ebbs, &s, func(e *ebb) []int { return e.before })
	}
	for _, s := range m.To {
		c.stay(ebbs, &s, func(e *ebb) []int { return e.after })
	}
	for _, counter := range c.all {
		e := ebbs[counter]
		if e == nil {
			continue
		}
		for atom := range e.before {
			counter.add(atom, max(e.before[atom], e.after[atom])-e.shown[atom], maybe)
			counter.sure[atom] += min(e.before[atom], e.after[atom]) - e.shown[atom]
		}
	}
}

// stay adds the pods of one place to what the counters have to count. Where it is open whether or where they count, they
// are among the most at once.
func (c *counters) stay(ebbs map[*counter]*ebb, s *Stay, side func(*ebb) []int) {
	if !s.Shown {
		for _, counter := range c.all {
			counter.notice(c.snap.Space, s.Row, s.Taints)
		}
	}
	for _, mark := range s.Counts {
		if slot := c.slotOf[mark.Mark]; slot >= 0 && !s.Shown {
			c.totals[slot] += mark.Count
		}
		for _, counter := range c.byMark[mark.Mark] {
			counter.visit(c.snap.Space, s.Row, s.Taints, func(atom int, member membership) {
				switch e := ebbOf(ebbs, counter); {
				case member != surely && !s.Shown:
					counter.add(atom, mark.Count, maybe)
				case member == surely:
					side(e)[atom] += mark.Count
					if s.Shown {
						e.shown[atom] += mark.Count
					}
				}
			})
		}
	}
}

func ebbOf(ebbs map[*counter]*ebb, c *counter) *ebb {
	if e := ebbs[c]; e != nil {
		return e
	}
	n := len(c.counts)
	e := &ebb{make([]int, n), make([]int, n), make([]int, n)}
	ebbs[c] = e
	return e
}
