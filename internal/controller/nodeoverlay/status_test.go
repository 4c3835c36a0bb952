package nodeoverlay_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cluster/overlay"
	"github.com/karpenter-go/karpenter/internal/controller/nodeoverlay"
)

func TestConditioned(t *testing.T) {
	object := &karpv1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 3}}
	for _, c := range []struct {
		report                overlay.Report
		status                metav1.ConditionStatus
		reason, message, root string
	}{
		{overlay.Report{Name: "a", Message: "applies to nothing"}, "True", "ValidationSucceeded", "applies to nothing", ""},
		{overlay.Report{Name: "a", Reason: "Conflict", Message: `conflicts with "b"`}, "False", "Conflict", `conflicts with "b"`,
			`ValidationSucceeded=False: conflicts with "b"`},
	} {
		changed := nodeoverlay.Conditioned(object, c.report)
		got := changed.StatusConditions().Get(karpv1alpha1.ConditionValidationSucceeded)
		if got.Status != c.status || got.Reason != c.reason || got.Message != c.message || got.ObservedGeneration != 3 {
			t.Errorf("condition is %+v, want %s %s %q of generation 3", got, c.status, c.reason, c.message)
		}
		if ready := changed.StatusConditions().Root(); ready.Status != c.status || ready.Message != c.root {
			t.Errorf("Ready is %s %q, want %s %q", ready.Status, ready.Message, c.status, c.root)
		}
	}
	if len(object.Status.Conditions) > 0 {
		t.Error("the given object is modified")
	}
}
