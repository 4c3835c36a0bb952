package cloudtest

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/cloud"
)

// testNotDrifted asks providers that detect drift. What makes a machine drift is theirs to test.
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
	if reason, err := detector.Drifted(t.Context(), c); reason != "" || err != nil {
		t.Errorf("Drifted of a machine that was just launched: %q, %v, want none", reason, err)
	}
	c.Spec.NodeClassRef.Name = w.Missing.Name
	if reason, err := detector.Drifted(t.Context(), c); reason != "" || err == nil {
		t.Errorf("Drifted of a machine whose class is missing: %q, %v, want an error: nobody can tell", reason, err)
	}
}
