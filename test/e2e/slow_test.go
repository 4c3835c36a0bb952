package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPodsMadeAgainLate recreates evicted pods late, like a starved controller manager. The node that was launched
// for them is kept while it is empty and nothing else protects it, and the pods run there: no other node is launched.
func TestPodsMadeAgainLate(t *testing.T) {
	t.Parallel()
	s := newStage(t, ownCluster(t), "slow")
	// The last flag --timers takes effect.
	s.runController(t, filepath.Join(artifacts, "slow.log"), quickTimers[0]+",arrival=1h")
	s.bare("first", 7)
	await(t, patience, "the pods to run", s.running("app", 7))
	for _, pod := range s.pods("app")[:4] {
		s.remove(pod)
	}
	await(t, patience, "a smaller node, without pods, to be left", func(ctx context.Context) error {
		if pods := s.ledger.podsOf(s.name); len(pods) > 0 {
			return fmt.Errorf("%d pods are there", len(pods))
		}
		return s.nodesReady(1)(ctx)
	})
	await(t, patience, "the node to be kept because pods were sent to it", func(context.Context) error {
		if kept := s.metric(`karpenter_voluntary_disruption_kept_nodes{code="NodeExpecting",nodepool="slow",reason="empty"}`); kept != "1" {
			return fmt.Errorf("%q nodes are kept for that", kept)
		}
		return nil
	})
	s.bare("again", 3)
	await(t, patience, "the pods to run again", s.running("app", 3))
	if c := s.ledger.count(s.name); c.claimsEver != 2 || c.nodes != 1 {
		t.Errorf("%d nodes were launched, and %d exist: want the large one, then the small one", c.claimsEver, c.nodes)
	}
	for _, pod := range s.pods("app") {
		s.remove(pod)
	}
	await(t, patience, "the node to leave when they have come and gone", s.empty)
}

// bare creates pods without an owner.
func (s *stage) bare(name string, n int) {
	s.t.Helper()
	for i := range n {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: fmt.Sprintf("%s-%d", name, i), Labels: map[string]string{"app": "app"}}}
		pod.Spec.NodeSelector = map[string]string{caseLabel: s.name}
		pod.Spec.TerminationGracePeriodSeconds = new(int64(0))
		requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("256Mi")}
		pod.Spec.Containers = []corev1.Container{{Name: "pause", Image: "pause:3.10", Resources: corev1.ResourceRequirements{Requests: requests}}}
		s.create(pod)
	}
}
