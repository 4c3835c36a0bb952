package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud/kwok"
)

// TestRollingUpdate runs a rolling update of 200 replicas, which launches nodes for a surge of 50 that are not needed
// afterwards. Nodes that were launched for pods are consolidated once consolidateAfter has passed, nodes that a
// consolidation launched only after the minimum stay. In the end the fleet costs no more than before.
func TestRollingUpdate(t *testing.T) {
	const replicas, stay = 200, 30 * time.Second
	s := onShared(t, "rolling")
	s.scale("app", replicas)
	await(t, 2*patience, "the pods to run", s.running("app", replicas))
	before := s.price()
	await(t, stay+patience, "what is there to be older than the minimum stay", func(context.Context) error {
		for _, e := range s.ledger.claimsOf("rolling") {
			if age := time.Since(e.object.CreationTimestamp.Time); !e.gone && age < stay+5*time.Second {
				return fmt.Errorf("claim %s is %s old", e.object.Name, age)
			}
		}
		return nil
	})
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "rolling", Name: "app"}}
	s.patch(deployment, `{"spec":{"template":{"metadata":{"annotations":{"update":"1"}}}}}`)
	await(t, 2*patience, "the update to be over", func(ctx context.Context) error {
		if err := s.Get(ctx, keyOf(deployment), deployment); err != nil {
			return err
		}
		if d := deployment.Status; d.ObservedGeneration != deployment.Generation || d.UpdatedReplicas != replicas || d.Replicas != replicas {
			return fmt.Errorf("%d of %d replicas are updated", d.UpdatedReplicas, d.Replicas)
		}
		return s.running("app", replicas)(ctx)
	})
	await(t, stay+patience, "the fleet to be as cheap as before", func(ctx context.Context) error {
		if now := s.price(); now > before*1.05 {
			return fmt.Errorf("it costs %.4f USD per hour, and did cost %.4f", now, before)
		}
		if err := s.running("app", replicas)(ctx); err != nil {
			return err
		}
		return s.settled(ctx)
	})
	for _, e := range s.ledger.claimsOf("rolling") {
		if reasonOf(e.object) != "Underutilized" || e.object.Annotations[karpv1.AnnotationBoughtBy] != "underutilized" {
			continue
		}
		if age := e.object.DeletionTimestamp.Sub(e.object.CreationTimestamp.Time); age < stay {
			t.Errorf("claim %s, which a consolidation launched, was consolidated after %s, want %s or more", e.object.Name, age, stay)
		}
	}
}

// price returns the price of the nodes of the case in USD per hour.
func (s *stage) price() float64 {
	sum := 0.0
	for _, n := range s.ledger.nodesOf(s.name) {
		sum += s.priceOf(n)
	}
	return sum
}

// priceOf returns the price of a node of kwok's built-in types, USD per hour.
func (s *stage) priceOf(n *corev1.Node) float64 {
	all, _ := kwok.EmbeddedTypes()
	for i := range all {
		if all[i].Name != n.Labels[corev1.LabelInstanceTypeStable] {
			continue
		}
		for _, o := range all[i].Offerings {
			if o.Zone == n.Labels[corev1.LabelTopologyZone] && o.CapacityType == n.Labels[karpv1.LabelCapacityType] {
				return o.Price
			}
		}
	}
	s.t.Errorf("node %s has no offering that kwok knows: %v", n.Name, n.Labels)
	return 0
}
