package state

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

// TestRemovals checks that the state reports nodes of claims once when their removal begins, as they were before.
func TestRemovals(t *testing.T) {
	s := newState(Config{})
	claim := objecttest.Claim(t, "c", "1", "1", "id-1", "")
	s.Saw(claim)
	s.Saw(objecttest.Claim(t, "other", "2", "2", "id-2", ""))
	s.Saw(objecttest.Node(t, "n", "3", "3", "id-1", objecttest.Registered))
	s.Saw(objecttest.Node(t, "foreign", "4", "4", "", ""))
	deleted := claim.DeepCopy()
	deleted.ResourceVersion, deleted.DeletionTimestamp = "5", &metav1.Time{Time: start}
	s.Saw(deleted)
	lost(s, deleted)
	lost(s, objecttest.Node(t, "n", "3", "6", "id-1", objecttest.Registered))
	lost(s, objecttest.Node(t, "foreign", "4", "7", "", ""))
	lost(s, objecttest.Claim(t, "other", "2", "8", "id-2", ""))
	var got []string
	for _, n := range s.Drain().Removed {
		got = append(got, fmt.Sprint(n.Claim, " ", n.Name, " ", n.Stage, " ", n.Deleting))
	}
	if diff := cmp.Diff([]string{"c n registered false", "other other launched false"}, got); diff != "" {
		t.Errorf("reported nodes (-want +got):\n%s", diff)
	}
}

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
