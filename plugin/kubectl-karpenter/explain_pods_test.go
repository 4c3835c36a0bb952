package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/plugin/offline"
)

// workloadsCluster has pending pods of a Deployment, of a Job and of another namespace, that are too large for the pool.
func workloadsCluster(t *testing.T) string {
	t.Helper()
	pod := func(namespace, name, owner, cpu, on string) string {
		status := `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}`
		if on != "" {
			status = "{phase: Running}"
		}
		return "metadata: {name: " + name + ", namespace: " + namespace + ", uid: " + namespace + name + ", ownerReferences: [{" + owner + ", uid: u, controller: true}]}\n" +
			"spec: {nodeName: \"" + on + "\", containers: [{name: c, image: i, resources: {requests: {cpu: \"" + cpu + "\"}}}]}\nstatus: " + status + "\n---\n"
	}
	const web, batch = "apiVersion: apps/v1, kind: ReplicaSet, name: web-5d9", "apiVersion: batch/v1, kind: Job, name: batch"
	return served(t, map[string]string{
		"/apis/karpenter.sh/v1/nodepools": `metadata: {name: default, uid: pool-uid}
spec: {template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, requirements: []}}}
status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}
`,
		"/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default": `{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}`,
		"/apis/apps/v1/replicasets": "metadata: {name: web-5d9, namespace: default, uid: u, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]}\n" +
			"spec: {selector: {matchLabels: {app: web}}}\n",
		"/apis/batch/v1/jobs": "metadata: {name: batch, namespace: default, uid: u, ownerReferences: " +
			"[{apiVersion: batch/v1, kind: CronJob, name: nightly, uid: c, controller: true}]}\n" +
			"spec: {template: {spec: {containers: [{name: c, image: i}]}}}\n",
		"/api/v1/pods": pod("default", "web-1", web, "1k", "") + pod("default", "web-2", web, "1k", "") + pod("default",
			"web-3", web, "1", "n1") +
			pod("default", "batch-1", batch, "2", "") + pod("shop", "cart-1", batch, "2k", ""),
	})
}

// askWorkloads runs explain on workloadsCluster.
func askWorkloads(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	types := filepath.Join(files(t, map[string]string{"types.json": typesJSON}), "types.json")
	return runProgram(t, "", append(append([]string{"explain"}, arguments...), "--kubeconfig", workloadsCluster(t),
		"--instance-types", types)...)
}

func TestExplainPods(t *testing.T) {
	for _, c := range []struct {
		arguments string
		want      []string
	}{
		{"pods", []string{"pod default/web-1 (and 1 like it) ", "pod default/batch-1 needs a new node",
			"\n3 pending pods: 2 unschedulable, 1 for new nodes\n"}},
		{"po -A", []string{"pod shop/cart-1 ", "\n4 pending pods: 3 unschedulable, 1 for new nodes\n"}},
		{"pods -n shop", []string{"\n1 pending pod: 1 unschedulable\n"}},
		{"pods -n none", []string{"no pod is pending in namespace none\n"}},
		{"pods -o wide", []string{"\n  pods: default/web-1 default/web-2\n"}},
		{"deploy/web", []string{"\n2 pending pods: 2 unschedulable\n"}},
		{"deployment.apps/web", []string{"\n2 pending pods: 2 unschedulable\n"}},
		{"rs/web-5d9", []string{"\n2 pending pods: 2 unschedulable\n"}},
		{"job batch", []string{"\n1 pending pod: 1 for new nodes\n"}},
		{"cj/nightly", []string{"\n1 pending pod: 1 for new nodes\n"}},
		{"cronjob nightly", []string{"\n1 pending pod: 1 for new nodes\n"}},
		{"pods -A -o name", []string{"pod/cart-1\npod/web-1\npod/web-2\npod/batch-1\n"}},
	} {
		out, err := askWorkloads(t, strings.Fields(c.arguments)...)
		if err != nil {
			t.Errorf("%s: %v", c.arguments, err)
		}
		for _, want := range c.want {
			if !strings.Contains("\n"+out, want) {
				t.Errorf("%s: no %q in\n%s", c.arguments, want, out)
			}
		}
	}
	for want, arguments := range map[string]string{
		"there is no pod of Deployment default/wbe; did you mean web?":                    "deploy/wbe",
		"there is no pod of CronJob default/nightyl; did you mean nightly?":               "cj/nightyl",
		"there is no pod of StatefulSet default/web":                                      "sts/web",
		"there is no pod of Deployment shop/web; there is default/web":                    "deploy/web -n shop",
		"--all-namespaces and pod web-1: give one of them":                                "pod web-1 -A",
		"--all-namespaces and --namespace shop: give one of them":                         "pods -A -n shop",
		`"depoly" is not known, want pod, node, pool or a workload; did you mean deploy?`: "depoly/web",
	} {
		if _, err := askWorkloads(t, strings.Fields(arguments)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arguments, err, want)
		}
	}
}

// TestPendingPodsAreCountedOnce checks that pods that no node can run are counted and grouped the same way by explain
// and top, and that pods that opted out are ignored by both.
func TestPendingPodsAreCountedOnce(t *testing.T) {
	pod := func(name, more string) string {
		return "metadata: {name: " + name + ", namespace: shop, uid: " + name + "}\nspec: {" + more +
			"containers: [{name: c, image: i, resources: {requests: {cpu: 1k}}}]}\n" +
			"status: {phase: Pending, conditions: [{type: PodScheduled, status: \"False\", reason: Unschedulable}]}\n---\n"
	}
	const device = "resourceClaims: [{name: gpu, resourceClaimName: gpu}], "
	kubeconfig := served(t, map[string]string{
		"/apis/karpenter.sh/v1/nodepools": `metadata: {name: default, uid: pool-uid}
spec: {template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, requirements: []}}}
status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}
`,
		"/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default": `{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}`,
		"/api/v1/pods": pod("a", device) + pod("b", device) + pod("c", device) + pod("large-1", "") + pod("large-2",
			"tolerations: [{key: x, operator: Exists}], ") + pod("other",
			"nodeSelector: {karpenter.sh/nodepool: nope}, "),
	})
	for arguments, want := range map[string][]string{
		"explain pods -A": {"pod shop/a (and 2 like it) cannot be scheduled", "\n6 pending pods: 6 unschedulable\n"},
		"top --once": {"6 pods waiting, 6 unschedulable", "\nshop/a                                        3  NoPlace",
			"\nshop/large-1                                  2  NoPlace"},
	} {
		out, err := runProgram(t, "", append(strings.Fields(arguments), "--kubeconfig", kubeconfig)...)
		if err != nil {
			t.Errorf("%s: %v", arguments, err)
		}
		for _, part := range want {
			if !strings.Contains("\n"+out, part) {
				t.Errorf("%s: no %q in\n%s", arguments, part, out)
			}
		}
	}
}

// TestOutputFormats checks that YAML contains what JSON does, and the text of a terminal fits.
func TestOutputFormats(t *testing.T) {
	for _, verb := range []string{"pods -A", "pod web-1", "pool default"} {
		document, err := askWorkloads(t, append(strings.Fields(verb), "-o", "json")...)
		if err != nil {
			t.Fatal(err)
		}
		text, err := askWorkloads(t, append(strings.Fields(verb), "-o", "yaml")...)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if err := errors.Join(json.Unmarshal([]byte(document), &a), yaml.Unmarshal([]byte(text), &b)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%s: -json +yaml:\n%s", verb, diff)
		}
	}
	var o offline.PodsOutcome
	switch out, err := askWorkloads(t, "pods", "-o", "json"); {
	case err != nil:
		t.Errorf("unexpected error: %v", err)
	case json.Unmarshal([]byte(out), &o) != nil:
		t.Errorf("no JSON of a %T:\n%s", o, out)
	case o.Pending != 3:
		t.Errorf("o.Pending is %v, want 3", o.Pending)
	case o.Total != 4:
		t.Errorf("o.Total is %v, want 4", o.Total)
	case o.Groups[0].Count != 2:
		t.Errorf("o.Groups[0].Count is %v, want 2", o.Groups[0].Count)
	}
	if out, err := askWorkloads(t, "pool", "default", "-o", "name"); err != nil || out != "nodepool.karpenter.sh/default\n" {
		t.Errorf("%v, %q", err, out)
	}
}

// terminal is an output with a width.
type terminal struct {
	bytes.Buffer
	columns int
}

func (t *terminal) Columns() int { return t.columns }

// TestOutputFits checks that the output of verbs on a terminal fits its width, unless -o wide is given.
func TestOutputFits(t *testing.T) {
	types := filepath.Join(files(t, map[string]string{"types.json": shopJSON}), "types.json")
	for _, verb := range []string{"top --once", "explain pods -A", "explain pod shop/pinned-0", "explain node default-a",
		"explain pool default"} {
		for _, format := range []string{formatText, formatWide} {
			widest := 0
			for _, columns := range []int{80, 120} {
				root, out := newRootCommand(), &terminal{columns: columns}
				root.SetOut(out)
				root.SetArgs(append(strings.Fields(verb), "--kubeconfig", shop(t), "--instance-types", types, "-o", format))
				if err := root.ExecuteContext(t.Context()); err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(out.String()) {
					n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
					if widest = max(widest, n); format == formatText && n > columns {
						t.Errorf("%s: %d characters on %d: %s", verb, n, columns, line)
					}
				}
			}
			if strings.HasPrefix(verb, "top") && format == formatWide {
				if widest <= 120 {
					t.Errorf("the longest line of %s -o wide has %d characters, want more than 120", verb, widest)
				}
			}
		}
	}
}
