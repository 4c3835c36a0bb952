package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lightFleet has three nodes with a pod each, whose pods fit on one, and a pod that forbids its eviction on the first.
const lightFleet = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  disruption: {consolidateAfter: 0s, budgets: [{nodes: "1"}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
`

func lightNode(name, annotation string) string {
	return `---
apiVersion: v1
kind: Node
metadata:
  name: ` + name + `
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {kubernetes.io/hostname: ` + name + `, karpenter.sh/nodepool: default, karpenter.sh/capacity-type: on-demand,
    node.kubernetes.io/instance-type: c-4x-amd64-linux, topology.kubernetes.io/zone: test-zone-a, kubernetes.io/arch: amd64, kubernetes.io/os: linux}
status:
  allocatable: {cpu: 3900m, memory: 7Gi, pods: 110}
  capacity: {cpu: 4, memory: 8Gi, pods: 110}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: v1
kind: Pod
metadata:
  name: web-` + name + `
  namespace: default
  annotations: {` + annotation + `}
  creationTimestamp: "2026-01-01T00:00:00Z"
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}]
spec: {nodeName: ` + name + `, containers: [{name: c, image: i, resources: {requests: {cpu: 500m, memory: 100Mi}}}]}
status: {phase: Running}
`
}

func overviewOf(t *testing.T, text string) *Overview {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	policy := DefaultPolicy()
	source := Source{Paths: []string{path}, Cluster: &Cluster{}}
	w, err := source.Read(t.Context(), policy)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range w.Problems {
		t.Fatal(problem)
	}
	return w.Overview(&policy)
}

// TestWhatIf checks that both plans of a what-if remove nodes until no step is left, as --until-stable does, and so does the
// plan of the page.
func TestWhatIf(t *testing.T) {
	fleet := lightFleet + lightNode("a", `karpenter.sh/do-not-disrupt: "true"`) + lightNode("b", "") + lightNode("c", "")
	o := overviewOf(t, fleet)
	plan, err := o.Plan(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Steps) != 2 || plan.After.Nodes != 1 {
		t.Errorf("the plan has %d steps and ends with %d nodes, want 2 and 1", len(plan.Steps), plan.After.Nodes)
	}
	w, err := o.WhatIf(t.Context(), &Change{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if w.Without.After.Nodes != 1 || w.With.After.Nodes != 1 {
		t.Errorf("the fleets end with %d and %d nodes, want 1 each", w.Without.After.Nodes, w.With.After.Nodes)
	}
	w, err = o.WhatIf(t.Context(), &Change{unprotected: map[string]bool{"default/web-a": true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if w.With.After.Price >= w.Without.After.Price {
		t.Errorf("without the annotation, the fleet ends at %.4f USD per hour, with it at %.4f", w.With.After.Price, w.Without.After.Price)
	}
}

// TestPoolManifests checks that the manifest of a pool is whole, whatever its labels are called, and changes nothing.
func TestPoolManifests(t *testing.T) {
	const labels = "    metadata: {labels: {lifecycle-status: old, status: new}, annotations: {a: 'status: text'}}\n    spec:\n"
	o := overviewOf(t, strings.Replace(lightFleet, "    spec:\n", labels, 1)+lightNode("a", ""))
	manifest := o.Pools()["default"]
	if strings.Contains(manifest, "\nstatus:") {
		t.Errorf("the manifest has a status:\n%s", manifest)
	}
	changed, err := o.w.With(&Change{Pool: manifest})
	if err != nil {
		t.Fatalf("%v in\n%s", err, manifest)
	}
	if diff := cmp.Diff(o.w.pools[0].object.Spec, changed.pools[0].object.Spec); diff != "" {
		t.Errorf("the manifest changes the pool (-was +is):\n%s", diff)
	}
	if _, err := o.w.With(&Change{Pool: manifest + "kind: NodePool\n"}); err == nil || !strings.Contains(err.Error(), "already set") {
		t.Errorf("a field that is written twice: %v, want an error", err)
	}
}
