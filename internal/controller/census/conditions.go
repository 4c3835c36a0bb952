package census

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// These are the kinds of every provider, as they appear in metric names.
const (
	kindClaim = "nodeclaim"
	kindPool  = "nodepool"
	kindNode  = "node"
)

// Kinds returns the kinds whose conditions are measured. Node classes are given by the label that claims and nodes
// have for them; gated are the kinds of feature gates that are on.
func Kinds(classes map[string]string, gated ...string) []telemetry.Kind {
	var names, labels []string
	for name, label := range classes {
		names, labels = append(names, name), append(labels, label)
	}
	slices.Sort(names)
	slices.Sort(labels)
	labels = append(labels, karpv1.LabelNodePool)
	kinds := []telemetry.Kind{
		{Name: kindClaim, Labels: labels},
		{Name: kindNode, Labels: append(slices.Clone(labels), karpv1.LabelInitialized)},
		{Name: kindPool, Bounded: true},
	}
	slices.Sort(gated)
	for _, name := range slices.Concat(names, gated) {
		kinds = append(kinds, telemetry.Kind{Name: name, Bounded: true})
	}
	return kinds
}

// condition is a condition of any of this project's kinds, or of a node.
type condition struct {
	kind, status, reason string
	since                time.Time
}

func conditionsOf(object any) []condition {
	var list []condition
	switch o := object.(type) {
	case *corev1.Node:
		for _, c := range o.Status.Conditions {
			list = append(list, condition{string(c.Type), string(c.Status), c.Reason, c.LastTransitionTime.Time})
		}
	case *v1beta1.CapacityBuffer:
		for _, c := range o.Status.Conditions {
			list = append(list, condition{c.Type, string(c.Status), c.Reason, c.LastTransitionTime.Time})
		}
	case interface{ GetConditions() []status.Condition }:
		for _, c := range o.GetConditions() {
			list = append(list, condition{c.Type, string(c.Status), c.Reason, c.LastTransitionTime.Time})
		}
	}
	return list
}

// valuesOf returns the values of the labels that the series of a kind carry.
func valuesOf(kind *telemetry.KindSeries, object client.Object) []string {
	values := make([]string, 0, len(kind.Labels))
	for _, key := range kind.Labels {
		values = append(values, object.GetLabels()[key])
	}
	return values
}

// kind sends the conditions of a kind, per object or as counts.
func (s sending) kind(kind *telemetry.KindSeries, list client.ObjectList) {
	each := s.Detail || kind.Bounded
	counts := map[string]int{}
	_ = meta.EachListItem(list, func(item runtime.Object) error { // a list of objects, and the function returns no error
		object := item.(client.Object)
		values := valuesOf(kind, object)
		who := []string{object.GetNamespace(), object.GetName()}
		for _, c := range conditionsOf(object) {
			labels := slices.Concat([]string{c.kind, c.status, c.reason}, values)
			if !each {
				counts[strings.Join(labels, "\x00")]++
				continue
			}
			s.send(kind.Count, 1, slices.Concat(who, labels)...)
			s.send(kind.Current, s.now.Sub(c.since).Seconds(), slices.Concat(who, labels)...)
		}
		if at := object.GetDeletionTimestamp(); at != nil && each {
			s.send(kind.Terminating, s.now.Sub(at.Time).Seconds(), slices.Concat(who, values)...)
		}
		return nil
	})
	for labels, n := range counts {
		s.send(kind.Count, float64(n), slices.Concat([]string{"", ""}, strings.Split(labels, "\x00"))...)
	}
}

// Watch counts changes of conditions from now on. Call it before the cache starts.
func (c *Census) Watch(ctx context.Context, informers cache.Informers) error {
	for _, kind := range c.Objects.Kinds() {
		object := c.objectOf(kind.Name)
		if object == nil {
			continue
		}
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if meta.IsNoMatchError(err) { // the definition of a gated kind may be missing
			continue
		}
		if err != nil {
			return fmt.Errorf("watching objects of kind %s for metrics: %w", kind.Name, err)
		}
		if _, err := informer.AddEventHandler(c.handler(kind)); err != nil {
			return fmt.Errorf("watching objects of kind %s for metrics: %w", kind.Name, err)
		}
	}
	return nil
}

func (c *Census) objectOf(kind string) client.Object {
	switch kind {
	case kindClaim:
		return &karpv1.NodeClaim{}
	case kindPool:
		return &karpv1.NodePool{}
	case kindNode:
		return &corev1.Node{}
	}
	if other, ok := c.Others[kind]; ok {
		return other.Object.DeepCopyObject().(client.Object)
	}
	return nil
}

func (c *Census) handler(kind *telemetry.KindSeries) toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			if object, ok := after.(client.Object); ok {
				changed(kind, conditionsOf(before), conditionsOf(after), valuesOf(kind, object))
			}
		},
		DeleteFunc: func(last any) {
			if unknown, ok := last.(toolscache.DeletedFinalStateUnknown); ok {
				last = unknown.Obj
			}
			if object, ok := last.(client.Object); ok && object.GetDeletionTimestamp() != nil {
				kind.Termination.WithLabelValues(valuesOf(kind, object)...).Observe(c.Clock.Now().Sub(object.GetDeletionTimestamp().Time).Seconds())
			}
		},
	}
}

// changed counts the conditions whose status has changed.
func changed(kind *telemetry.KindSeries, before, after []condition, values []string) {
	for _, now := range after {
		at := slices.IndexFunc(before, func(c condition) bool { return c.kind == now.kind })
		if at >= 0 && before[at].status == now.status {
			continue
		}
		kind.Transitions.WithLabelValues(slices.Concat([]string{now.kind, now.status, now.reason}, values)...).Inc()
		if at >= 0 {
			kind.Lasted.WithLabelValues(slices.Concat([]string{now.kind, before[at].status}, values)...).Observe(now.since.Sub(before[at].since).Seconds())
		}
	}
}
