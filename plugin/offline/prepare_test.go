package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const poolYAML = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
`

const webYAML = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: web, resources: {requests: {cpu: 500m}, limits: {cpu: 1, memory: 1Gi}}}
`

const typesJSON = `{"instanceTypes": [
 {"name": "small", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "2", "memory": "4Gi", "pods": "20"}, "overhead": {"cpu": "100m"},
  "labels": {"example.com/family": "s"}, "offerings": [{"zone": "a", "capacityType": "on-demand", "price": 0.1, "available": true}]},
 {"name": "large", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "8", "memory": "16Gi", "pods": "50"}, "overhead": {"cpu": "100m"},
  "offerings": [{"zone": "a", "capacityType": "on-demand", "price": 0.5, "available": true}]}]}`

// files writes files into a new folder and returns it.
func files(t *testing.T, texts map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestSimulateCompletesObjects checks that defaults of the CRDs are set, that a node with a pool's label belongs to
// that pool, and that its claim may be in the files too.
func TestSimulateCompletesObjects(t *testing.T) {
	node := func(name string) string {
		return "---\napiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", labels: {kubernetes.io/hostname: " + name + ", karpenter.sh/nodepool: default}}\n" +
			"status: {capacity: {cpu: 2, memory: 4Gi, pods: 20}, allocatable: {cpu: 1, memory: 4Gi, pods: 20}}\n"
	}
	folder := files(t, map[string]string{"instance-types.json": typesJSON, "web.yaml": webYAML,
		"world.yaml": strings.Replace(poolYAML, "spec:\n", "spec:\n  limits: {cpu: 4}\n", 1) + node("a") + node("b")})
	o, err := newManifests()
	if err != nil {
		t.Fatal(err)
	}
	o.readPath(folder, nil)
	if err := o.typesOn(""); err != nil {
		t.Fatal(err)
	}
	err = o.complete(time.Time{}, Policy{})
	if err != nil || len(o.Problems) > 0 {
		t.Fatal(err, o.Problems)
	}
	pool := o.pools[0].object.Spec
	switch {
	case pool.Disruption.ConsolidateAfter.IsNever():
		t.Error("the pool never consolidates, want the default")
	case len(pool.Disruption.Budgets) != 1:
		t.Errorf("the pool has the budgets %+v, want the default one", pool.Disruption.Budgets)
	case pool.Template.Spec.ExpireAfter.Duration == nil:
		t.Error("nodes of the pool never expire, want the default")
	}
	d := o.Decide(&Policy{Preferences: "Respect", MinValues: "Strict"}, 1)
	a := d.Answer()
	// Two nodes of 2 CPUs use up the limit. Each has room for two pods.
	if a.Pods.Existing != 3 || a.Pods.New != 0 {
		t.Errorf("%d pods on existing nodes and %d on new ones, want 3 and 0", a.Pods.Existing, a.Pods.New)
	}
	if d.snap.Claim("a") == nil {
		t.Error("the snapshot has no claim a")
	}
	if n := d.snap.Ledger.Nodes(d.snap.Ledger.Own("default")[0]).Used; n != 2 {
		t.Errorf("the pool has %d nodes, want 2", n)
	}
}
