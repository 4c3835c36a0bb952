package cloudtest

import (
	"testing"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// testNotDrifted calls providers that detect drift with a claim that has not drifted. The causes of drift are tested by
// each provider.
func testNotDrifted(t *testing.T, w World) {
	detector, detects := w.Provider(t).(cloud.DriftDetector)
	if !detects {
		t.Skip("the provider does not detect drift")
	}
	c := claim(w.Class)
	machine := launch(t, w.Provider(t), c)
	c.Status.ProviderID, c.Status.ImageID = machine.ProviderID, machine.ImageID
	for key, value := range machine.Labels {
		c.Labels[key] = value
	}
	c.Annotations = machine.Annotations
	pool := &karpv1.NodePool{}
	pool.Name, pool.Spec.Template.Spec.NodeClassRef = c.Labels[karpv1.LabelNodePool], c.Spec.NodeClassRef
	if reason, err := detector.Drifted(t.Context(), c, pool); reason != "" || err != nil {
		t.Errorf("Drifted of a machine that was just launched: %q, %v, want none", reason, err)
	}
	pool.Spec.Template.Spec.NodeClassRef.Name, c.Spec.NodeClassRef.Name = w.Missing.Name, w.Missing.Name
	if reason, err := detector.Drifted(t.Context(), c, pool); reason != "" || err == nil {
		t.Errorf("Drifted of a machine whose class is missing: %q, %v, want an error: it is unknown", reason, err)
	}
}
