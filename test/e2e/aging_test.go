package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestClaimsAge checks that claims whose pool has another template are marked as drifted, and are kept, because the
// budget is 0. When they expire they are removed nevertheless, not before their time, and their pods get other nodes, of
// the new template.
func TestClaimsAge(t *testing.T) {
	s := onShared(t, "aging")
	s.scale("app", 2)
	await(t, patience, "the pods to run", s.running("app", 2))
	old := map[types.UID]bool{}
	for _, e := range s.ledger.claimsOf("aging") {
		old[e.object.UID] = true
	}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "aging"}}
	s.patch(pool, `{"spec":{"template":{"metadata":{"labels":{"example.org/generation":"2"}}}}}`)
	await(t, patience, "the claims to say that they have drifted", func(context.Context) error {
		for _, e := range s.ledger.claimsOf("aging") {
			drifted := e.object.DeepCopy().Condition(karpv1.ConditionDrifted)
			if old[e.object.UID] && (!drifted.IsTrue() || drifted.Reason != karpv1.ReasonNodePoolDrifted) {
				return fmt.Errorf("claim %s: %v", e.object.Name, drifted)
			}
		}
		return nil
	})
	await(t, 2*patience, "the pods to run on nodes of the new template", func(ctx context.Context) error {
		if err := s.running("app", 2)(ctx); err != nil {
			return err
		}
		for _, e := range s.ledger.claimsOf("aging") {
			if old[e.object.UID] && !e.gone {
				return fmt.Errorf("claim %s is still there", e.object.Name)
			}
		}
		return nil
	})
	for _, e := range s.ledger.claimsOf("aging") {
		if !old[e.object.UID] {
			c := e.object.DeepCopy().Condition(karpv1.ConditionDrifted)
			if e.object.Status.ProviderID != "" {
				if c.IsTrue() {
					t.Errorf("new claim %s has drifted: %v", e.object.Name, c)
				}
				if e.object.Labels["example.org/generation"] != "2" {
					t.Errorf("new claim %s has the labels %v, want those of the new template", e.object.Name, e.object.Labels)
				}
			}
			continue
		}
		if age := e.object.DeletionTimestamp.Sub(e.object.CreationTimestamp.Time); age < time.Minute {
			t.Errorf("claim %s was deleted %s after its creation, want a minute", e.object.Name, age)
		}
	}
}
