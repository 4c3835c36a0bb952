package buffer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// statusEvery is the shortest time between two writes of a status in which no condition changes its status.
const statusEvery = 5 * time.Second

// room is what has become of the virtual pods of a buffer.
type room struct {
	// ready have room on initialized nodes, starting on nodes in flight, missing on nodes to launch. failed have none.
	ready, starting, missing, failed int64
	// never reports that no instance type of any pool could ever hold the pods that failed; why is the reason.
	never bool
	why   string
	// cost is the part of the nodes' prices that the room is, nano-USD per hour.
	cost int64
}

// rooms returns the room of all buffers, by UID.
func (l *Loop) rooms(snap *model.Snapshot, found *plan.Provision) map[string]*room {
	all := map[string]*room{}
	of := func(p *model.Pod) *room {
		r := all[p.Controller.UID]
		if r == nil {
			r = &room{}
			all[p.Controller.UID] = r
		}
		return r
	}
	if found == nil {
		return all
	}
	for _, placed := range found.Placed {
		n := snap.Node(placed.Node)
		for _, p := range placed.Pods {
			r := of(p)
			r.cost += share(n, p)
			if n != nil && n.Stage == model.Initialized && n.Ready && !n.Deleting {
				r.ready++
			} else {
				r.starting++
			}
		}
	}
	for i := range found.Claims {
		for _, p := range found.Claims[i].Pods {
			of(p).missing++
		}
	}
	for _, refusal := range found.Refused {
		never, why := forever(refusal), l.Why(snap, refusal)
		for _, p := range refusal.Pods {
			r := of(p)
			r.failed, r.never, r.why = r.failed+1, never, why
		}
	}
	return all
}

// forever reports whether no change of limits, offerings or other pods would make room: every pool refuses because of its
// own rules.
func forever(r plan.Refusal) bool {
	if !r.Verdict.OK() {
		return r.Verdict.Code.Class() == plan.NeverHere
	}
	for _, pool := range r.Pools {
		if pool.Verdict.Code.Class() != plan.NeverHere {
			return false
		}
	}
	return true
}

// share returns the part of the node's price that the room of the pod is: the larger of its shares of cpu and memory.
func share(n *model.Node, p *model.Pod) int64 {
	if n == nil {
		return 0
	}
	most := 0.0
	for _, r := range []quantity.Resource{quantity.CPU, quantity.Memory} {
		if all := n.Usable.At(r); all > 0 {
			most = max(most, float64(p.Requests.At(r))/float64(all))
		}
	}
	return int64(most * float64(n.LeastPrice()))
}

// report writes the status of the buffers where it changes.
func (l *Loop) report(ctx context.Context, buffers []v1beta1.CapacityBuffer, snap *model.Snapshot, found *plan.Provision) error {
	rooms := l.rooms(snap, found)
	l.Metrics.BufferCost.Reset()
	var errs []error
	for i := range buffers {
		b := &buffers[i]
		s, r := l.known[b.UID], rooms[string(b.UID)]
		if r == nil {
			r = &room{}
		}
		l.Metrics.BufferCost.WithLabelValues(b.Namespace, b.Name).Set(float64(r.cost) / model.Nano)
		if served := s.err == nil || !foreign(b); !served {
			continue
		}
		next := b.DeepCopy()
		s.status(next, r)
		if r.never && r.failed > 0 {
			l.Recorder.Emit(telemetry.NotTriggerScaleUp(b, r.why))
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
		if c.ObservedGeneration == b.Generation && c.Reason != ReasonResolutionFailed && c.Reason != ReasonNotReadyForProvisioning {
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

// status sets the status of the buffer.
func (s *state) status(b *v1beta1.CapacityBuffer, r *room) {
	set := func(kind string, is bool, reason, message string) {
		value := metav1.ConditionFalse
		if is {
			value = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: kind, Status: value, Reason: reason, Message: message,
			ObservedGeneration: b.Generation})
	}
	b.Status.ProvisioningStrategy = new(cmp.Or(deref(b.Spec.ProvisioningStrategy), v1beta1.StrategyActiveCapacity))
	b.Status.PodTemplateRef, b.Status.PodTemplateGeneration = nil, nil
	reason, message := s.unready()
	if reason != "" {
		b.Status.Replicas, b.Status.ReadyReplicas = nil, new(int32(0))
		set(v1beta1.ConditionReadyForProvisioning, false, reason, message)
		set(v1beta1.ConditionProvisioning, false, ReasonNotReadyForProvisioning, "the shape of the pods is not known")
		return
	}
	if b.Spec.PodTemplateRef != nil {
		b.Status.PodTemplateRef = &v1beta1.LocalObjectRef{Name: b.Spec.PodTemplateRef.Name}
		b.Status.PodTemplateGeneration = new(s.shape.generation)
	}
	b.Status.Replicas, b.Status.ReadyReplicas = new(int32(s.count)), new(int32(r.ready))
	set(v1beta1.ConditionReadyForProvisioning, true, ReasonResolved, "shape and number of the pods are known")
	set(v1beta1.ConditionLimitedByQuotas, s.limited.reason != ReasonNotLimited, s.limited.reason, s.limited.message)
	is, reason, message := s.provisioning(r)
	set(v1beta1.ConditionProvisioning, is, reason, message)
}

// unready returns why the shape of the pods is not known, "" if it is.
func (s *state) unready() (reason, message string) {
	var fault *unresolvedError
	switch {
	case errors.As(s.err, &fault):
		return fault.reason, fault.message
	case s.shape == nil:
		return ReasonResolutionFailed, "the objects that the buffer refers to have not been read yet"
	case s.refused != nil:
		return ReasonResolutionFailed, s.refused.Field + ": " + s.refused.Reason
	}
	return "", ""
}

// provisioning returns the condition Provisioning. A virtual pod that the engine has set aside counts as failed.
func (s *state) provisioning(r *room) (is bool, reason, message string) {
	switch failed := s.count - r.ready - r.starting - r.missing; {
	case s.count == 0:
		return false, ReasonBufferEmpty, "the buffer asks for no pods"
	case r.never && r.failed > 0 && failed > 0:
		return false, ReasonInfeasible, telemetry.Truncate(fmt.Sprintf("%d of %d virtual pods fit on no node of any NodePool: %s", failed, s.count, r.why))
	case r.ready == s.count:
		return true, ReasonFitsExistingCapacity, fmt.Sprintf("All %d virtual pods fit on existing capacity", s.count)
	default:
		return false, ReasonRequiresNewCapacity,
			fmt.Sprintf("%d/%d virtual pods required new capacity, %d failed", s.count-r.ready, s.count, failed)
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
