package disruption

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// CostOf is what a node of the snapshot costs, nano-USD per hour: its price and what its pool's nodes cost beyond it.
func (o Options) CostOf(snap *model.Snapshot, n *model.Node) int64 {
	if pool := snap.Pool(n.Pool); pool != nil {
		return n.Price + o.Placement.NodePriceOf(pool.PoolSpec)
	}
	return n.Price
}

// Score is how many times over a command of the snapshot pays: its saving over the payback time by the price of the
// disruption; where its nodes belong to several pools, each has the price and the payback of its own. It says false where
// nothing that moves has a price.
func (o Options) Score(snap *model.Snapshot, cmd *plan.Command) (float64, bool) {
	var spread float64 // nano-USD per hour: the price over the payback time
	for _, c := range cmd.Candidates {
		n := snap.Node(c.Node)
		if n == nil {
			continue
		}
		e := o.Economics.of(&model.PoolSpec{})
		if pool := snap.Pool(n.Pool); pool != nil {
			e = o.Economics.of(pool.PoolSpec)
		}
		if price := e.priceOfMoving(n); price > 0 {
			if e.Payback <= 0 {
				return 0, true
			}
			spread += float64(price) / e.Payback.Hours()
		}
	}
	if spread == 0 {
		return 0, false
	}
	return float64(cmd.Worth.Saving) / spread, true
}

// PriceOfMoving is what it is taken to cost to move all pods off the node, nano-USD.
func (o Options) PriceOfMoving(snap *model.Snapshot, n *model.Node) int64 {
	if pool := snap.Pool(n.Pool); pool != nil {
		return o.Economics.of(pool.PoolSpec).priceOfMoving(n)
	}
	return o.Economics.of(&model.PoolSpec{}).priceOfMoving(n)
}
