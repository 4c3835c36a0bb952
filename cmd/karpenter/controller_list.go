package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/controller/nodeoverlay"
	"github.com/karpenter-go/karpenter/internal/controller/nodepool"
	"github.com/karpenter-go/karpenter/internal/controller/rejected"
	"github.com/karpenter-go/karpenter/internal/gates"
)

// part is a controller or a loop that can be registered.
type part interface {
	SetupWithManager(manager.Manager) error
}

// setup registers something that has no type of its own.
type setup func() error

// SetupWithManager implements part.
func (s setup) SetupWithManager(manager.Manager) error { return s() }

// addParts registers all controllers and loops.
func (w *wiring) addParts(ctx context.Context, nominate bool) error {
	parts, err := w.parts(ctx, nominate)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := p.SetupWithManager(w.mgr); err != nil {
			return fmt.Errorf("setting up the controller: %w", err)
		}
	}
	return nil
}

// parts is the only list of what runs in the manager, besides what the provider adds itself. What a gate or a flag
// switches off is left out.
func (w *wiring) parts(ctx context.Context, nominate bool) ([]part, error) {
	provisioner, health := w.provisioner(nominate), nodepool.NewHealth()
	limiter, err := w.limiter()
	buffers, buffersErr := w.buffers(provisioner)
	older, olderErr := w.older()
	if err := errors.Join(err, buffersErr, olderErr); err != nil {
		return nil, err
	}
	list := []part{
		setup(w.addUnreadable), setup(func() error { return older.Setup(ctx) }),
		setup(func() error { return w.mgr.Add(everywhere(w.captures)) }),
		w.whenSynced(provisioner.Start), w.whenSynced(afterBuffers(buffers, w.disrupter().Start)), w.whenSynced(w.replicas().Start),
		w.whenSynced(w.rejections().Start), w.whenSynced(w.watchBound),
		w.nodes(provisioner, limiter),
	}
	list = slices.Concat(list, w.claims(provisioner, older.Complete, health, limiter), w.pools(health), w.repair(limiter))
	if buffers != nil {
		list = append(list, w.whenSynced(buffers.Start))
	}
	if w.o.on.On(gates.NodeOverlay) {
		list = append(list, &nodeoverlay.Status{Client: w.mgr.GetClient(), Store: w.store, Metrics: w.metrics, Retry: w.o.timers.RetryMax})
	}
	if !w.o.noObservability {
		list = append(list, setup(func() error { return w.addCensus(ctx) }))
	}
	return list, nil
}

// whenSynced returns a loop that starts on the leader once the store has seen the whole cluster.
func (w *wiring) whenSynced(start func(context.Context) error) part {
	return setup(func() error {
		return w.mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			if !w.store.WaitForSync(ctx) {
				return nil
			}
			w.metrics.ClusterStateSynced.Set(1)
			return start(ctx)
		}))
	})
}

func (w *wiring) rejections() *rejected.Reporter {
	return &rejected.Reporter{
		List: w.store.Rejected, Changed: w.store.Subscribe(state.RejectedChanged), Recorder: w.recorder,
		Log: w.mgr.GetLogger().WithName("state"),
	}
}
