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

// A cloud announces an interruption shortly before it reclaims a machine: EC2 two minutes before
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html). Replacement capacity
// for the pods is launched at once, and takes most of a minute to be ready. A pod that is evicted at once does not
// run during that time. A pod that stays until its new node is ready does. So a node with such a notice keeps its
// workloads for a while:
//
//	notice                                          deadline - reserve                       deadline
//	   |-- tainted; pods with a ready target are evicted --|-- all others are evicted ----------|
//	                          deadline - grace period - a quarter of the reserve --^ at the latest
//
// A pod without a target, or with an unknown one (after a restart, until the first plan is computed), stays for the
// same time: an earlier eviction has no benefit. The state is derived from the claim and the latest plan each time.

// holder returns a function that reports whether a pod should stay for now. It returns nil if the node has no notice,
// or its kubelet is silent.
func (r *Reconciler) holder(ctx context.Context, l *termination) func(*corev1.Pod) bool {
	onNotice := !l.deadline.IsZero() && l.deadline.Sub(l.node.DeletionTimestamp.Time) <= r.Timers.Notice
	if r.Destination == nil || !onNotice || !karpv1.NodeReady(l.node) {
		return nil
	}
	ready := map[string]bool{}
	return func(pod *corev1.Pod) bool {
		if !l.now.Before(leaveBy(pod, l.deadline, r.Timers.DrainReserve)) {
			return false
		}
		destination := r.Destination(pod.UID)
		if destination == "" {
			return true
		}
		is, known := ready[destination]
		if !known {
			is = r.open(ctx, destination)
			ready[destination] = is
		}
		return !is
	}
}

// leaveBy returns the latest time at which a pod is evicted. A pod with a grace period longer than the reserve is
// evicted earlier, before the drain deletes it.
func leaveBy(pod *corev1.Pod, deadline time.Time, reserve time.Duration) time.Time {
	return deadline.Add(-max(reserve, time.Duration(graceOf(pod))*time.Second+reserve/4))
}

// open reports whether pods can be bound now to the node of that name, or of the claim of that name. It returns false
// on read errors: the drain has a time limit.
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
