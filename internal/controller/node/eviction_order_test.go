package node

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestInTurn verifies that the largest pods, by the scarcer resource of their node, are first. Names order equal
// pods.
func TestInTurn(t *testing.T) {
	asks := func(cpu, memory string) option {
		return func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}}}
		}
	}
	pods := []corev1.Pod{pod("small", asks("100m", "1Gi")), pod("wide", asks("100m", "6Gi")), pod("b", asks("2", "1Gi")),
		pod("none"), pod("a", asks("2", "1Gi"))}
	node := &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")}}}
	var list []*corev1.Pod
	for i := range pods {
		list = append(list, &pods[i])
	}
	var got []string
	for _, p := range largestFirst(list, node) {
		got = append(got, p.Name)
	}
	if diff := cmp.Diff([]string{"wide", "a", "b", "small", "none"}, got); diff != "" {
		t.Errorf("the order of the drain (-want +got):\n%s", diff)
	}
}

// TestPace verifies that the first pod is evicted at once, and that the delay of the others is bounded.
func TestPace(t *testing.T) {
	for turn, want := range map[int]time.Duration{0: 0, 1: evictPace, 10: 10 * evictPace, 1000: evictTail} {
		if got := evictionDelay(turn); got != want {
			t.Errorf("pod %d is evicted after %s, want %s", turn, got, want)
		}
	}
}
