package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

// TestDepartures checks that the state reports pods that ended or are preempted on a node to which it knew them to be
// bound.
func TestDepartures(t *testing.T) {
	s := newState(Config{})
	with := func(pod *corev1.Pod, status corev1.PodStatus) *corev1.Pod {
		pod.Status = status
		return pod
	}
	preempted := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}}}
	s.Saw(objecttest.Pod(t, "a", "a", "1", "n"))
	s.Saw(objecttest.Pod(t, "b", "b", "2", "n"))
	s.Saw(objecttest.Pod(t, "c", "c", "3", "n"))
	s.Saw(with(objecttest.Pod(t, "old", "old", "4", "n"), corev1.PodStatus{Phase: corev1.PodSucceeded}))
	s.Saw(with(objecttest.Pod(t, "a", "a", "5", "n"), corev1.PodStatus{Phase: corev1.PodSucceeded}))
	s.Saw(with(objecttest.Pod(t, "b", "b", "6", "n"), preempted))
	lost(s, objecttest.Pod(t, "c", "c", "7", "n"))
	var got []string
	for _, pod := range s.Drain().Departed {
		got = append(got, pod.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
		t.Errorf("reported pods (-want +got):\n%s", diff)
	}
}
