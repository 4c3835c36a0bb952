package main

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/cluster"
	"github.com/karpenter-go/karpenter/internal/controller/buffer"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/gates"
)

// addBuffers adds the loop that keeps room for buffers, if the gate is on. It returns the start of the disruption loop,
// which then waits until the room is known: an empty node may have some.
func (w *wiring) addBuffers(snapshot func() *model.Snapshot, disrupt func(context.Context) error) (func(context.Context) error, error) {
	if !w.o.on.On(gates.CapacityBuffer) {
		return disrupt, nil
	}
	live, err := client.New(w.config, client.Options{Scheme: w.mgr.GetScheme(), Mapper: w.mgr.GetRESTMapper()})
	if err != nil {
		return nil, err
	}
	loop := buffer.NewLoop()
	loop.Client, loop.Live, loop.Cache, loop.Store = w.mgr.GetClient(), live, w.mgr.GetCache(), w.store
	loop.Snapshot, loop.Options, loop.Why = snapshot, w.o.placement, explain.Refusal
	loop.Provision = func() { w.store.Notify(cluster.PodsPending) }
	loop.Changed = w.store.Subscribe(cluster.PodsMoved | cluster.NodesChanged | cluster.PoolsChanged | cluster.NodesLost)
	loop.Metrics, loop.Recorder, loop.Clock = w.metrics, w.recorder, w.clock
	loop.Log = w.mgr.GetLogger().WithName("buffers")
	wait := func(ctx context.Context) error {
		if !loop.WaitForBuffers(ctx) {
			return nil
		}
		return disrupt(ctx)
	}
	return wait, w.mgr.Add(w.whenSynced(loop.Start))
}
