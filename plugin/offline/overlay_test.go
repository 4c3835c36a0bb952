package offline

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestSimulateOverlays checks that an overlay in a file changes the plan, and that the answer says by how much.
func TestSimulateOverlays(t *testing.T) {
	overlays := `apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: discount}
spec: {requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [large]}], priceAdjustment: "-90%"}
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: misspelled}
spec: {requirements: [{key: example.com/famly, operator: In, values: [s]}], price: "0"}
`
	folder := files(t, map[string]string{"instance-types.json": typesJSON, "world.yaml": poolYAML, "web.yaml": webYAML, "overlay.yaml": overlays})
	policy := DefaultPolicy()
	source := Source{Paths: []string{folder}, Cluster: &Cluster{}, Now: time.Unix(1, 0)}
	w, err := source.Read(t.Context(), policy)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Problems) > 0 {
		t.Fatal(w.Problems)
	}
	a := w.Decide(&policy, 1).Answer()
	if len(a.Nodes) != 1 || a.Nodes[0].InstanceType != "large" || a.Nodes[0].PricePerHour != 0.05 {
		t.Errorf("nodes are %+v, want one large node at 0.05", a.Nodes)
	}
	if o := a.WithoutOverlays; o == nil || o.Nodes != 1 || o.PricePerHour != 0.1 {
		t.Errorf("the plan without overlays is %+v, want one node at 0.1", o)
	}
	details, err := w.ExplainOverlay("discount")
	if err != nil {
		t.Fatal(err)
	}
	want := []OverlayChange{{NodePool: "default", InstanceType: "large", Offering: "large/a/on-demand", RawPrice: 0.5, Price: 0.05}}
	if diff := cmp.Diff(want, details.Changes, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if _, err := w.ExplainOverlay("discont"); err == nil || !strings.Contains(err.Error(), "discount") {
		t.Errorf("of a name that is not there: %v, want a proposal", err)
	}
	text := a.Text(0)
	for _, want := range []string{
		"overlay discount: price of 1 offerings of 1 types, capacity of 0 types, in 1 of 1 pools\n",
		"overlay misspelled: applies to nothing: no instance type of 1 pools matches\n",
		"without NodeOverlays: 1 new node, 0 unschedulable, price 0.1000 USD per hour; with them -0.0500\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}
