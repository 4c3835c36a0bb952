// Package nodeoverlay writes the conditions of NodeOverlays.
//
//	cluster.Store --reports of the last resolution--> Status --> conditions, metrics
//
// What overlays do is decided in package overlay. This package must not decide anything.
package nodeoverlay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cluster/overlay"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Store is the source of the reports.
type Store interface {
	Subscribe(of state.Change) <-chan struct{}
	OverlayReports() []overlay.Report
	// Overlay returns nil if there is no overlay of the name.
	Overlay(name string) *karpv1alpha1.NodeOverlay
}

// Status writes the conditions after each resolution. Fill all fields.
type Status struct {
	Client  client.Client
	Store   Store
	Metrics *telemetry.Metrics
	// Retry is the pause after a failed write.
	Retry time.Duration
}

// SetupWithManager registers the runnable, which runs on the leader only.
func (s *Status) SetupWithManager(mgr ctrl.Manager) error { return mgr.Add(s) }

// Start implements manager.Runnable.
func (s *Status) Start(ctx context.Context) error {
	resolved := s.Store.Subscribe(state.OverlaysResolved)
	for {
		again := make(<-chan time.Time)
		if err := s.write(ctx); err != nil && ctx.Err() == nil {
			ctrllog.FromContext(ctx).Error(err, "writing the conditions of NodeOverlays; it is tried again")
			again = time.After(s.Retry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-resolved:
		case <-again:
		}
	}
}

// write updates the overlays whose conditions differ from the last resolution.
func (s *Status) write(ctx context.Context) error {
	reports := s.Store.OverlayReports()
	s.Metrics.NodeOverlaysApplied.Reset()
	var errs []error
	for _, r := range reports {
		if r.Reason == "" {
			s.Metrics.NodeOverlaysApplied.WithLabelValues(r.Name, "price").Set(float64(r.PriceTypes))
			s.Metrics.NodeOverlaysApplied.WithLabelValues(r.Name, "capacity").Set(float64(r.CapacityTypes))
		}
		object := s.Store.Overlay(r.Name)
		if object == nil || !object.DeletionTimestamp.IsZero() {
			continue
		}
		changed := Conditioned(object, r)
		if equality.Semantic.DeepEqual(object.Status, changed.Status) {
			continue
		}
		patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
		err := s.Client.Status().Patch(ctx, changed, patch)
		if client.IgnoreNotFound(err) != nil {
			if apierrors.IsConflict(err) {
				err = fmt.Errorf("%s: changed meanwhile", r.Name)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Conditioned returns a copy of the overlay with the conditions that the report describes.
func Conditioned(object *karpv1alpha1.NodeOverlay, r overlay.Report) *karpv1alpha1.NodeOverlay {
	changed := object.DeepCopy()
	conditions := changed.StatusConditions()
	if r.Reason == "" {
		conditions.SetTrueWithReason(karpv1alpha1.ConditionValidationSucceeded, karpv1alpha1.ConditionValidationSucceeded, r.Message)
	} else {
		conditions.SetFalse(karpv1alpha1.ConditionValidationSucceeded, r.Reason, r.Message)
	}
	return changed
}
