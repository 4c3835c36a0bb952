package room

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Room is what has become of the virtual pods of a buffer.
type Room struct {
	// Ready have room on initialized nodes, Starting on nodes in flight, Missing on nodes to launch. Failed have none.
	Ready, Starting, Missing, Failed int64
	// Never reports that no instance type of any pool could ever hold the pods that failed, Paused that launches for them
	// wait because earlier ones gave no room. Why is the reason.
	Never, Paused bool
	Why           string
	// Cost is the part of the nodes' prices that the room is, nano-USD per hour. Nodes to launch do not count.
	Cost int64
}

// Rooms returns the room of all buffers, by UID, according to the plan of the virtual pods. why describes a refusal.
func Rooms(snap *model.Snapshot, found *plan.Provision, why func(*model.Snapshot, plan.Refusal) string) map[string]*Room {
	all := map[string]*Room{}
	of := func(p *model.Pod) *Room {
		r := all[p.Controller.UID]
		if r == nil {
			r = &Room{}
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
			r.Cost += Share(n, p)
			if IsReady(n) {
				r.Ready++
			} else {
				r.Starting++
			}
		}
	}
	for i := range found.Claims {
		for _, p := range found.Claims[i].Pods {
			of(p).Missing++
		}
	}
	for _, refusal := range found.Refused {
		never, text := forever(refusal), why(snap, refusal)
		for _, p := range refusal.Pods {
			r := of(p)
			r.Failed, r.Never, r.Why = r.Failed+1, never, text
			r.Paused = paused(refusal)
		}
	}
	return all
}

// IsReady reports whether room on the node counts as ready.
func IsReady(n *model.Node) bool {
	return n != nil && n.Stage == model.Initialized && n.Ready && !n.Deleting
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

// paused reports whether launches wait because earlier ones were of no use: those for the buffer, or those of a pool.
func paused(r plan.Refusal) bool {
	return r.Verdict.Code == plan.Paused ||
		slices.ContainsFunc(r.Pools, func(p plan.PoolVerdict) bool { return p.Verdict.Code == plan.Paused })
}

// Share returns the part of the node's price that the room of the pod is, nano-USD per hour: the larger of its shares of
// cpu and memory.
func Share(n *model.Node, p *model.Pod) int64 {
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

// SetStatus sets the status of the buffer.
func (q *Request) SetStatus(b *v1beta1.CapacityBuffer, r *Room) {
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
	reason, message := q.unready()
	if reason != "" {
		b.Status.Replicas, b.Status.ReadyReplicas = nil, new(int32(0))
		set(v1beta1.ConditionReadyForProvisioning, false, reason, message)
		set(v1beta1.ConditionProvisioning, false, v1beta1.ReasonNotReadyForProvisioning, message)
		return
	}
	if b.Spec.PodTemplateRef != nil {
		b.Status.PodTemplateRef = &v1beta1.LocalObjectRef{Name: b.Spec.PodTemplateRef.Name}
		b.Status.PodTemplateGeneration = new(q.Shape.Generation)
	}
	b.Status.Replicas, b.Status.ReadyReplicas = new(int32(q.Count)), new(int32(r.Ready))
	set(v1beta1.ConditionReadyForProvisioning, true, v1beta1.ReasonResolved, "shape and number of the pods are known")
	set(v1beta1.ConditionLimitedByQuotas, q.Limited.Reason != v1beta1.ReasonNotLimited, q.Limited.Reason, q.Limited.Message)
	is, reason, message := q.provisioning(r)
	set(v1beta1.ConditionProvisioning, is, reason, message)
}

// Condition returns the condition that says whether there is room: Provisioning, or ReadyForProvisioning if the shape of
// the pods is not known.
func (q *Request) Condition(r *Room) metav1.Condition {
	b := &v1beta1.CapacityBuffer{Spec: q.Buffer.Spec}
	q.SetStatus(b, r)
	if c := meta.FindStatusCondition(b.Status.Conditions, v1beta1.ConditionReadyForProvisioning); c.Status == metav1.ConditionFalse {
		return *c
	}
	return *meta.FindStatusCondition(b.Status.Conditions, v1beta1.ConditionProvisioning)
}

// unready returns why the shape of the pods is not known, "" if it is.
func (q *Request) unready() (reason, message string) {
	var fault *UnresolvedError
	switch {
	case errors.As(q.Err, &fault):
		return fault.Reason, fault.Message
	case q.Shape == nil:
		return v1beta1.ReasonResolutionFailed, "the objects that the buffer refers to have not been read yet"
	case q.Invalid != "":
		return v1beta1.ReasonResolutionFailed, q.Invalid
	case q.Refused != nil:
		return v1beta1.ReasonResolutionFailed, q.Refused.Field + ": " + q.Refused.Reason
	}
	return "", ""
}

// provisioning returns the condition Provisioning. A virtual pod that the engine has set aside counts as failed.
func (q *Request) provisioning(r *Room) (is bool, reason, message string) {
	switch failed := q.Count - r.Ready - r.Starting - r.Missing; {
	case q.Count == 0:
		return false, v1beta1.ReasonBufferEmpty, cmp.Or(q.Closed, q.Limited.Message, "the buffer asks for no pods")
	case r.Never && r.Failed > 0 && failed > 0:
		return false, v1beta1.ReasonInfeasible,
			fmt.Sprintf("%d of %d virtual pods fit on no node of any NodePool: %s", failed, q.Count, r.Why)
	case r.Paused && failed > 0:
		return false, v1beta1.ReasonPaused, fmt.Sprintf("%d of %d virtual pods have no room: %s", failed, q.Count, r.Why)
	case r.Ready == q.Count:
		return true, v1beta1.ReasonFitsExistingCapacity, fmt.Sprintf("All %d virtual pods fit on existing capacity", q.Count)
	default:
		return false, v1beta1.ReasonRequiresNewCapacity,
			fmt.Sprintf("%d/%d virtual pods required new capacity, %d failed", q.Count-r.Ready, q.Count, failed)
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
