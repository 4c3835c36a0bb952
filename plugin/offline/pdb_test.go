package offline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
)

// shopPods returns three replicas of web, one of them not ready, one pod of another set with the same label, one
// pending pod, and a pod without a controller.
func shopPods() string {
	var text strings.Builder
	pod := func(name, set, label, node, status string) {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: shop, labels: {app: %s}", name, label)
		if set != "" {
			fmt.Fprintf(&text, ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %s, uid: '%s', controller: true}]", set, set)
		}
		fmt.Fprintf(&text, "}\nspec: {nodeName: '%s', containers: [{name: a, image: a}]}\n%s", node, status)
	}
	pod("web-1", "web", "web", "n", "")
	pod("web-2", "web", "web", "n", "status: {conditions: [{type: Ready, status: 'True'}]}\n")
	pod("web-3", "web", "web", "n", "status: {conditions: [{type: Ready, status: 'False'}]}\n")
	pod("web-4", "web", "web", "", "")
	pod("more-1", "more", "web", "n", "")
	pod("web-0", "web", "web", "n", "status: {phase: Succeeded}\n")
	pod("other-1", "web", "other", "n", "")
	pod("alone", "", "alone", "n", "")
	return text.String()
}

// allowance holds the fields of a PodDisruptionBudget's status that matter.
type allowance struct{ Expected, Desired, Healthy, Allowed int32 }

func TestStatusOfPDBsInFiles(t *testing.T) {
	const selects = "selector: {matchLabels: {app: web}}"
	for name, c := range map[string]struct {
		spec string
		want allowance
	}{
		// The scale of web is 5: one of its pods has another label.
		"one unavailable":       {selects + ", maxUnavailable: 1", allowance{6, 5, 3, 0}},
		"three unavailable":     {selects + ", maxUnavailable: 4", allowance{6, 2, 3, 1}},
		"half, rounded up":      {selects + ", maxUnavailable: 55%", allowance{6, 2, 3, 1}},
		"none":                  {selects + ", maxUnavailable: 0", allowance{6, 6, 3, 0}},
		"all":                   {selects + ", maxUnavailable: 100%", allowance{6, 0, 3, 3}},
		"two available":         {selects + ", minAvailable: 2", allowance{5, 2, 3, 1}},
		"half available":        {selects + ", minAvailable: 33%", allowance{6, 2, 3, 1}},
		"nothing said":          {selects, allowance{0, 0, 3, 0}},
		"no pod selected":       {"selector: {matchLabels: {app: none}}, minAvailable: 0", allowance{}},
		"no selector":           {"maxUnavailable: 1", allowance{}},
		"all pods":              {"selector: {}, minAvailable: 1", allowance{7, 1, 5, 4}},
		"by expression":         {"selector: {matchExpressions: [{key: app, operator: In, values: [alone, other]}]}, minAvailable: 1", allowance{2, 1, 2, 1}},
		"without a controller":  {"selector: {matchLabels: {app: alone}}, maxUnavailable: 1", allowance{0, 0, 1, 0}},
		"a status of their own": {selects + ", maxUnavailable: 1}\nstatus: {observedGeneration: 0, disruptionsAllowed: 7", allowance{0, 0, 0, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := newManifests()
			if err != nil {
				t.Fatal(err)
			}
			o.readPath("-", strings.NewReader(shopPods()+"---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b, namespace: shop, generation: 3}\nspec: {"+c.spec+"}\n"))
			if (&completion{o}).finish(); len(o.Problems) > 0 || len(o.budgets) != 1 {
				t.Fatalf("%d budgets, problems: %v", len(o.budgets), o.Problems)
			}
			if diff := cmp.Diff(c.want, allowanceOf(o.budgets[0].object)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func allowanceOf(pdb *policyv1.PodDisruptionBudget) allowance {
	s := &pdb.Status
	return allowance{s.ExpectedPods, s.DesiredHealthy, s.CurrentHealthy, s.DisruptionsAllowed}
}

// TestSimulateKnowsPDBs checks that PodDisruptionBudgets of files are in the snapshot of the decision.
func TestSimulateKnowsPDBs(t *testing.T) {
	o, err := newManifests()
	if err != nil {
		t.Fatal(err)
	}
	o.readPath("-", strings.NewReader(poolYAML+"---\napiVersion: v1\nkind: Node\nmetadata: {name: 'n'}\n"+shopPods()+
		"---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b, namespace: shop}\nspec: {selector: {matchLabels: {app: web}}, minAvailable: 2}\n"))
	(&completion{o}).finish()
	o.now = o.newest
	if err := o.typesOn(""); err != nil {
		t.Fatal(err)
	}
	o.prepare()
	snap := o.Snapshot()
	got := map[string]string{}
	for _, p := range snap.Node("n").Pods {
		got[p.Name] = fmt.Sprintf("ready %t", p.Ready)
		for _, pdb := range snap.PDBsOf(p) {
			got[p.Name] += fmt.Sprintf(", %s allows %d", pdb.Name, pdb.Allowed)
		}
	}
	want := map[string]string{"web-1": "ready true, b allows 1", "web-2": "ready true, b allows 1", "web-3": "ready false, b allows 1",
		"more-1": "ready true, b allows 1", "other-1": "ready true", "alone": "ready true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}
