package controller_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
)

// hold puts a finalizer on the pod that nothing takes off: the API keeps it after its end.
func hold(p *corev1.Pod) {
	p.Finalizers = []string{"example.com/never"}
}

// Pods whose finalizers nothing takes off do not hold a node without a deadline for longer than PodStuck after they were to
// end, and their objects stay.
func testFinalizerWithoutDeadline(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.timers.PodStuck = time.Second
	w.start()
	claim, node := w.running("held")
	pod := w.pod("held", node, hold)
	w.remove(claim)
	w.until("the pod is asked to leave", func() bool { return w.read(pod) && !pod.DeletionTimestamp.IsZero() })
	w.gone(node)
	w.gone(claim)
	if !w.read(pod) || len(pod.Finalizers) != 1 {
		t.Errorf("the pod's finalizers are %v: they are not ours to take off", pod.Finalizers)
	}
}

// A pod that has ended is not waited for, though its finalizer keeps the object: the kubelet sets the phase first.
func testFinalizerOfEndedPod(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.timers.PodStuck = time.Hour
	w.start()
	claim, node := w.running("ended")
	pod := w.pod("ended", node, hold)
	w.remove(claim)
	w.until("the pod is asked to leave", func() bool { return w.read(pod) && !pod.DeletionTimestamp.IsZero() })
	w.until("the kubelet says that it has ended", func() bool {
		w.read(pod)
		pod.Status.Phase = corev1.PodSucceeded
		return w.client.Status().Update(t.Context(), pod) == nil
	})
	w.gone(node)
	w.gone(claim)
}

// With a deadline the node goes soon after it: eviction is refused until then, and the finalizer keeps the pod beyond it.
func testFinalizerAtDeadline(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.timers.PodStuck = time.Second
	w.start()
	w.budget("held-until")
	claim, node := w.bounded("held-until", 4*time.Second)
	pod := w.pod("held-until", node, hold)
	w.remove(claim)
	w.until("the deadline is noted", func() bool { return !w.read(claim) || claim.Annotations[karpv1.AnnotationTerminationTimestamp] != "" })
	w.gone(node)
	w.gone(claim)
	if !w.read(pod) {
		t.Error("the pod went without its finalizer's leave")
	}
	if machines, _ := w.cloud.count(); machines != 0 {
		t.Errorf("%d machines left", machines)
	}
}

// A claim whose machine may not be terminated says so, whether its node had joined or not, writes it once however often the cloud
// refuses, and goes when the cloud allows it.
func testTerminationRefused(t *testing.T, s *apiServer) {
	w := in(t, s)
	refuse := func(err error) {
		w.cloud.mu.Lock()
		defer w.cloud.mu.Unlock()
		w.cloud.keeps = err
	}
	refuse(&cloud.TerminateError{Reason: "Unauthorized", Err: errors.New("not allowed")})
	w.start()
	joined, _ := w.running("joined")
	alone := newClaim("alone")
	w.create(alone)
	w.launched(alone)
	for _, claim := range []*karpv1.NodeClaim{joined, alone} {
		w.remove(claim)
		w.untilCondition(claim, karpv1.ConditionInstanceTerminating, "Unknown", "Unauthorized")
		version := claim.ResourceVersion
		w.untilSaid("TerminationFailed Machine " + claim.Status.ProviderID + " is not terminated (Unauthorized)")
		asked := func() int {
			w.cloud.mu.Lock()
			defer w.cloud.mu.Unlock()
			return w.cloud.asked[claim.Status.ProviderID]
		}
		before := asked()
		w.until("the cloud is asked again", func() bool { return asked() > before+3 })
		if w.read(claim); claim.ResourceVersion != version {
			t.Errorf("claim %s is written each time the cloud refuses", claim.Name)
		}
	}
	refuse(nil)
	w.gone(joined)
	w.gone(alone)
}
