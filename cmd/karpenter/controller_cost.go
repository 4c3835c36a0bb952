package main

import (
	"context"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// watchCost measures, from time to time, what the fleet costs and what it would cost at least. Both are of one snapshot, so
// that their quotient means something. It costs a second of one processor at most (boundWork).
func (w *wiring) watchCost(ctx context.Context) error {
	ticker := time.NewTicker(w.o.timers.Bound)
	defer ticker.Stop()
	for {
		price, least := w.cost(w.store.Snapshot(w.clock.Now()))
		w.metrics.ClusterCost.Set(float64(price) / model.Nano)
		w.metrics.ClusterCostBound.Set(float64(least) / model.Nano)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// cost is the price of our nodes, and the least price of any for their pods, in nano-USD per hour.
func (w *wiring) cost(snap *model.Snapshot) (price, least int64) {
	ours := func(n *model.Node) bool { return n.Ours() }
	for _, n := range snap.Nodes {
		if ours(n) {
			price += n.Price
		}
	}
	least, _ = leastCost(snap, w.disruption(), ours)
	return price, least
}
