package buffer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/cluster/room"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// statusEvery is the shortest time between two writes of a status in which no condition changes its status.
const statusEvery = 5 * time.Second

// writeStatus writes the status of the buffers where it changes. That of a buffer whose virtual pods have changed is written
// when they are planned.
func (r *Reconciler) writeStatus(ctx context.Context, buffers []v1beta1.CapacityBuffer) error {
	last := r.planned.Load()
	if last == nil {
		last = &planned{}
	}
	r.Metrics.BufferCost.Reset()
	var errs []error
	for i := range buffers {
		b := &buffers[i]
		s, has := r.known[b.UID], last.rooms[string(b.UID)]
		if has == nil {
			has = &room.Room{}
		}
		r.Metrics.BufferCost.WithLabelValues(b.Namespace, b.Name).Set(float64(has.Cost) / model.Nano)
		served := s.request.Err == nil || !otherControllers(b)
		if !served || s.count > 0 && s.request.Refused == nil && !last.at.After(s.changed) {
			continue
		}
		next := b.DeepCopy()
		s.request.SetStatus(next, has)
		if (has.Never || has.Paused) && has.Failed > 0 {
			r.Recorder.Emit(telemetry.NotTriggerScaleUp(b, has.Why))
		}
		if equality.Semantic.DeepEqual(b.Status, next.Status) || sameConditions(b, next) && r.Clock.Since(s.written) < statusEvery {
			continue
		}
		s.written = r.Clock.Now()
		if err := r.patchStatus(ctx, b, next); err != nil {
			errs = append(errs, fmt.Errorf("writing the status of buffer %s/%s: %w", b.Namespace, b.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) patchStatus(ctx context.Context, before, next *v1beta1.CapacityBuffer) error {
	ctx, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	return client.IgnoreNotFound(r.Client.Status().Patch(ctx, next, client.MergeFrom(before)))
}

// otherControllers reports whether the strategy of the buffer is not served here and another controller has written conditions
// for this generation.
func otherControllers(b *v1beta1.CapacityBuffer) bool {
	strategy := b.Spec.ProvisioningStrategy
	if strategy == nil || *strategy == "" || *strategy == v1beta1.StrategyActiveCapacity {
		return false
	}
	for _, c := range b.Status.Conditions {
		if c.ObservedGeneration == b.Generation && c.Reason != v1beta1.ReasonResolutionFailed &&
			c.Reason != v1beta1.ReasonNotReadyForProvisioning {
			return true
		}
	}
	return false
}

func sameConditions(a, b *v1beta1.CapacityBuffer) bool {
	for _, c := range b.Status.Conditions {
		if before := meta.FindStatusCondition(a.Status.Conditions, c.Type); before == nil || before.Status != c.Status || before.Reason != c.Reason {
			return false
		}
	}
	return true
}
