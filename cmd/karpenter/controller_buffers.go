package main

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/controller/buffer"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/gates"
)

// buffers returns the loop that keeps room for buffers, nil if the gate is off.
func (w *wiring) buffers() (*buffer.Loop, error) {
	if !w.o.on.On(gates.CapacityBuffer) {
		return nil, nil
	}
	live, err := client.New(w.config, client.Options{Scheme: w.mgr.GetScheme(), Mapper: w.mgr.GetRESTMapper()})
	if err != nil {
		return nil, err
	}
	loop := buffer.NewLoop()
	loop.Client, loop.Live, loop.Cache, loop.Store = w.mgr.GetClient(), live, w.mgr.GetCache(), w.store
	loop.Snapshot, loop.Options, loop.Why = w.snapshot, w.o.placement, explain.Refusal
	loop.Provision = func() { w.store.Notify(state.PodsPending) }
	loop.Changed = w.store.Subscribe(state.PodsMoved | state.NodesChanged | state.PoolsChanged | state.NodesLost)
	loop.Metrics, loop.Recorder, loop.Clock = w.metrics, w.recorder, w.clock
	loop.Log = w.mgr.GetLogger().WithName("buffers")
	return loop, nil
}

// afterBuffers starts the disruption loop when the room of the buffers, if there are any, is known: an empty node may
// have some.
func afterBuffers(buffers *buffer.Loop, start func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if buffers != nil && !buffers.WaitForBuffers(ctx) {
			return nil
		}
		return start(ctx)
	}
}
