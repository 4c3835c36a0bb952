package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/plugin/offline"
)

// served is a read-only cluster: objects by the path of their list. It responds in pages of two, and fails the test
// on any request but for a list or a single object.
func served(t *testing.T, lists map[string]string) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/v1/") { // a question
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": {"allowed": true}}`)
			return
		}
		if r.Method != http.MethodGet || r.URL.Query().Get("watch") != "" {
			t.Errorf("%s %s, want only reads", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		text, known := lists[r.URL.Path]
		if !known && r.URL.Query().Get("limit") == "" { // a single object, not a list
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
			return
		}
		if known && r.URL.Query().Get("limit") == "" {
			fmt.Fprint(w, text)
			return
		}
		writePage(t, w, text, r.URL.Query().Get("continue"))
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\nusers: [{name: u}]\n", server.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// writePage writes two objects of a list of YAML documents, starting at the one that the token numbers.
func writePage(t *testing.T, w http.ResponseWriter, documents, token string) {
	from := 0
	if token != "" {
		if _, err := fmt.Sscan(token, &from); err != nil {
			t.Errorf("continue is %q", token)
		}
	}
	page := map[string]any{"metadata": map[string]any{}} // the kind follows from the path
	items := []any{}
	for i, document := range strings.Split(documents, "---\n") {
		if strings.TrimSpace(document) == "" || i < from {
			continue
		}
		if i >= from+2 {
			page["metadata"] = map[string]any{"continue": fmt.Sprint(from + 2)}
			break
		}
		var object any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Error(err)
		}
		items = append(items, object)
	}
	page["items"] = items
	if err := json.NewEncoder(w).Encode(page); err != nil {
		t.Error(err)
	}
}

// liveCluster is one ready pool, a full node, a node of another pool being launched, and pods in every state.
func liveCluster(t *testing.T) string {
	pending := func(name, more, spec string) string {
		return fmt.Sprintf("metadata: {name: %s, namespace: default, uid: uid-%s, creationTimestamp: \"2026-01-01T00:00:00Z\"}\nspec: {%s}\nstatus: {phase: Pending, %s}\n---\n", name, name, spec, more)
	}
	const unschedulable = "conditions: [{type: PodScheduled, status: \"False\", reason: Unschedulable}]"
	containers := func(cpu string) string {
		return "containers: [{name: c, image: i, resources: {requests: {cpu: \"" + cpu + "\", memory: 1Gi}}}]"
	}
	ready := "status: {conditions: [{type: Ready, status: \"True\", reason: Ready, message: \"\", lastTransitionTime: \"2026-01-01T00:00:00Z\"}]}\n"
	return served(t, map[string]string{
		"/apis/karpenter.sh/v1/nodepools": `metadata: {name: default, uid: pool-uid}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
` + ready,
		"/apis/karpenter.sh/v1/nodeclaims": `metadata: {name: default-coming, uid: claim-uid, labels: {karpenter.sh/nodepool: default}, annotations: {karpenter-go.github.io/pods: uid-soon}}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [large]}]
  resources: {requests: {cpu: 6}}
`,
		"/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default": `{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}`,
		"/api/v1/nodes": `metadata: {name: n1, uid: node-uid, labels: {kubernetes.io/hostname: n1}}
status: {capacity: {cpu: 1, memory: 4Gi, pods: 20}, allocatable: {cpu: 1, memory: 4Gi, pods: 20}}
`,
		"/api/v1/pods": pending("soon", unschedulable, containers("6")) +
			pending("small", unschedulable, containers("500m")) +
			pending("large", unschedulable, containers("7")) +
			pending("huge", unschedulable, containers("1M")) +
			pending("typo", unschedulable, "nodeSelector: {topology.kubernetes.io/zones: a}, "+containers("1")) +
			pending("fresh", "conditions: []", containers("1")) +
			pending("gated", "conditions: []", "schedulingGates: [{name: example.com/quota}], "+containers("1")) +
			pending("foreign", "conditions: []", "schedulerName: other, "+containers("1")) +
			pending("elsewhere", unschedulable, "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: karpenter.sh/nodepool, operator: DoesNotExist}]}]}}}, "+containers("7")) +
			"metadata: {name: there, namespace: default, uid: uid-there}\nspec: {nodeName: n1, " + containers("100m") + "}\nstatus: {phase: Running}\n---\n" +
			"metadata: {name: over, namespace: default, uid: uid-over}\nspec: {nodeName: n1, " + containers("100m") + "}\nstatus: {phase: Succeeded}\n",
	})
}

func TestExplainPod(t *testing.T) {
	kubeconfig, types := liveCluster(t), filepath.Join(files(t, map[string]string{"types.json": typesJSON}), "types.json")
	for _, c := range []struct{ pod, outcome, text string }{
		{"default/there", "Bound", "pod default/there is on node n1\n"},
		{"over", "Done", "pod default/over has finished\n"},
		{"small", "ExistingNode", "pod default/small fits on node n1, which exists\n"},
		{"soon", "NodeInFlight", "pod default/soon waits for default-coming, a node that is being launched\n"},
		{"large", "NewNode", "pod default/large needs a new node: large of pool default in a as on-demand for 0.5000 USD per hour, with 1 pod; 1 type would fit\n"},
		{"fresh", "Ignored", "pod default/fresh is ignored: status.conditions[PodScheduled]: kube-scheduler has not reported it as unschedulable\n"},
		{"gated", "Ignored", "pod default/gated is ignored: spec.schedulingGates: the pod has scheduling gates: example.com/quota\n"},
		{"foreign", "Ignored", "pod default/foreign is ignored: spec.schedulerName: scheduler other has not reported it as unschedulable\n"},
		{"huge", "NoPlace", `pod default/huge cannot be scheduled
  pool default: needs 1000000 of cpu, the largest of 2 types has 7900m
    did you mean 1m? M is a million, m a thousandth
    cpu at least 1000000                                       2 types -> 0
    2 types would fit for at most 7900m of cpu
  both nodes: needs 1000000 of cpu, at most 1900m is free
`},
		{"typo", "NoPlace", `pod default/typo cannot be scheduled
  pool default: label topology.kubernetes.io/zones is required, and the pool does not define it (pod: In [a])
    did you mean label topology.kubernetes.io/zone?
    label topology.kubernetes.io/zones                         2 types -> 0
    2 types would fit if label topology.kubernetes.io/zones were not required
  both nodes: label topology.kubernetes.io/zones is not as required (pod: In [a])
`},
	} {
		arguments := []string{"explain", "pod", c.pod, "--kubeconfig", kubeconfig, "--instance-types", types}
		out, err := runProgram(t, "", arguments...)
		if err != nil || out != c.text {
			t.Errorf("%s: %v\ngot  %s\nwant %s", c.pod, err, out, c.text)
		}
		var outcome offline.PodOutcome
		out, err = runProgram(t, "", append(arguments, "-o", "json")...)
		switch {
		case err != nil:
			t.Errorf("%s: unexpected error: %v", c.pod, err)
		case json.Unmarshal([]byte(out), &outcome) != nil:
			t.Errorf("%s: no JSON of a %T:\n%s", c.pod, outcome, out)
		case outcome.Outcome != c.outcome:
			t.Errorf("%s: outcome.Outcome is %v, want %v", c.pod, outcome.Outcome, c.outcome)
		}
		if c.outcome == "NoPlace" {
			if len(outcome.Reasons) != 2 || outcome.Reasons[0].NodePool != "default" {
				t.Errorf("%s: the reasons are %+v, want two, the first of pool default", c.pod, outcome.Reasons)
			}
			switch tree := outcome.Refusal; {
			case tree == nil:
				t.Errorf("%s: no tree of refusals", c.pod)
			case len(tree.Pools[0].Filters) != 1:
				t.Errorf("%s: the first pool has %d filters, want 1: %+v", c.pod, len(tree.Pools[0].Filters), tree)
			case len(tree.Pools[0].Nearest) != 1:
				t.Errorf("%s: the first pool has %d nearest types, want 1: %+v", c.pod, len(tree.Pools[0].Nearest), tree)
			case tree.Nodes[0].Nodes != 2:
				t.Errorf("%s: the first refusal covers %d nodes, want 2: %+v", c.pod, tree.Nodes[0].Nodes, tree)
			}
		}
	}
	if out, err := runProgram(t, "", "explain", "pod", "elsewhere", "--kubeconfig", kubeconfig, "-o",
		"json"); err != nil || !strings.Contains(out, `"Ignored"`) {
		t.Errorf("a pod that opted out: %v\n%s", err, out)
	}
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"none", "--kubeconfig", kubeconfig}, "there is no pod default/none"},
		{[]string{"there", "--kubeconfig", filepath.Join(t.TempDir(), "none")}, "kubeconfig"},
		{[]string{"there", "--kubeconfig", kubeconfig, "--cloud-provider", "gce"}, `--cloud-provider is "gce", want kwok or aws`},
		{[]string{"there", "--kubeconfig", kubeconfig, "-o", "table"}, "text, wide, name, json or yaml"},
		{[]string{"a", "b"}, "NAMESPACE/NAME"},
	} {
		if _, err := runProgram(t, "", append([]string{"explain", "pod"}, c.arguments...)...); err == nil || !strings.Contains(err.Error(),
			c.want) {
			t.Errorf("%v: got %v, want %q", c.arguments, err, c.want)
		}
	}
}

// TestSimulateLive checks that a cluster is read, that files replace objects of the same name, and that the capture
// replays without the cluster.
func TestSimulateLive(t *testing.T) {
	kubeconfig := liveCluster(t)
	folder := files(t, map[string]string{"types.json": typesJSON, "pool.yaml": strings.Replace(poolYAML, "on-demand", "spot", 1)})
	types := filepath.Join(folder, "types.json")
	capture := filepath.Join(folder, "live.json")
	a := simulateJSON(t, "--live", "--kubeconfig", kubeconfig, "--instance-types", types, "--capture", capture)
	if want := (offline.PodCounts{Total: 8, Existing: 2, InFlight: 1, New: 1, Unschedulable: 5}); a.Pods != want {
		t.Errorf("got %+v, want %+v", a.Pods, want)
	}
	if out, err := runProgram(t, "", "replay", capture); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// This pool, which replaces the live one, has no available offering; its node class does not belong to the
	// provider.
	foreign := strings.Replace(poolYAML, "karpenter.kwok.sh, kind: KWOKNodeClass", "example.com, kind: AnyClass", 1)
	a = simulateJSON(t, "--live", "--kubeconfig", kubeconfig, "--instance-types", types, "-f",
		files(t, map[string]string{"pool.yaml": foreign}))
	if a.Pods.New != 0 {
		t.Errorf("got %+v", a.Pods)
	}
	// This is an AWS pool, which the flag excludes: nothing is invented. Without the flag its class must exist.
	aws := files(t, map[string]string{"pool.yaml": strings.Replace(poolYAML, "karpenter.kwok.sh, kind: KWOKNodeClass",
		"karpenter.k8s.aws, kind: EC2NodeClass", 1)})
	a = simulateJSON(t, "--live", "--kubeconfig", kubeconfig, "-f", aws, "--cloud-provider=kwok")
	if text := fmt.Sprint(a.Unschedulable); a.Pods.New != 0 || !strings.Contains(text,
		"what the pool can launch is not known: --cloud-provider=kwok excludes pools of the kind EC2NodeClass") {
		t.Errorf("got %s", text)
	}
	a = simulateJSON(t, "--live", "--kubeconfig", kubeconfig, "-f", aws)
	if text := fmt.Sprint(a.Unschedulable); !strings.Contains(text, `EC2NodeClass "default" does not exist`) {
		t.Errorf("got %s", text)
	}
}
