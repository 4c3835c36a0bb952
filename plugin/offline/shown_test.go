package offline

import (
	"fmt"
	"strings"
	"testing"
)

const featureYAML = `---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: feature, namespace: system}
spec:
  selector: {matchLabels: {app: feature}}
  template:
    metadata: {labels: {app: feature}}
    spec:
      nodeSelector: {feature.example.org/present: "true"}
      containers: [{name: c, image: i, resources: {requests: {cpu: 700m}}}]
`

// TestExplainShownLabels: the pool and the node say which DaemonSet is expected on new nodes because of a label that
// existing nodes have.
func TestExplainShownLabels(t *testing.T) {
	labeled := strings.NewReplacer("labels: {kubernetes.io/hostname", `labels: {feature.example.org/present: "true", kubernetes.io/hostname`)
	folder := files(t, map[string]string{"fleet.yaml": lightFleet + labeled.Replace(lightNode("a", "")) + featureYAML})
	policy := DefaultPolicy()
	source := Source{Paths: []string{folder}, Cluster: &Cluster{}}
	read := func() *Manifests {
		w, err := source.Read(t.Context(), policy)
		if err != nil || len(w.Problems) > 0 {
			t.Fatal(err, w.Problems)
		}
		return w
	}
	pool, err := read().ExplainPool(&policy, "default")
	if err != nil {
		t.Fatal(err)
	}
	if len(pool.Assumed) != 1 {
		t.Fatalf("assumed: %+v", pool.Assumed)
	}
	of := pool.Assumed[0].OfTypes
	types := fmt.Sprintf(" of %d of %d instance types", pool.Assumed[0].Types, of)
	if pool.Assumed[0].Types == of {
		types = ""
	}
	want := "are assumed to get feature.example.org/present=true, as existing ones did: DaemonSet system/feature takes room there (700m " +
		"of cpu)"
	if text := pool.Text(); !strings.Contains(text, "  new nodes"+types+" "+want) {
		t.Errorf("the pool says:\n%s", text)
	}
	node, err := read().ExplainNode(&policy, "a")
	if err != nil {
		t.Fatal(err)
	}
	if text := node.Text(); !strings.Contains(text, "  new nodes of this type "+want) {
		t.Errorf("the node says:\n%s", text)
	}
}
