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
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// statusEvery is the shortest time between two writes of a status in which no condition changes its status.
const statusEvery = 5 * time.Second

// report writes the status of the buffers where it changes.
func (l *Loop) report(ctx context.Context, buffers []v1beta1.CapacityBuffer, snap *model.Snapshot, found *plan.Provision) error {
	rooms := room.Rooms(snap, found, func(snap *model.Snapshot, r plan.Refusal) string { return telemetry.Truncate(l.Why(snap, r)) })
	l.Metrics.BufferCost.Reset()
	var errs []error
	for i := range buffers {
		b := &buffers[i]
		s, r := l.known[b.UID], rooms[string(b.UID)]
		if r == nil {
			r = &room.Room{}
		}
		l.Metrics.BufferCost.WithLabelValues(b.Namespace, b.Name).Set(float64(r.Cost) / model.Nano)
		if served := s.request.Err == nil || !foreign(b); !served {
			continue
		}
		next := b.DeepCopy()
		s.request.SetStatus(next, r)
		if (r.Never || r.Paused) && r.Failed > 0 {
			l.Recorder.Emit(telemetry.NotTriggerScaleUp(b, r.Why))
		}
		if equality.Semantic.DeepEqual(b.Status, next.Status) {
			continue
		}
		if sameConditions(b, next) && l.Clock.Since(s.written) < statusEvery {
			continue
		}
		s.written = l.Clock.Now()
		if err := l.Client.Status().Patch(ctx, next, client.MergeFrom(b)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("writing the status of buffer %s/%s: %w", b.Namespace, b.Name, err))
		}
	}
	return errors.Join(errs...)
}

// foreign reports whether the strategy of the buffer is not served here and another controller has written conditions
// for this generation.
func foreign(b *v1beta1.CapacityBuffer) bool {
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
