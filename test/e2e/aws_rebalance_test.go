package e2e

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// testAWSRebalance sends a rebalance recommendation for one of three spot machines. The pool asks for replacements: the
// node is replaced like one that has drifted, by another offering; the other nodes stay.
func testAWSRebalance(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-rebalance")
	s.require(among(karpv1.LabelCapacityType, karpv1.CapacityTypeSpot), among("karpenter.k8s.aws/instance-cpu", "2"),
		among("karpenter.k8s.aws/instance-category", "c", "m"))
	s.patch(&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`,
		karpv1.AnnotationRebalance, karpv1.RebalanceReplace))
	s.scale("app", 3)
	await(t, patience, "all pods to run", s.running("app", 3))
	s.boughtOnce()
	fleet := s.instances()
	if len(fleet) < 2 {
		t.Fatalf("the fleet is of %d instances, want 2 at least", len(fleet))
	}
	risky := fleet[0]
	if err := w.sim.Rebalance(risky.ID); err != nil {
		t.Fatal(err)
	}
	taken := map[string]bool{"aws:///" + risky.Zone + "/" + risky.ID: true}
	await(t, patience, "a replacement to be there", func(context.Context) error {
		return s.replaced(taken, len(fleet))
	})
	await(t, patience, "the instance to be gone and all pods to run", func(ctx context.Context) error {
		for _, i := range s.instances() {
			if i.ID == risky.ID {
				return fmt.Errorf("instance %s still runs", i.ID)
			}
		}
		return s.running("app", 3)(ctx)
	})
	left := map[string]bool{}
	for _, i := range s.instances() {
		left[i.ID] = true
		if known := i.ID == fleet[1].ID || len(fleet) > 2 && i.ID == fleet[2].ID; !known && i.Type == risky.Type && i.Zone == risky.Zone {
			t.Errorf("the replacement %s has the offering that is avoided, %s in %s", i.ID, i.Type, i.Zone)
		}
	}
	for _, i := range fleet[1:] {
		if !left[i.ID] {
			t.Errorf("instance %s, without a recommendation, is gone", i.ID)
		}
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}
