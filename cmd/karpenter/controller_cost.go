package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
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

// price is what the machine of a claim costs, in USD per hour, by the last snapshot of a loop: each launch would take one of its
// own otherwise. It is 0 where that is not known.
func (w *wiring) price(claim *karpv1.NodeClaim) float64 {
	snap := w.newest.Load()
	if snap == nil {
		return 0
	}
	pool := snap.Pool(claim.Labels[karpv1.LabelNodePool])
	if pool == nil || pool.Types == nil {
		return 0
	}
	t, known := pool.Types.Lookup(claim.Labels[corev1.LabelInstanceTypeStable])
	if !known {
		return 0
	}
	return float64(pool.Types.PriceOf(t, claim.Labels[corev1.LabelTopologyZone], claim.Labels[karpv1.LabelCapacityType])) / model.Nano
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
