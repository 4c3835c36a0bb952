package main

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/controller/buffer"
	"github.com/karpenter-go/karpenter/internal/controller/provision"
	"github.com/karpenter-go/karpenter/internal/gates"
)

// buffers returns the reconciler of buffers, nil if the gate is off.
func (w *wiring) buffers(provisioner *provision.Loop) (*buffer.Reconciler, error) {
	if !w.o.on.On(gates.CapacityBuffer) {
		return nil, nil
	}
	var err error
	if w.live, err = client.New(w.config, client.Options{Scheme: w.mgr.GetScheme(), Mapper: w.mgr.GetRESTMapper()}); err != nil {
		return nil, err
	}
	buffers := buffer.NewReconciler()
	buffers.Client, buffers.Live, buffers.Cache, buffers.Store = w.mgr.GetClient(), w.live, w.mgr.GetCache(), w.store
	buffers.Metrics, buffers.Recorder, buffers.Clock = w.metrics, w.recorder, w.clock
	buffers.Log = w.mgr.GetLogger().WithName("buffers")
	buffers.Destination, provisioner.Report.Room = provisioner.Destination, buffers.SetRoom
	return buffers, nil
}

// afterBuffers starts the disruption loop when the virtual pods of buffers, if there are any, are known: an empty node may
// have their room.
func afterBuffers(buffers *buffer.Reconciler, start func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if buffers != nil && !buffers.WaitForBuffers(ctx) {
			return nil
		}
		return start(ctx)
	}
}
