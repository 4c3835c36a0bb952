package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// watchBound works out, from time to time, what the fleet would cost at least. That takes a second of one processor at most
// (boundWork). What it does cost is worked out whenever it is asked for (package census).
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

// bound is the least price of any nodes for the pods on ours, in nano-USD per hour.
func (w *wiring) bound(snap *model.Snapshot) int64 {
	least, _ := leastCost(snap, w.disruption(), func(n *model.Node) bool { return n.Ours() })
	return least
}
