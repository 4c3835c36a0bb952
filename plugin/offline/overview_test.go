package offline

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/plugin/review"
	"github.com/karpenter-go/karpenter/plugin/web/view"
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
	same, err := o.w.With(&Change{Pools: "# mine\n" + manifest + "---\n"})
	if err != nil || same.pools[0].object != o.w.pools[0].object {
		t.Fatalf("the pool is another one, %v, with\n%s", err, manifest)
	}
	changed, err := o.w.With(&Change{Pools: strings.Replace(manifest, `nodes: "1"`, `nodes: "2"`, 1)})
	if err != nil {
		t.Fatalf("%v in\n%s", err, manifest)
	}
	want := o.w.pools[0].object.Spec.DeepCopy()
	want.Disruption.Budgets[0].Nodes = "2"
	if diff := cmp.Diff(want, &changed.pools[0].object.Spec); diff != "" {
		t.Errorf("the manifest changes the pool (-was +is):\n%s", diff)
	}
	if _, err := o.w.With(&Change{Pools: manifest + "kind: NodePool\n"}); err == nil || !strings.Contains(err.Error(), "already set") {
		t.Errorf("a field that is written twice: %v, want an error", err)
	}
}

// TestSeveralPools checks that a what-if applies every document of its manifests, changed pools and new ones, as simulate
// --diff does, and refuses what it cannot apply.
func TestSeveralPools(t *testing.T) {
	spot := strings.Replace(lightFleet, "values: [on-demand]", "values: [spot]", 1)
	second := strings.Replace(spot, "name: default}\nspec", "name: second}\nspec", 1)
	both := strings.Replace(lightFleet, `"1"`, `"2"`, 1) + "---\n" + second
	fleet := lightNode("a", "") + strings.Replace(lightNode("b", ""), "cpu: 500m", "cpu: 3500m", 1) + `---
apiVersion: v1
kind: Pod
metadata: {name: new, namespace: default, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: new, uid: new, controller: true}]}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "8", memory: 100Mi}}}]}
`
	o := overviewOf(t, lightFleet+fleet)
	w, err := o.WhatIf(t.Context(), &Change{Pools: both}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if w.With.After.Price >= w.Without.After.Price {
		t.Errorf("with a pool of spot nodes the fleet costs %v, without %v", w.With.After.Price, w.Without.After.Price)
	}
	var files []string
	for name, text := range map[string]string{"1-pods": strings.TrimPrefix(fleet, "---\n"), "2-old": lightFleet, "3-new": both} {
		files = append(files, filepath.Join(t.TempDir(), name+".yaml"))
		if err := os.WriteFile(files[len(files)-1], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	policy := DefaultPolicy()
	source := Source{Paths: files[:1], Cluster: &Cluster{}}
	before, after, err := source.ReadBoth(t.Context(), policy, files[1:2], files[2:])
	if err != nil {
		t.Fatal(err)
	}
	diff, err := Compare(t.Context(), before, after, &policy, &review.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := w.With.After, (view.Figures{Nodes: diff.New.Nodes, Price: diff.New.PricePerHour}); got != want {
		t.Errorf("the what-if ends at %+v, the comparison at %+v", got, want)
	}
	for manifests, want := range map[string]string{
		both + "---\n" + second: "two manifests of NodePool second",
		both + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n": `of kind "Pod", want a NodePool`,
		strings.ReplaceAll(second, "KWOKNodeClass, name: default", "KWOKNodeClass, name: other"): "what NodePool second can launch is " +
			"not known: " +
			"spec.template.spec.nodeClassRef: is KWOKNodeClass other, want one that another NodePool has",
	} {
		if _, err := o.w.With(&Change{Pools: manifests}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestLastLine checks that a last line without an end is read, whatever its length.
func TestLastLine(t *testing.T) {
	for _, length := range []int{1, 4095, 4096, 4097, 65536} {
		if text := strings.Repeat("x", length); SameManifests("", text) || !SameManifests(text, text+"\n") {
			t.Errorf("a line of %d bytes is lost", length)
		}
	}
}
