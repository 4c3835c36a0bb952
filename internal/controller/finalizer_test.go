package controller_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// hold adds a finalizer to the pod that is never removed: the API server keeps the object after the pod has ended.
func hold(p *corev1.Pod) {
	p.Finalizers = []string{"example.com/never"}
}

// testFinalizerWithoutDeadline verifies that pods with finalizers that are never removed block a node without a
// deadline for at most PodStuck after their end, and that their objects stay.
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
		t.Errorf("the pod's finalizers are %v, want them unchanged", pod.Finalizers)
	}
}

// testFinalizerOfEndedPod verifies that a drain does not wait for a pod that has ended, although a finalizer keeps
// its object: the kubelet sets the phase first.
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

// testFinalizerAtDeadline verifies that a node with a deadline is removed soon after it. Eviction is refused until
// then, and the finalizer keeps the pod longer.
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
		t.Error("the pod was removed despite its finalizer")
	}
	if machines, _ := w.cloud.count(); machines != 0 {
		t.Errorf("%d machines remain", machines)
	}
}

// testTerminationRefused verifies that a claim whose machine cannot be terminated reports it, whether its node has
// joined or not. The condition is written once however often the cloud refuses, and the claim is removed when the
// cloud allows it.
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
			t.Errorf("claim %s is written at each refusal of the cloud", claim.Name)
		}
	}
	refuse(nil)
	w.gone(joined)
	w.gone(alone)
}

// testTerminationWaits verifies that a claim in a zone that is avoided shows why its machine is kept, without an event
// of a failure, and is removed when the zone is used again.
func testTerminationWaits(t *testing.T, s *apiServer) {
	w := in(t, s)
	keep := func(err error) {
		w.cloud.mu.Lock()
		defer w.cloud.mu.Unlock()
		w.cloud.keeps = err
	}
	keep(&cloud.TerminateError{Reason: cloud.ReasonZoneShifted, Err: errors.New("the zone is avoided")})
	w.start()
	joined, _ := w.running("joined-shifted")
	alone := newClaim("alone-shifted")
	w.create(alone)
	w.launched(alone)
	for _, claim := range []*karpv1.NodeClaim{joined, alone} {
		w.remove(claim)
		w.untilCondition(claim, karpv1.ConditionInstanceTerminating, "Unknown", cloud.ReasonZoneShifted)
		asked := func() int {
			w.cloud.mu.Lock()
			defer w.cloud.mu.Unlock()
			return w.cloud.asked[claim.Status.ProviderID]
		}
		before := asked()
		w.until("the cloud is asked again", func() bool { return asked() > before+2 })
	}
	for _, event := range w.said() {
		if strings.Contains(event, "TerminationFailed") {
			t.Errorf("event %q, want none during a shift", event)
		}
	}
	keep(nil)
	w.gone(joined)
	w.gone(alone)
}
