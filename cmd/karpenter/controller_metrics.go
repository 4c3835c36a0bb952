package main

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/census"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// addCensus adds the metrics that are computed at collection time, unless the flags exclude them.
func (w *wiring) addCensus(ctx context.Context) error {
	if w.o.noObservability {
		return nil
	}
	classes, err := controller.ClassesOf(w.provider, w.mgr.GetScheme())
	if err != nil {
		return err
	}
	kinds, labels := map[string]census.Class{}, map[string]string{}
	for kind, object := range classes.Kinds() {
		gvk, err := w.mgr.GetClient().GroupVersionKindFor(object)
		if err != nil {
			return fmt.Errorf("setting up metrics of kind %s: %w", kind.Kind, err)
		}
		gvk.Kind += "List"
		list, err := w.mgr.GetScheme().New(gvk)
		if err != nil {
			return fmt.Errorf("setting up metrics of kind %s: %w", kind.Kind, err)
		}
		name := strings.ToLower(kind.Kind)
		kinds[name] = census.Class{Object: object, List: list.(client.ObjectList)}
		labels[name] = karpv1.NodeClassLabel(kind.Group, kind.Kind)
	}
	c := &census.Census{
		Objects: telemetry.NewObjects(ctrlmetrics.Registry, telemetry.ObjectOptions{
			Kinds: census.Kinds(labels), WellKnown: w.store.Vocabulary().Rules.WellKnown, Detail: w.o.metricsDetail,
		}),
		Waits: w.metrics.Waits, Snapshot: func() *model.Snapshot { return w.store.Snapshot(w.clock.Now()) }, Synced: w.store.Synced,
		Cache: w.mgr.GetCache(), Classes: kinds, Clock: w.clock, Log: w.mgr.GetLogger().WithName("metrics"),
	}
	c.Begin()
	ctrlmetrics.Registry.MustRegister(c)
	return c.Watch(ctx, w.mgr.GetCache())
}
