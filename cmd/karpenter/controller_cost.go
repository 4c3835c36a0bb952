package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// watchBound periodically computes a lower bound of the fleet's cost. That takes at most a second of one processor
// (boundWork). The actual cost is computed when metrics are collected (package census).
func (w *wiring) watchBound(ctx context.Context) error {
	ticker := time.NewTicker(w.o.timers.Bound)
	defer ticker.Stop()
	for {
		now := w.clock.Now()
		w.metrics.ClusterCostBound.Set(float64(w.bound(w.store.Snapshot(now))) / model.Nano)
		w.metrics.ClusterCostBoundTime.Set(float64(now.UnixMilli()) / 1000)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// price returns the price of a claim's machine in USD per hour, according to the last snapshot of a loop; taking a
// snapshot for each launch would be too expensive. It returns 0 if the price is not known.
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

// bound returns a lower bound of the price of nodes for the pods on managed nodes, in nano-USD per hour.
func (w *wiring) bound(snap *model.Snapshot) int64 {
	least, _ := disruption.LeastCost(snap, w.disruption(), func(n *model.Node) bool { return n.Ours() })
	return least
}
