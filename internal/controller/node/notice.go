package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// A cloud that takes a machine back says so shortly before: EC2 two minutes. What the pods need is bought at once, and
// takes most of a minute to come. A pod that is evicted at once waits for it without running; one that stays until its
// place is ready does not. So a node that is on notice keeps its workloads for a while:
//
//	notice                                          deadline - reserve                       deadline
//	   |-- tainted; who has a place that is ready leaves --|-- all others are asked ------------|
//	                          deadline - grace period - a quarter of the reserve --^ at the latest
//
// Who has no place, or of whom nobody knows yet where he goes (after a restart, until the first plan is made), stays as
// long: there is nothing that leaving sooner would be good for. Everything is worked out from the claim and the latest
// plan each time.

// holder says which pods had better stay for now; nil if the node is not on notice, or its kubelet is silent.
func (r *Reconciler) holder(ctx context.Context, l *leave) func(*corev1.Pod) bool {
	onNotice := !l.deadline.IsZero() && l.deadline.Sub(l.node.DeletionTimestamp.Time) <= r.Timers.Notice
	if r.Seat == nil || !onNotice || !karpv1.NodeReady(l.node) {
		return nil
	}
	ready := map[string]bool{}
	return func(pod *corev1.Pod) bool {
		if !l.now.Before(leaveBy(pod, l.deadline, r.Timers.DrainReserve)) {
			return false
		}
		seat := r.Seat(pod.UID)
		if seat == "" {
			return true
		}
		is, known := ready[seat]
		if !known {
			is = r.open(ctx, seat)
			ready[seat] = is
		}
		return !is
	}
}

// leaveBy is when a pod is asked to leave at the latest. Who needs longer than the reserve to say goodbye is asked sooner,
// before the drain deletes it.
func leaveBy(pod *corev1.Pod, deadline time.Time, reserve time.Duration) time.Time {
	return deadline.Add(-max(reserve, time.Duration(graceOf(pod))*time.Second+reserve/4))
}

// open reports whether pods can go to the node of that name, or of the claim of that name, now. What cannot be read is not:
// the drain waits only so long.
func (r *Reconciler) open(ctx context.Context, name string) bool {
	claim := &karpv1.NodeClaim{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, claim)
	if err == nil {
		return claim.DeletionTimestamp.IsZero() && claim.Condition(karpv1.ConditionInitialized).IsTrue()
	}
	node := &corev1.Node{}
	if !apierrors.IsNotFound(err) || r.Client.Get(ctx, types.NamespacedName{Name: name}, node) != nil {
		return false
	}
	foreign := node.Labels[karpv1.LabelNodePool] == ""
	return node.DeletionTimestamp.IsZero() && karpv1.NodeReady(node) && (foreign || node.Labels[karpv1.LabelInitialized] == "true")
}
