// Package quota writes the status of CapacityQuotas.
//
//	cluster.Store --usage of the last snapshot--> Status --> status, event, metrics
//
// What a quota limits is decided in the engine. This package must not decide anything.
package quota

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Store is the source of the quotas and of the usage.
type Store interface {
	Subscribe(of state.Change) <-chan struct{}
	Quotas() []*autoscalingv1beta1.CapacityQuota
	Snapshot(now time.Time) *model.Snapshot
	WaitForSync(ctx context.Context) bool
	QuotaProblem(name string) error
}

// Status writes the status after changes of nodes and quotas. Fill all fields.
type Status struct {
	Client   client.Client
	Store    Store
	Recorder *telemetry.Recorder
	Metrics  *telemetry.Metrics
	Clock    clock.Clock
	// Pause is the shortest time between two passes.
	Pause time.Duration
}

// SetupWithManager registers the runnable, which runs on the leader only.
func (s *Status) SetupWithManager(mgr ctrl.Manager) error { return mgr.Add(s) }

// Start implements manager.Runnable.
func (s *Status) Start(ctx context.Context) error {
	changed := s.Store.Subscribe(state.NodesChanged | state.PoolsChanged)
	if !s.Store.WaitForSync(ctx) {
		return nil
	}
	for {
		if err := s.write(ctx); err != nil && ctx.Err() == nil {
			ctrllog.FromContext(ctx).Error(err, "writing the status of CapacityQuotas; it is tried again with the next change")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.Clock.After(s.Pause):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// write updates the quotas whose status differs.
func (s *Status) write(ctx context.Context) error {
	quotas := s.Store.Quotas()
	s.Metrics.CapacityQuotasUsage.Reset()
	s.Metrics.CapacityQuotasLimit.Reset()
	if len(quotas) == 0 {
		return nil
	}
	snap := s.Store.Snapshot(s.Clock.Now())
	var errs []error
	for _, object := range quotas {
		changed := Written(object, snap, s.Store.QuotaProblem(object.Name))
		s.report(changed)
		if !object.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(object.Status, changed.Status) {
			continue
		}
		if err := s.Client.Status().Patch(ctx, changed, client.MergeFrom(object)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("quota %s: %w", object.Name, err))
		}
	}
	return errors.Join(errs...)
}

// report sets the metrics, and emits an event if a limit is reached.
func (s *Status) report(q *autoscalingv1beta1.CapacityQuota) {
	if q.Status.Used == nil {
		return
	}
	var reached []string
	limits := q.Spec.Limits.Resources
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		limit := limits[name]
		used := q.Status.Used.Resources[name]
		s.Metrics.CapacityQuotasUsage.WithLabelValues(q.Name, telemetry.ResourceType(string(name))).Set(used.AsApproximateFloat64())
		s.Metrics.CapacityQuotasLimit.WithLabelValues(q.Name, telemetry.ResourceType(string(name))).Set(limit.AsApproximateFloat64())
		if used.Cmp(limit) >= 0 && !used.IsZero() {
			reached = append(reached, fmt.Sprintf("%s of %s %s", used.String(), limit.String(), name))
		}
	}
	if len(reached) > 0 {
		s.Recorder.Emit(telemetry.QuotaReached(q, strings.Join(reached, ", ")))
	}
}

// Written returns a copy of the quota with the status that the snapshot implies, and what makes the quota invalid, nil for
// none.
func Written(object *autoscalingv1beta1.CapacityQuota, snap *model.Snapshot, invalid error) *autoscalingv1beta1.CapacityQuota {
	changed := object.DeepCopy()
	changed.Status.ObservedGeneration = object.Generation
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&changed.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message,
			ObservedGeneration: object.Generation})
	}
	if invalid != nil {
		changed.Status.Used = nil
		set(autoscalingv1beta1.ConditionValid, metav1.ConditionFalse, "Invalid", invalid.Error())
		effect := "the quota is invalid, and has no effect"
		if slices.ContainsFunc(snap.Quotas, func(q *model.Quota) bool { return q.Name == object.Name }) {
			effect = "the quota is invalid; as it was before, it stays in effect"
		}
		set(autoscalingv1beta1.ConditionReconciled, metav1.ConditionFalse, autoscalingv1beta1.ReasonReconciliationFailed, effect)
		return changed
	}
	set(autoscalingv1beta1.ConditionValid, metav1.ConditionTrue, "Valid", "")
	for _, q := range snap.Quotas {
		if q.Name == object.Name {
			changed.Status.Used = &autoscalingv1beta1.CapacityQuotaLimits{Resources: usage(snap, q)}
			set(autoscalingv1beta1.ConditionReconciled, metav1.ConditionTrue, autoscalingv1beta1.ReasonReconciliationSucceeded, "")
		}
	}
	return changed
}

// usage returns what the nodes of the quota use of each limited resource.
func usage(snap *model.Snapshot, q *model.Quota) map[corev1.ResourceName]resource.Quantity {
	used := map[corev1.ResourceName]resource.Quantity{}
	for _, line := range snap.Ledger.Lines(snap.Ledger.AccountOf(q)) {
		used[corev1.ResourceName(line.Name)] = convert.QuotaAmount(line.Name, line.Used)
	}
	return used
}
