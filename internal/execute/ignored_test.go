package execute

import (
	"testing"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestTemplateAnnotations verifies that annotations that the controller writes on claims are not copied from the
// template, and that others are.
func TestTemplateAnnotations(t *testing.T) {
	pool := &karpv1.NodePool{}
	pool.Spec.Template.ObjectMeta.Annotations = map[string]string{
		karpv1.AnnotationTerminationTimestamp: "2026-01-01T00:00:00Z", karpv1.AnnotationExpecting: "x", karpv1.AnnotationRepair: "Ready",
		karpv1.AnnotationPods: "u1", karpv1.AnnotationCommand: "{}", karpv1.AnnotationDoNotDisrupt: "true", "example.org/team": "a",
	}
	claim := (&Executor{}).claimOf(pool, &plan.NewClaim{Name: "c"})
	for key := range claim.Annotations {
		if karpv1.WrittenOnClaims(key) {
			t.Errorf("annotation %s is copied from the template", key)
		}
	}
	if claim.Annotations[karpv1.AnnotationDoNotDisrupt] != "true" || claim.Annotations["example.org/team"] != "a" {
		t.Errorf("annotations of the user are lost: %v", claim.Annotations)
	}
}

// TestOverlayAnnotations checks that a claim says which overlays its types have, and never takes that from its pool.
func TestOverlayAnnotations(t *testing.T) {
	for _, c := range []struct{ price, capacity bool }{{false, false}, {true, false}, {false, true}} {
		pool := &karpv1.NodePool{}
		pool.Spec.Template.ObjectMeta.Annotations = map[string]string{karpv1.AnnotationPriceOverlayApplied: "true"}
		x := &Executor{Overlays: func(*karpv1.NodeClaim) (bool, bool) { return c.price, c.capacity }}
		claim := x.claimOf(pool, &plan.NewClaim{Name: "c"})
		x.annotateOverlays(claim)
		price, capacity := claim.Annotations[karpv1.AnnotationPriceOverlayApplied], claim.Annotations[karpv1.AnnotationCapacityOverlayApplied]
		if (price == "true") != c.price || (capacity == "true") != c.capacity {
			t.Errorf("annotations are %q and %q, want %t and %t", price, capacity, c.price, c.capacity)
		}
	}
}
