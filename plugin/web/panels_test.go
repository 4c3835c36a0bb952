package web

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// TestPanels: the panel of a node has its pods with what keeps each, a pod has an address of its own, and the filter finds
// pods by namespace, name and workload, also those without a node.
func TestPanels(t *testing.T) {
	_, c := serve(t, ofFile(t, cluster()))
	complete := func(path string) string {
		page, _ := c.get(path)
		for strings.Contains(page, `data-waiting="true"`) {
			page, _ = c.get(path)
		}
		return page
	}
	page := complete("/fleet?node=two")
	for _, want := range []string{"<h3>1 pod</h3>", `href="/fleet?pod=shop%2Fdb-0"`, "shop/db (StatefulSet)", "cpu 500m", "app=db",
		"PodDisruptionBudget shop/db allows no eviction of pod shop/db-0 on node two now", `data-chosen="two"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the panel of the node lacks %q:\n%s", want, page)
		}
	}
	for path, wants := range map[string][]string{
		"/fleet?pod=shop/db-0": {"Pod shop/db-0", `<a href="/fleet?node=two">Node two</a>`, "<dt>Priority</dt><dd>0</dd>",
			"allows no eviction of pod shop/db-0", `data-chosen="two"`, "explain pod -n shop db-0"},
		"/fleet?pod=shop/web-0": {"nothing: it can be evicted", `data-chosen="one"`},
		"/fleet?pod=shop/big-0": {"pod shop/big-0 cannot be scheduled", "<dt>Requests</dt><dd>cpu 500</dd>"},
		"/fleet?pod=shop/none":  {"There is no pod of this name"},
		"/fleet?node=none":      {"There is no node of this name"},
		"/fleet?q=shop":         {"<h2>5 pods found</h2>", "waits for one", "3 nodes, 3 pods"},
		"/fleet?q=shop/web":     {"<h2>2 pods found</h2>", "2 nodes, 2 pods", `<option value="shop"`, `<option value="general"`},
		"/fleet?q=p/db-0":       {"<h2>1 pod found</h2>", "1 node, 1 pod,"},
		"/fleet?q=StatefulSet":  {"<h2>5 pods found</h2>"},
		"/fleet?q=big":          {"<h2>1 pod found</h2>", "No node, and no pod on a node, matches"},
		"/fleet?color=why&class=PDBBlocks": {"1 node, 1 pod", `href="/fleet?color=why" aria-current="true"`, "a PodDisruptionBudget",
			"would be removed now"},
		"/fleet?color=pool&class=%3Dgeneral&format=csv": {"one,", "two,", "three,"},
		"/fleet?color=fill&class=4&format=csv":          {"node,pool"},
		"/fleet?color=workload":                         {`href="/fleet?color=workload&amp;q=shop%2Fweb`},
		"/fleet?q=test-zone-a":                          {"3 nodes, 3 pods"},
		"/fleet?q=two&format=csv":                       {"two,general"},
		"/fleet?q=shop/db&color=why":                    {"1 pod found"},
	} {
		page := complete(path)
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q:\n%s", path, want, page)
			}
		}
	}
	text, _ := c.get("/fleet?node=two&format=json")
	var document struct{ Node view.NodeDetail }
	if err := json.Unmarshal([]byte(text), &document); err != nil || len(document.Node.Pods) != 1 || document.Node.Pods[0].CPU != 500 {
		t.Errorf("the document has the node %+v, %v", document.Node, err)
	}
}

// pool is a further pool without nodes.
func pool(name, spec, status string) string {
	return fmt.Sprintf(`---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s, generation: 1}
spec:
  %s
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]},
        {key: kubernetes.io/arch, operator: In, values: [amd64]}]
status: {%s}
`, name, spec, status)
}

// captured returns manifests as the objects of a captured cluster: their status is kept.
func captured(t *testing.T, manifests string) string {
	t.Helper()
	var items []json.RawMessage
	for _, document := range strings.Split(manifests, "---\n") {
		text, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, text)
	}
	list, err := json.Marshal(items)
	if err != nil {
		t.Fatal(err)
	}
	return `{"apiVersion":"simulate.karpenter-go.github.io/v1alpha1","kind":"Capture","answer":{},"input":{"objects":[],"cluster":` + string(list) +
		`,"sale":{"declared":{}}},"options":{"now":"2026-01-28T00:00:00Z","preferencePolicy":"Respect","minValuesPolicy":"Strict","packingEffort":1,"nodeOverheadPrice":0}}`
}

// TestPools: each pool has its limits in use, budgets, weight and what it may launch; those without nodes and those that are
// not ready are there with the reason, in the table, in JSON and in the panel.
func TestPools(t *testing.T) {
	text := cluster() + pool("limited", "weight: 7\n  limits: {nodes: \"0\"}", "") +
		pool("broken", "weight: 3", `conditions: [{type: Ready, status: "False", reason: UnhealthyDependents, message: "see NodeClassReady", lastTransitionTime: "2026-01-01T00:00:00Z"}, {type: NodeClassReady, status: "False", reason: Gone, message: "the class default is gone", lastTransitionTime: "2026-01-01T00:00:00Z"}]`) +
		pool("fixed", "replicas: 2", "")
	text = strings.Replace(text, `spec:
  disruption: {consolidateAfter: 0s, budgets: [{nodes: "100%"}]}`, `spec:
  limits: {cpu: "48"}
  disruption: {consolidateAfter: 0s, budgets: [{nodes: "2"}]}`, 1)
	_, c := serve(t, ofFile(t, text))
	answer, _ := c.get("/pools?format=json")
	var document struct {
		Rows  []map[string]any
		Pools []view.Pool
	}
	if err := json.Unmarshal([]byte(answer), &document); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	var names []string
	pools := map[string]view.Pool{}
	for _, p := range document.Pools {
		names, pools[p.Name] = append(names, p.Name), p
	}
	if got := strings.Join(names, " "); got != "limited broken fixed general" {
		t.Errorf("the pools are %s, want them by weight and name", got)
	}
	general := pools["general"]
	if general.State != "ready" || general.Nodes != 3 || general.Price <= 0 || len(general.Gauges) != 1 ||
		general.Gauges[0].Text() != "24 of 48 (50%)" || general.Allowed() != "2 of 2" || general.Launches.Types == 0 ||
		general.Launches.Price <= 0 || strings.Join(general.Launches.CapacityTypes, " ") != "on-demand" || len(general.Launches.Zones) < 2 {
		t.Errorf("the pool with nodes: %+v", general)
	}
	if p := pools["limited"]; p.State != "at its limit" || p.Reason != "its nodes use 0 of the limit of 0 nodes" || p.Weight != 7 ||
		p.Nodes != 0 ||
		p.Gauges[0].Text() != "0 of 0 (100%)" {
		t.Errorf("the pool with a limit: %+v", p)
	}
	if p := pools["fixed"]; p.State != "static" || !p.Static || p.Replicas != 2 {
		t.Errorf("the static pool: %+v", p)
	}
	page, _ := c.get("/pools?pool=general")
	for strings.Contains(page, `data-waiting="true"`) {
		page, _ = c.get("/pools?pool=general")
	}
	for _, want := range []string{"pool general: 3 nodes", "at rest:", "limits: cpu 24 of 48 (50%)", `href="/fleet?q=general"`,
		`aria-selected="true"`, "4 pools in the order"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of the pool lacks %q:\n%s", want, page)
		}
	}
	_, c = serve(t, ofFile(t, captured(t, text)))
	if page, _ := c.get("/pools"); !strings.Contains(page, "not ready: NodeClassReady: the class default is gone") {
		t.Errorf("the page does not say why a pool is not ready:\n%s", page)
	}
	if page, _ := c.get("/pools?pool=none"); !strings.Contains(page, "There is no pool of this name") {
		t.Error("a pool that does not exist is not named")
	}
}
