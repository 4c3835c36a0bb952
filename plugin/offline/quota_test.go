package offline

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// quotasYAML are a quota with one node left, one that is used up by a node without a pool, one whose selector no pool
// matches, and one that is invalid, with pods that need three new nodes.
const quotasYAML = `apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityQuota
metadata: {name: all}
spec: {limits: {resources: {nodes: 2, cpu: 100}}}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityQuota
metadata: {name: invalid}
spec: {selector: {matchLabels: {a b: c}}, limits: {resources: {nodes: 0}}}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityQuota
metadata: {name: large}
spec: {selector: {matchLabels: {node.kubernetes.io/instance-type: large}}, limits: {resources: {cpu: 7}}}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityQuota
metadata: {name: misspelled}
spec: {selector: {matchLabels: {taem: shop}}, limits: {resources: {nodes: 0}}}
---
apiVersion: v1
kind: Node
metadata: {name: foreign, labels: {kubernetes.io/hostname: foreign}}
status: {capacity: {cpu: 2, memory: 4Gi, pods: 20}, allocatable: {cpu: 0, memory: 4Gi, pods: 20},
  conditions: [{type: Ready, status: "True"}]}
`

// readQuotas reads the quotas of quotasYAML, and pods that need three small nodes.
func readQuotas(t *testing.T) (*Manifests, Policy) {
	t.Helper()
	folder := files(t, map[string]string{"instance-types.json": typesJSON, "pool.yaml": poolYAML, "quotas.yaml": quotasYAML,
		"web.yaml": strings.NewReplacer("cpu: 500m", "cpu: 1800m", "limits: {cpu: 1,", "limits: {cpu: 2,").Replace(webYAML)})
	policy := DefaultPolicy()
	source := Source{Paths: []string{folder}, Cluster: &Cluster{}, Now: time.Unix(1, 0), Keep: true}
	w, err := source.Read(t.Context(), policy)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Problems) > 0 {
		t.Fatal(w.Problems)
	}
	return w, policy
}

// TestQuotaInTheWay checks that of several limits the one is named that excludes the cheapest type: amounts of different
// resources do not compare.
func TestQuotaInTheWay(t *testing.T) {
	for limits, want := range map[string]string{
		`{cpu: 4, karpenter-go.github.io/usd-per-hour: "0.05"}`: "CapacityQuota q has 0.05 of karpenter-go.github.io/usd-per-hour left, " +
			"the cheapest of 2 matching types counts 0.1",
		"{cpu: 1, memory: 1Ti}": "CapacityQuota q has 1 of cpu left, the cheapest of 2 matching types counts 2",
	} {
		quota := "apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityQuota\nmetadata: {name: q}\nspec: {limits: {resources: " + limits + "}}\n"
		folder := files(t, map[string]string{"instance-types.json": typesJSON, "pool.yaml": poolYAML, "quota.yaml": quota, "web.yaml": webYAML})
		policy := DefaultPolicy()
		source := Source{Paths: []string{folder}, Cluster: &Cluster{}}
		w, err := source.Read(t.Context(), policy)
		if err != nil || len(w.Problems) > 0 {
			t.Fatal(err, w.Problems)
		}
		if text := w.Decide(&policy, 1).Answer().Text(0); !strings.Contains(text, want) {
			t.Errorf("%s: the text lacks %q:\n%s", limits, want, text)
		}
	}
}

// TestQuotaOfTheAutoscaler checks that quotas and buffers of the older version count, as on an API server, which serves it.
func TestQuotaOfTheAutoscaler(t *testing.T) {
	const older = `apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: CapacityQuota
metadata: {name: q}
spec: {limits: {resources: {nodes: 0}}}
---
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: CapacityBuffer
metadata: {name: b, namespace: default}
spec: {replicas: 2, podTemplateRef: {name: t}}
`
	folder := files(t, map[string]string{"instance-types.json": typesJSON, "pool.yaml": poolYAML, "older.yaml": older, "web.yaml": webYAML})
	source := Source{Paths: []string{folder}, Cluster: &Cluster{}}
	w, err := source.Read(t.Context(), DefaultPolicy())
	if err != nil || len(w.Problems) > 0 {
		t.Fatal(err, w.Problems)
	}
	policy := DefaultPolicy()
	if a := w.Decide(&policy, 1).Answer(); len(a.Quotas) != 1 || a.Quotas[0].Unschedulable == 0 || len(w.buffers.objects) != 1 {
		t.Errorf("quotas are %+v, and there are %d buffers, want one each, and pods that the quota excludes", a.Quotas, len(w.buffers.objects))
	}
}

// TestSimulateQuotas checks that quotas of files limit the plan, what the answer says of them, and that a capture plans
// the same.
func TestSimulateQuotas(t *testing.T) {
	w, policy := readQuotas(t)
	a := w.Decide(&policy, 1).Answer()
	if len(a.Nodes) != 1 || a.Pods.Unschedulable != 2 {
		t.Fatalf("%d new nodes, %d unschedulable, want one and two", len(a.Nodes), a.Pods.Unschedulable)
	}
	want := []QuotaOutcome{
		{Name: "all", Nodes: 1, Unschedulable: 2, Limits: []LimitOutcome{{Resource: "nodes", Used: "1", Limit: "2"},
			{Resource: "cpu", Used: "2", Limit: "100"}}},
		{Name: "invalid", Invalid: "a b"},
		{Name: "large", Limits: []LimitOutcome{{Resource: "cpu", Used: "0", Limit: "7", Reached: true, LeastNode: "8"}}},
		{Name: "misspelled", Limits: []LimitOutcome{{Resource: "nodes", Used: "0", Limit: "0", Reached: true}}},
	}
	got := slices.Clone(a.Quotas)
	if len(got) == 4 && strings.Contains(got[1].Invalid, want[1].Invalid) {
		got[1].Invalid = want[1].Invalid
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(LimitOutcome{})); diff != "" {
		t.Errorf("quotas (-want +got):\n%s", diff)
	}
	if o := a.WithoutQuotas; o == nil || o.Nodes != 3 || o.Unschedulable != 0 {
		t.Errorf("the plan without quotas is %+v, want three nodes", o)
	}
	text := a.Text(0)
	for _, want := range []string{
		"quota all: nodes 1 of 2 (50%), cpu 2 of 100 (2%); it excludes 2 unschedulable pods\n",
		"quota invalid: is invalid and has no effect",
		"quota large: cpu 0 of 7 (0%); its nodes use 0 of the limit of 7 of cpu, and its smallest instance type has 8; " +
			"no further node is launched in it\n",
		"without CapacityQuotas: 3 new nodes, 0 unschedulable, price 0.3000 USD per hour; with them -0.2000\n",
		"CapacityQuota all has 0 of nodes left",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	file := filepath.Join(t.TempDir(), "capture.json")
	if err := WriteCapture(file, w, policy, a); err != nil {
		t.Fatal(err)
	}
	if r, err := Replay(file); err != nil || len(r.Differs) > 0 {
		t.Errorf("replay: %v, differs in %v", err, r)
	}
}

// TestExplainQuotaOfFiles checks which nodes, pools and pods an explained quota names, and that explain pool names the
// quotas in which nodes of the pool may count.
func TestExplainQuotaOfFiles(t *testing.T) {
	w, policy := readQuotas(t)
	for name, want := range map[string]string{
		"all": "  counts 1 node: foreign\n  new nodes of pool default, which has 0 of the nodes, may count\n\n2 pods without a node: ",
		"large": "  counts 0 nodes\n  new nodes of pool default, which has 0 of the nodes, may count; none is launched now: " +
			"its nodes use 0 of the limit of 7 of cpu, and its smallest instance type has 8\n",
		"misspelled": "  counts 0 nodes\n  new nodes of no pool may count\n",
		"invalid":    "quota invalid: is invalid and has no effect",
	} {
		o, err := w.ExplainQuota(&policy, name)
		if err != nil {
			t.Fatal(err)
		}
		if text := o.Text(); !strings.Contains(text, want) {
			t.Errorf("%s: the text lacks %q:\n%s", name, want, text)
		}
	}
	if _, err := w.ExplainQuota(&policy, "al"); err == nil || !strings.Contains(err.Error(), "did you mean all?") {
		t.Errorf("of a name that is not there: %v, want a proposal", err)
	}
	pool, err := w.ExplainPool(&policy, "default")
	if err != nil {
		t.Fatal(err)
	}
	text := pool.Text()
	const named = "  quota all: nodes 1 of 2 (50%), cpu 2 of 100 (2%)\n  quota large: "
	if !strings.Contains(text, named) || strings.Contains(text, "quota misspelled") {
		t.Errorf("the text of the pool lacks its quotas, or has others:\n%s", text)
	}
}
