package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// TestRepair checks that a node that has been not ready for longer than kwok tolerates is replaced with its pod, but
// not while more than a fifth of the pool, rounded up, is unhealthy.
func TestRepair(t *testing.T) {
	s := onShared(t, "ill")
	s.scale("app", 3)
	await(t, patience, "the pods to run", s.running("app", 3))
	nodes := s.ledger.nodesOf("ill")
	if len(nodes) != 3 {
		t.Fatalf("%d nodes, want one per pod", len(nodes))
	}
	recovers, dies := nodes[0], nodes[1]
	s.reports(recovers.Name, corev1.ConditionFalse, 0) // counts, though it is tolerated
	s.reports(dies.Name, corev1.ConditionFalse, 20*time.Minute)
	await(t, patience, "the node to say that nothing is repaired", s.says(dies, "NodeRepairBlocked", "2 of 3"))
	if c := s.ledger.count("ill"); c.claims != 3 || c.claimsEver != 3 {
		t.Errorf("%d claims of %d are left, want all 3", c.claims, c.claimsEver)
	}
	s.reports(recovers.Name, corev1.ConditionTrue, 0)
	await(t, 2*patience, "the unhealthy node to be gone", func(context.Context) error {
		for _, node := range s.ledger.nodesOf("ill") {
			if node.UID == dies.UID {
				return fmt.Errorf("node %s is still there", node.Name)
			}
		}
		return nil
	})
	await(t, patience, "three pods to run on three nodes", s.running("app", 3))
	there := false
	for _, node := range s.ledger.nodesOf("ill") {
		there = there || node.UID == recovers.UID
	}
	if c := s.ledger.count("ill"); !there || c.claimsEver != 4 {
		t.Errorf("the recovered node exists: %t; %d claims ever, want the node and one more claim", there, c.claimsEver)
	}
}

// reports detaches the node from kwok and sets its condition Ready, with a transition time of since ago.
func (s *stage) reports(name string, ready corev1.ConditionStatus, since time.Duration) {
	s.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.patch(node, `{"metadata":{"annotations":{"kwok.x-k8s.io/node":null}}}`)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := s.Get(s.t.Context(), keyOf(node), node); err != nil {
			return err
		}
		for i := range node.Status.Conditions {
			if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
				c.Status, c.Reason, c.LastTransitionTime = ready, "Test", metav1.NewTime(time.Now().Add(-since))
			}
		}
		return s.Status().Update(s.t.Context(), node)
	})
	if err != nil {
		s.t.Fatalf("reporting for node %s: %v", name, err)
	}
}
