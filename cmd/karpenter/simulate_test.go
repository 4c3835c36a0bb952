package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const poolYAML = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: example.com, kind: AnyClass, name: default}
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

// simulate runs the verb as the program does and returns what it prints.
func simulate(t *testing.T, stdin string, arguments ...string) (string, error) {
	t.Helper()
	root := newRootCommand()
	var out, progress bytes.Buffer
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&progress)
	root.SetArgs(append([]string{"simulate"}, arguments...))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func simulateJSON(t *testing.T, arguments ...string) answer {
	t.Helper()
	out, err := simulate(t, "", append(arguments, "-o", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	return a
}

func TestSimulateFolder(t *testing.T) {
	folder := files(t, map[string]string{"pool.yaml": poolYAML, "web.yaml": webYAML, "instance-types.json": typesJSON,
		"service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n", "notes.txt": "not a manifest"})
	a := simulateJSON(t, "-f", folder)
	for i := range a.Nodes {
		a.Nodes[i].Name = strings.TrimRight(a.Nodes[i].Name, "0123456789abcdefghijklmnopqrstuvwxyz")
	}
	if a.Stats == nil || a.Stats.WallSeconds <= 0 || a.Stats.AllocBytes == 0 {
		t.Errorf("statistics are %+v", a.Stats)
	}
	pods := []string{"default/web-0", "default/web-1", "default/web-2"}
	want := answer{
		Pods: podCounts{Total: 3, New: 3},
		Nodes: []newNode{{Name: "default-", NodePool: "default", InstanceType: "small", Zone: "a", CapacityType: "on-demand", PricePerHour: 0.1,
			InstanceTypes: []string{"small", "large"}, Pods: pods,
			Requests: map[string]string{"cpu": "1500m", "memory": "3Gi", "pods": "3"}, Allocatable: map[string]string{"cpu": "1900m", "memory": "4Gi", "pods": "20"}}},
		ExistingNodes: []existing{}, Unschedulable: []refusal{}, BindOrder: pods, PricePerHour: 0.1, CostPerHour: 0.105,
	}
	ignore := cmpopts.IgnoreFields(answer{}, "Stats", "LowerBoundPerHour", "LowerBoundCostPerHour")
	if diff := cmp.Diff(want, a, ignore, cmpopts.IgnoreUnexported(newNode{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSimulateKinds(t *testing.T) {
	for _, c := range []struct {
		name    string
		objects string
		placed  int
	}{
		{"deployment", webYAML, 3},
		{"one replica if it does not say", strings.Replace(webYAML, "replicas: 3", "paused: false", 1), 1},
		{"replicas that exist are not made again", webYAML + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web-x, labels: {app: web}}\nspec: {nodeName: n1, containers: [{name: c, image: i}]}\n", 2},
		{"statefulset", strings.Replace(webYAML, "Deployment", "StatefulSet", 1), 3},
		{"replicaset", strings.Replace(webYAML, "Deployment", "ReplicaSet", 1), 3},
		{"job", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  parallelism: 4\n  completions: 2\n  template: {spec: {containers: [{name: c, image: i}]}}\n", 2},
		{"list", `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}]}`, 1},
		{"two JSON objects", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
		  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}`, 2},
		{"a finished pod wants nothing", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\nstatus: {phase: Succeeded}\n", 0},
		{"empty documents", "---\n# nothing\n---\n" + webYAML + "---\n", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := files(t, map[string]string{"pool.yaml": poolYAML, "objects": c.objects, "types": typesJSON})
			a := simulateJSON(t, "-f", filepath.Join(folder, "objects"), "-f", filepath.Join(folder, "pool.yaml"), "--instance-types", filepath.Join(folder, "types"))
			placed := 0
			for _, n := range a.Nodes {
				placed += len(n.Pods)
			}
			if placed != c.placed || len(a.Unschedulable) > 0 {
				t.Errorf("placed %d pods, want %d: %+v", placed, c.placed, a)
			}
		})
	}
}

func TestSimulateExistingNodesAndDaemons(t *testing.T) {
	world := poolYAML + `---
apiVersion: v1
kind: Node
metadata: {name: old, labels: {kubernetes.io/hostname: old}}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 20}, allocatable: {cpu: 4, memory: 8Gi, pods: 20}}
---
apiVersion: v1
kind: Pod
metadata: {name: busy}
spec: {nodeName: old, containers: [{name: c, image: i, resources: {requests: {cpu: 3}}}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: kube-system}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}
---
` + webYAML
	folder := files(t, map[string]string{"world.yaml": world, "instance-types.json": typesJSON})
	a := simulateJSON(t, "-f", folder)
	want := []existing{{Name: "old", Pods: []string{"default/web-0", "default/web-1"}}}
	if diff := cmp.Diff(want, a.ExistingNodes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(a.Nodes) != 1 || a.Nodes[0].InstanceType != "small" || len(a.Nodes[0].Pods) != 1 {
		t.Errorf("got %+v", a.Nodes)
	}
}

func TestSimulateProviderLabels(t *testing.T) {
	selecting := func(name, selector string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {%s, containers: [{name: c, image: i}]}\n", name, selector)
	}
	family := "nodeSelector: {example.com/family: s}"
	without := "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: example.com/nvme, operator: DoesNotExist}]}]}}}"
	with := "nodeSelector: {example.com/nvme: fast}"
	unknown := "nodeSelector: {example.com/unknown: x}"
	folder := files(t, map[string]string{"pool.yaml": poolYAML, "instance-types.json": typesJSON, "meta.json": `{"providerLabels": ["example.com/nvme", "example.com/family"], "seed": 1}`,
		"pods.yaml": strings.Join([]string{selecting("family", family), selecting("without", without), selecting("with", with), selecting("unknown", unknown)}, "---\n")})
	a := simulateJSON(t, "-f", folder)
	var refused []string
	for _, u := range a.Unschedulable {
		for _, r := range u.Reasons {
			refused = append(refused, u.Pod+": "+r.Code+" "+r.NodePool+" "+r.Message)
		}
	}
	want := []string{
		"default/unknown: LabelUndefined default label example.com/unknown is required, and the pool does not define it (pod: In [x])",
		"default/with: TypesExcluded default none of 2 types has what is required of label example.com/nvme (pod: In [fast])",
	}
	slices.Sort(refused)
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSimulateText(t *testing.T) {
	folder := files(t, map[string]string{"pool.yaml": poolYAML, "instance-types.json": typesJSON, "web.yaml": strings.Replace(webYAML, "cpu: 500m", "cpu: 50", 1)})
	out, err := simulate(t, "", "-f", folder)
	want := `NO PLACE for default/web-0 and 2 more
  pool default: needs 50 of cpu, the largest of 2 types has 7900m

3 pods: 0 on 0 new nodes, 0 on nodes that exist, 3 without a place
`
	if err != nil || out != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, out))
	}
	out, err = simulate(t, poolYAML+"---\n"+webYAML, "-f", "-", "--instance-types", filepath.Join(folder, "instance-types.json"))
	if err != nil || !strings.Contains(out, "NEW NODE") || !strings.Contains(out, "3 pods: 3 on 1 new node, 0 on nodes that exist, 0 without a place\nprice 0.1000 USD per hour, cost 0.1050") ||
		!strings.Contains(out, "████████░░  79%") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestSimulateFailOnUnschedulable(t *testing.T) {
	folder := files(t, map[string]string{"web.yaml": webYAML})
	out, err := simulate(t, "", "-f", folder, "--fail-on-unschedulable")
	var usage *usageError
	if err == nil || errors.As(err, &usage) || err.Error() != "3 of 3 pods have no place" || !strings.Contains(out, "there is no node pool") {
		t.Errorf("error %v, output\n%s", err, out)
	}
	if _, err := simulate(t, "", "-f", folder); err != nil {
		t.Errorf("without the flag: %v", err)
	}
}

// TestSimulateBadInput: every complaint is one line that names file, document and field, with exit code 2.
func TestSimulateBadInput(t *testing.T) {
	folder := files(t, map[string]string{
		"broken.yaml": poolYAML + "---\na: [b\n", "cut.json": `{"apiVersion": "v1", "kind": "Pod"`, "kindless.yaml": "metadata: {name: x}\n",
		"typo.yaml":     strings.Replace(poolYAML, "requirements", "requirments", 1),
		"type.yaml":     strings.Replace(webYAML, "replicas: 3", "replicas: many", 1),
		"quantity.yaml": strings.Replace(webYAML, "cpu: 500m", "cpu: a lot", 1),
		"pool.yaml":     strings.Replace(poolYAML, "operator: In", "operator: Near", 1),
		"nameless.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {}\n", "twice.yaml": poolYAML + "---\n" + poolYAML,
		"types.json": `{"instanceTypes": []}`, "list.json": `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"x": 1}}]}`,
		"good.yaml": poolYAML, "syntax.json": "{\"apiVersion\": \"v1\",\n }",
	})
	if err := os.Mkdir(filepath.Join(folder, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(folder, name) }
	for _, c := range []struct {
		arguments []string
		want      []string
	}{
		{nil, []string{"-f"}},
		{[]string{"-f", at("good.yaml"), "-o", "xml"}, []string{"--output", `"xml"`, "text or json"}},
		{[]string{"-f", at("missing.yaml")}, []string{"missing.yaml", "no such file"}},
		{[]string{"-f", at("empty")}, []string{"empty", "want manifests"}},
		{[]string{"-f", at("broken.yaml")}, []string{"broken.yaml: document 2", "line"}},
		{[]string{"-f", at("cut.json")}, []string{"cut.json: document 1", "cut off"}},
		{[]string{"-f", at("syntax.json")}, []string{"syntax.json: document 1: line 2: is not JSON"}},
		{[]string{"-f", at("kindless.yaml")}, []string{"kindless.yaml: document 1", "apiVersion or kind"}},
		{[]string{"-f", at("typo.yaml")}, []string{"typo.yaml: document 1: NodePool default", `unknown field "spec.template.spec.requirments"`}},
		{[]string{"-f", at("type.yaml")}, []string{"type.yaml: document 1: Deployment web: spec.replicas: is a JSON string, want int32"}},
		{[]string{"-f", at("quantity.yaml")}, []string{`Deployment web: spec.template.spec.containers[0].resources.requests.cpu: is "a lot", want a quantity`}},
		{[]string{"-f", at("pool.yaml")}, []string{"pool.yaml: document 1: NodePool default", "spec.template.spec.requirements[0].operator", "Near"}},
		{[]string{"-f", at("nameless.yaml")}, []string{"nameless.yaml: document 1", "metadata.name is missing"}},
		{[]string{"-f", at("twice.yaml")}, []string{"twice.yaml: document 2: NodePool default", "another object of the name"}},
		{[]string{"-f", at("list.json")}, []string{"list.json: document 1: item 0: Pod p", `"spec.x"`}},
		{[]string{"-f", at("good.yaml"), "--instance-types", at("types.json")}, []string{"types.json", "no instance types"}},
		{[]string{"-f", at("good.yaml"), "--instance-types", at("missing.json")}, []string{"missing.json", "no such file"}},
		{[]string{"-f", at("good.yaml"), "--bogus"}, []string{"--bogus"}},
		{[]string{"good.yaml", "-f", at("good.yaml")}, []string{"good.yaml"}},
	} {
		out, err := simulate(t, "", c.arguments...)
		var usage *usageError
		if !errors.As(err, &usage) {
			t.Errorf("%v: got error %v and output %q, want a usage error", c.arguments, err, out)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v: got %q, want one line with %q", c.arguments, err, want)
			}
		}
	}
}
