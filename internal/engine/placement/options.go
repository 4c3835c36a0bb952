package placement

import (
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Options of a run. The zero value selects the production defaults.
type Options struct {
	// NodePrice is the cost of a node beyond its price, nano-USD per hour: agents licensed per node, daemons, one more
	// point of failure. 0 means ProductionNodePrice, a negative value none.
	NodePrice int64
	// IgnorePreferences is --preference-policy=Ignore: preferred terms and soft spread are ignored.
	IgnorePreferences bool
	// RelaxMinValues is --min-values-policy=BestEffort: where too few values are left the minimum is lowered.
	RelaxMinValues bool
	// Effort is --packing-effort: the factor for the usual work spent on finding a cheaper packing; 0 means 1.
	Effort int
	// Closed reports nodes that accept no new pods. Their existing pods still count for topology. Nil closes none.
	Closed func(*model.Node) bool
	// Moving lists pods in transit: they may run on their old or their new node.
	Moving []Moving
	// AskNodes adds the verdicts of existing nodes to refusals.
	AskNodes bool
	// DecidedClaims are not in the snapshot: they count for reservations, and for the part of one type in one zone in the
	// spot capacity, and for nothing else.
	DecidedClaims []plan.NewClaim
	// WorkBudget is how many evaluations a run may make (whether a group fits a node, a bin or a domain); 0 means no
	// limit. If they do not suffice, the plan is the part finished so far: see budget.go.
	WorkBudget int
	// Provisioning plans what is launched, and not a what-if: the price of ScheduleAnyway is bounded, and bins of few pods
	// are filled as well as possible. Schedule sets it.
	Provisioning bool
	// NoLaunch ends the run as soon as a pod needs a new node: all pods are then refused as NotReached.
	NoLaunch bool
	// IgnoreSoftSpread ignores topology spread with ScheduleAnyway.
	IgnoreSoftSpread bool
}

// ProductionNodePrice is 0.005 USD per hour.
const ProductionNodePrice = 5 * model.Nano / 1000

func (o *Options) nodePrice() int64 {
	switch {
	case o.NodePrice == 0:
		return ProductionNodePrice
	case o.NodePrice < 0:
		return 0
	}
	return o.NodePrice
}

// NodePriceOf returns the cost of a node of the pool beyond its price: the pool's value, else that of the options.
func (o Options) NodePriceOf(pool *model.PoolSpec) int64 {
	if pool.NodePrice != 0 {
		o.NodePrice = pool.NodePrice
	}
	return o.nodePrice()
}

// Moving is a set of pods that one decision moves: until it is carried out they are in From, afterwards in To. A domain
// has at most the larger of its counts before and after, and for certain only the smaller, so that a plan is valid in
// both states. Counts by hostname are ignored: a node that pods are moved from accepts no pods, and on a node that they
// are moved to they are expected.
type Moving struct{ From, To []Location }

// Location is where some of the pods are.
type Location struct {
	// Row and Taints are those of the place, Counts the marks of the pods.
	Row    label.Row
	Taints []model.Taint
	Counts []model.MarkCount
	// Shown reports that the place is a node of the snapshot that already has the pods. Otherwise the snapshot does not
	// contain it.
	Shown bool
}

// transit is how many moving pods a counter must count in each of its domains before and after, and how many of the
// latter it already counts.
type transit struct{ before, after, shown []int }

// countMoving counts pods that are moving.
func (c *counters) countMoving(m *Moving) {
	ebbs := map[*counter]*transit{}
	for _, s := range m.From {
		c.countAt(ebbs, &s, func(e *transit) []int { return e.before })
	}
	for _, s := range m.To {
		c.countAt(ebbs, &s, func(e *transit) []int { return e.after })
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

// stay adds the pods of one place to what the counters must count. If it is open whether or where they count, they are
// added to the upper bounds at once.
func (c *counters) countAt(ebbs map[*counter]*transit, s *Location, side func(*transit) []int) {
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
				switch e := transitOf(ebbs, counter); {
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

func transitOf(ebbs map[*counter]*transit, c *counter) *transit {
	if e := ebbs[c]; e != nil {
		return e
	}
	n := len(c.counts)
	e := &transit{make([]int, n), make([]int, n), make([]int, n)}
	ebbs[c] = e
	return e
}
