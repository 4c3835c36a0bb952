package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/census"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/gates"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// addCensus adds the metrics that are computed at collection time.
func (w *wiring) addCensus(ctx context.Context) error {
	classes, err := controller.ClassesOf(w.provider, w.mgr.GetScheme())
	if err != nil {
		return err
	}
	kinds, labels := map[string]census.Kind{}, map[string]string{}
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
		kinds[name] = census.Kind{Object: object, List: list.(client.ObjectList)}
		labels[name] = karpv1.NodeClassLabel(kind.Group, kind.Kind)
	}
	gated := w.gatedKinds()
	maps.Copy(kinds, gated)
	c := &census.Census{
		Objects: telemetry.NewObjects(ctrlmetrics.Registry, telemetry.ObjectOptions{
			Kinds:     census.Kinds(labels, slices.Collect(maps.Keys(gated))...),
			WellKnown: w.store.Vocabulary().Rules.WellKnown, Detail: w.o.metricsDetail,
		}),
		Waits: w.metrics.Waits, Snapshot: func() *model.Snapshot { return w.store.Snapshot(w.clock.Now()) }, Synced: w.store.Synced,
		Pods: w.store.EachPod, Cache: w.mgr.GetCache(), Others: kinds, CostLabel: w.o.costLabel, Clock: w.clock,
		Log: w.mgr.GetLogger().WithName("metrics"),
	}
	c.Begin()
	ctrlmetrics.Registry.MustRegister(c)
	return c.Watch(ctx, w.mgr.GetCache())
}

// gatedKinds returns the kinds with conditions that are read with a feature gate only, as far as the gates are on.
func (w *wiring) gatedKinds() map[string]census.Kind {
	kinds := map[string]census.Kind{}
	if w.o.on.On(gates.NodeOverlay) {
		kinds["nodeoverlay"] = census.Kind{Object: &karpv1alpha1.NodeOverlay{}, List: &karpv1alpha1.NodeOverlayList{}}
	}
	if w.o.on.On(gates.CapacityBuffer) {
		kinds["capacitybuffer"] = census.Kind{Object: &autoscalingv1beta1.CapacityBuffer{}, List: &autoscalingv1beta1.CapacityBufferList{}}
	}
	return kinds
}
