package state

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

// planned returns how many pods are planned for.
func planned(s *State, at time.Time) (count int) {
	for _, g := range s.Snapshot(at).Groups {
		count += len(g.Pods)
	}
	return count
}

// TestPodDelay verifies (PD-1) that a pod within its delay is not planned for, and never if it is bound meanwhile; and
// that the state says when the delay is over.
func TestPodDelay(t *testing.T) {
	s := newState(Config{Pods: convert.PodRules{Delay: 2 * time.Second}})
	s.Advance(start)
	see := func(pod *corev1.Pod, annotations map[string]string) {
		pod.CreationTimestamp, pod.Annotations = metav1.NewTime(start), annotations
		s.Saw(pod)
	}
	see(objecttest.Pod(t, "first", "u1", "1", ""), nil)
	see(objecttest.Pod(t, "first", "u1", "2", "n"), nil)
	see(objecttest.Pod(t, "later", "u2", "1", ""), map[string]string{karpv1.AnnotationPodScaleUpDelay: "1h"})
	see(objecttest.Pod(t, "late", "u3", "1", ""), nil)
	see(objecttest.Pod(t, "late", "u3", "3", ""), map[string]string{karpv1.AnnotationProvisionAfter: "1s"}) // less than that of all
	news := s.Drain()
	if at := start.Add(2 * time.Second); news.Changes&PodsPending != 0 || !news.Wake.Equal(at) {
		t.Errorf("the changes are %b and the next at %v, want no pending pod and %v", news.Changes, news.Wake, at)
	}
	s.Advance(start.Add(time.Second))
	if changed(s, PodsPending) {
		t.Error("a pod that waits counts as pending")
	}
	s.Advance(start.Add(2 * time.Second))
	news = s.Drain()
	if at := start.Add(time.Hour); news.Changes&PodsPending == 0 || !news.Wake.Equal(at) {
		t.Errorf("the changes are %b and the next at %v, want a pending pod and %v", news.Changes, news.Wake, at)
	}
	if n := planned(s, start.Add(2*time.Second)); n != 1 {
		t.Errorf("%d pods are planned for after the delay, want one: of the others one is bound, and one waits for longer", n)
	}
}

// TestExpendablePods verifies (EP-1) that pods with a priority below the cutoff are not planned for, and that on a node they
// need no other place; and that the virtual pods of buffers are never expendable.
func TestExpendablePods(t *testing.T) {
	cutoff := int32(-10)
	s := newState(Config{Pods: convert.PodRules{PriorityCutoff: &cutoff}})
	see := func(name string, priority *int32, node, owner string) {
		pod := objecttest.Pod(t, name, name, "1", node)
		pod.Spec.Priority = priority
		if owner != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: owner, UID: "o", Controller: new(bool)}}
		}
		s.Saw(pod)
	}
	low, lower := int32(-10), int32(-11)
	see("default", nil, "", "")
	see("low", &low, "", "")
	see("lower", &lower, "", "")
	see("room", &lower, "", "CapacityBuffer")
	if n := planned(s, start); n != 3 {
		t.Errorf("%d pods are planned for, want those from -10 on and that of the buffer", n)
	}
	s.Saw(objecttest.Node(t, "n", "n", "1", "id", ""))
	see("kept", &low, "n", "")
	see("left", &lower, "n", "")
	node := s.Snapshot(start).Node("n")
	if node == nil || len(node.Pods) != 2 || node.Reschedulable() != 1 {
		t.Fatalf("the node is %+v, want two pods, of which one needs another place", node)
	}
	if i := indexOf(node, "left"); node.Pods[i].Reschedulable || node.Pods[1-i].Priority != low {
		t.Errorf("pods are %+v, want that below the cutoff to need no other place", node.Pods)
	}
}

func indexOf(n *model.Node, pod string) int {
	for i, p := range n.Pods {
		if p.Name == pod {
			return i
		}
	}
	return 0
}
