package disruption

import (
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Options of a run. The zero value is what production uses without flags.
type Options struct {
	Placement placement.Options
	Economics
	// SpotToSpot allows that spot nodes are replaced by spot nodes (gate SpotToSpotConsolidation).
	SpotToSpot bool
	// NoSearch leaves out the search for a cheaper fleet, which is what costs time: nodes in use are not looked at.
	NoSearch bool
	// WorkBudget is how many questions (placement.Options.WorkBudget) all what-ifs of a search for savings may ask together;
	// 0 means any number. The nodes that were not asked about when they are spent stay.
	WorkBudget int
	// Static: static pools are in use (gate StaticCapacity).
	Static bool
}

// minStay of pools that do not say.
func (o Options) minStay() time.Duration {
	if o.MinStay == 0 {
		return ProductionMinStay
	}
	return max(0, o.MinStay)
}

// Economics is what a consolidation must bring, where the pool does not say otherwise.
type Economics struct {
	// Payback is the time over which a saving must exceed the price of the disruption; 0 for an hour, negative for none.
	Payback time.Duration
	// MinStay is for how long a node that a consolidation launched, or sent pods to, is not consolidated; 0 for an hour,
	// negative for as short as it may be.
	MinStay time.Duration
	// MovePrice is the price of moving a pod of eviction cost 1, nano-USD; 0 for 0.001 USD, a negative value for nothing.
	MovePrice int64
	// MinSaving is the least saving, nano-USD per hour.
	MinSaving int64
}

// What holds when neither the options nor the pool say anything.
const (
	ProductionPayback   = plan.Payback
	ProductionMinStay   = plan.MinStay
	ProductionMovePrice = model.Nano / 1000
)

// of are the economics of a pool: what it says, else what the run says.
func (e Economics) of(pool *model.PoolSpec) Economics {
	if pool.Payback != 0 {
		e.Payback = pool.Payback
	} else if e.Payback == 0 {
		e.Payback = ProductionPayback
	}
	e.Payback = max(0, e.Payback)
	if pool.MovePrice != 0 {
		e.MovePrice = pool.MovePrice
	}
	switch {
	case e.MovePrice == 0:
		e.MovePrice = ProductionMovePrice
	case e.MovePrice < 0:
		e.MovePrice = 0
	}
	if pool.MinSaving != 0 {
		e.MinSaving = pool.MinSaving
	}
	e.MinSaving = max(0, e.MinSaving)
	return e
}

// priceOfMoving is the price of taking all pods off the node that somebody will start again elsewhere, nano-USD.
func (e Economics) priceOfMoving(n *model.Node) int64 {
	return int64(float64(e.MovePrice) * float64(evictionCost(n)) / 1000)
}

// spread is that price over the payback time, nano-USD per hour: what a saving must exceed. It is infinite where moving has
// a price and no time is given to pay it back.
func (e Economics) spread(n *model.Node) float64 {
	price := e.priceOfMoving(n)
	if price == 0 {
		return 0
	}
	return float64(price) / e.Payback.Hours()
}

// evictionCost is the sum of what evicting the node's pods costs, in thousandths (core specification 5.5): pods of
// negative cost are free, they do not make up for others.
func evictionCost(n *model.Node) int64 {
	var sum int64
	for _, p := range n.Pods {
		if p.Reschedulable {
			sum += max(0, p.EvictionCost)
		}
	}
	return sum
}
