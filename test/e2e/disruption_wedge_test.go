package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestNothingIsWedged creates one broken object of each kind at the same time. Everything else continues: pods get
// nodes, nodes are consolidated, empty ones are removed. Broken objects are reported once.
func TestNothingIsWedged(t *testing.T) {
	s := onShared(t, "wedge")
	t.Cleanup(s.removeBroken)
	s.scale("app", 12)
	await(t, patience, "the pods to run", s.running("app", 12))
	nodes := s.work()
	if len(nodes) != 4 {
		t.Errorf("twelve pods are on %d nodes, want 4", len(nodes))
	}
	twin := s.ledger.nodesOf("wedge")[0]
	double := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "wedge-double", Labels: map[string]string{"e2e.example.org/broken": "wedge"}},
		Spec: corev1.NodeSpec{ProviderID: twin.Spec.ProviderID}}
	s.create(double)
	await(t, patience, "the second node of a machine to be told that it is set aside", s.says(double, "SetAside", "providerID", twin.Name))
	s.scale("app", 4)
	await(t, patience, "the pods to be on two nodes", func(ctx context.Context) error {
		if err := s.running("app", 4)(ctx); err != nil {
			return err
		}
		if on := s.work(); len(on) != 2 {
			return fmt.Errorf("they are on %d nodes", len(on))
		}
		return nil
	})
	for _, broken := range []struct{ pool, word string }{{"wedge-annotation", "payback"}, {"wedge-class", "absent"}} {
		await(t, patience, "pool "+broken.pool+" to say what is wrong", s.poolSays(broken.pool, broken.word))
	}
	pod := &corev1.Pod{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "wedge", Name: "lost"}, pod); err != nil {
		t.Fatal(err)
	}
	await(t, patience, "the pod to be told of its volume", s.says(pod, "FailedScheduling", "absent"))
	s.scale("app", 0)
	await(t, patience, "the nodes to leave", func(context.Context) error {
		for _, e := range s.ledger.claimsOf("wedge") {
			if !e.gone && e.object.Labels[karpv1.LabelNodePool] == "wedge" {
				return fmt.Errorf("claim %s is there", e.object.Name)
			}
		}
		return nil
	})
	for _, name := range []string{"wedge-twin-a", "wedge-type"} {
		if err := s.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Node{}); err != nil {
			t.Errorf("node %s, which belongs to no pool, was changed: %v", name, err)
		}
	}
	log, err := os.ReadFile(s.controller.log)
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "panic") {
			t.Errorf("the controller panicked: %s", line)
		}
		if strings.Contains(line, "an object is set aside") && strings.Contains(line, double.Name) {
			named++
		}
	}
	if named != 1 {
		t.Errorf("the log names node %s %d times as set aside, want once", double.Name, named)
	}
}

// work returns the nodes that pods of the case run on.
func (s *stage) work() map[string]bool {
	on := map[string]bool{}
	for _, pod := range s.pods("app") {
		on[pod.Spec.NodeName] = true
	}
	return on
}

// poolSays fails until a condition of the pool is false and contains the word.
func (s *stage) poolSays(name, word string) func(context.Context) error {
	return func(ctx context.Context) error {
		pool := &karpv1.NodePool{}
		if err := s.Get(ctx, client.ObjectKey{Name: name}, pool); err != nil {
			return err
		}
		for _, c := range pool.Status.Conditions {
			if c.Status == metav1.ConditionFalse && strings.Contains(c.Message, word) {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", pool.Status.Conditions)
	}
}

// removeBroken removes the objects that belong to no pool.
func (s *stage) removeBroken() {
	ctx := context.Background()
	if err := s.DeleteAllOf(ctx, &corev1.Node{}, client.MatchingLabels{"e2e.example.org/broken": "wedge"}); err != nil {
		s.t.Errorf("removing broken nodes: %v", err)
	}
}
