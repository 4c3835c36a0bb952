package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/offline"
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
      - {name: web, image: web, resources: {requests: {cpu: 500m}, limits: {memory: 1Gi}}}
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

// simulate runs the verb in this process and returns its output.
func simulate(t *testing.T, stdin string, arguments ...string) (string, error) {
	t.Helper()
	return runProgram(t, stdin, append([]string{"simulate"}, arguments...)...)
}

// runProgram runs the program with arguments and returns its output.
func runProgram(t *testing.T, stdin string, arguments ...string) (string, error) {
	t.Helper()
	out, _, err := runBoth(t, stdin, arguments...)
	return out, err
}

// runBoth returns the program's standard output and standard error.
func runBoth(t *testing.T, stdin string, arguments ...string) (string, string, error) {
	t.Helper()
	root := newRootCommand()
	var out, progress bytes.Buffer
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&progress)
	root.SetArgs(arguments)
	err := root.ExecuteContext(t.Context())
	return out.String(), progress.String(), err
}

func simulateJSON(t *testing.T, arguments ...string) offline.LaunchAnswer {
	t.Helper()
	out, err := simulate(t, "", append(arguments, "-o", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	var a offline.LaunchAnswer
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
	switch {
	case a.Stats == nil:
		t.Error("no statistics")
	case a.Stats.WallSeconds <= 0:
		t.Errorf("the plan took %v s, want more than 0", a.Stats.WallSeconds)
	case a.Stats.AllocBytes == 0:
		t.Error("the plan allocated no bytes, want some")
	}
	pods := []string{"default/web-0", "default/web-1", "default/web-2"}
	want := offline.LaunchAnswer{
		Pods: offline.PodCounts{Total: 3, New: 3},
		Nodes: []offline.NewNode{{Name: "default-", NodePool: "default", InstanceType: "small", Zone: "a", CapacityType: "on-demand", PricePerHour: 0.1,
			InstanceTypes: []string{"small", "large"}, Pods: pods,
			Requests: map[string]string{"cpu": "1500m", "memory": "3Gi", "pods": "3"}, Allocatable: map[string]string{"cpu": "1900m", "memory": "4Gi", "pods": "20"}}},
		ExistingNodes: []offline.ExistingNode{}, Unschedulable: []offline.Unschedulable{}, BindOrder: pods, PricePerHour: 0.1, CostPerHour: 0.105,
	}
	ignore := cmpopts.IgnoreFields(offline.LaunchAnswer{}, "Stats", "LowerBoundPerHour", "LowerBoundCostPerHour")
	if diff := cmp.Diff(want, a, ignore, cmpopts.IgnoreUnexported(offline.NewNode{})); diff != "" {
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
		{"job", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  parallelism: 4\n  completions: 2\n  template: {spec: " +
			"{restartPolicy: Never, containers: [{name: c, image: i}]}}\n", 2},
		{"list", `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}]}`, 1},
		{"two JSON objects", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
		  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}`, 2},
		{"a finished pod wants nothing", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\nstatus: {phase: Succeeded}\n", 0},
		{"cronjob", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: j}\nspec:\n  schedule: 0 * * * *\n  jobTemplate: {spec: " +
			"{parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}\n", 2},
		{"suspended cronjob", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: j}\nspec:\n  suspend: true\n  schedule: 0 * * * *\n  " +
			"jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}\n", 0},
		{"a run of a cronjob counts once", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: j}\nspec:\n  schedule: 0 * * * *\n  " +
			"jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}\n" +
			"---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: j-1, ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: j, uid: " +
			"u, controller: true}]}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}\n", 1},
		{"a replica set of a deployment counts once", webYAML + "---\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web-1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u, controller: true}]}\n" +
			"spec: {replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}\n", 3},
		{"a statefulset makes its volume claims", strings.Replace(webYAML, "Deployment", "StatefulSet", 1) + "  volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: disks, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]\n" +
			"---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: disks}\nprovisioner: disks.example.com\nvolumeBindingMode: WaitForFirstConsumer\n", 3},
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

// TestSimulateStatefulSet checks that pods of a StatefulSet are identified by their ordinals.
func TestSimulateStatefulSet(t *testing.T) {
	set := strings.Replace(webYAML, "Deployment", "StatefulSet", 1)
	pod := func(name, phase string) string {
		return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", labels: {app: web}}\nspec: {nodeName: n1, containers: [{name: c, image: i}]}\nstatus: {phase: " + phase + "}\n"
	}
	later := strings.Replace(set, "replicas: 3", "replicas: 3\n  ordinals: {start: 5}", 1)
	for _, c := range []struct {
		name, objects string
		want          []string
	}{
		{"none is there", set, []string{"default/web-0", "default/web-1", "default/web-2"}},
		{"the last is there", set + pod("web-2", "Running"), []string{"default/web-0", "default/web-1"}},
		{"one between is missing", set + pod("web-0", "Running") + pod("web-2", "Running"), []string{"default/web-1"}},
		{"one too many replaces none", set + pod("web-0", "Running") + pod("web-7", "Running"), []string{"default/web-1", "default/web-2"}},
		{"ordinals start later", later + pod("web-6", "Running"), []string{"default/web-5", "default/web-7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := files(t, map[string]string{"pool.yaml": poolYAML, "objects.yaml": c.objects, "instance-types.json": typesJSON})
			var got []string
			for _, n := range simulateJSON(t, "-f", folder).Nodes {
				got = append(got, n.Pods...)
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
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
	want := []offline.ExistingNode{{Name: "old", Pods: []string{"default/web-0", "default/web-1"}}}
	if diff := cmp.Diff(want, a.ExistingNodes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	switch {
	case len(a.Nodes) != 1:
		t.Errorf("%d nodes, want 1: %+v", len(a.Nodes), a.Nodes)
	case a.Nodes[0].InstanceType != "small":
		t.Errorf(`a.Nodes[0].InstanceType is %q, want "small"`, a.Nodes[0].InstanceType)
	case len(a.Nodes[0].Pods) != 1:
		t.Errorf("%d pods, want 1: %+v", len(a.Nodes[0].Pods), a.Nodes[0].Pods)
	}
}

// TestSimulateAdmission checks that pods that do not exist yet, including those of DaemonSets, have the requests that
// admission sets. A template without requests may get some.
func TestSimulateAdmission(t *testing.T) {
	world := poolYAML + `---
apiVersion: v1
kind: LimitRange
metadata: {name: defaults, namespace: agents}
spec: {limits: [{type: Container, default: {cpu: 2, memory: 1Gi}}]}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: vm}
handler: vm
overhead: {podFixed: {cpu: 250m}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: agents}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: new, namespace: agents}
spec: {runtimeClassName: vm, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: stored, namespace: agents, resourceVersion: "7"}
spec: {runtimeClassName: vm, containers: [{name: c, image: i}]}
`
	a := simulateJSON(t, "-f", files(t, map[string]string{"world.yaml": world, "instance-types.json": typesJSON}))
	const why = "the agent takes 2 CPU, the new pod 2.25, the stored one nothing"
	if len(a.Nodes) != 1 {
		t.Fatalf("%d nodes, want 1, as %s: %+v", len(a.Nodes), why, a.Nodes)
	}
	if a.Nodes[0].InstanceType != "large" || len(a.Nodes[0].Pods) != 2 {
		t.Fatalf("the node is %+v, want a large one with 2 pods, as %s", a.Nodes[0], why)
	}
	if got := a.Nodes[0].Requests["cpu"]; got != "4250m" {
		t.Errorf("the node has requests of %s cpu, want 4250m", got)
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
		"default/with: TypesExcluded default none of 2 types satisfies the requirements on label example.com/nvme (pod: In [fast])",
	}
	slices.Sort(refused)
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSimulateText(t *testing.T) {
	folder := files(t, map[string]string{"pool.yaml": poolYAML, "instance-types.json": typesJSON, "web.yaml": strings.Replace(webYAML, "cpu: 500m", "cpu: 50", 1)})
	out, err := simulate(t, "", "-f", folder)
	want := `UNSCHEDULABLE default/web-0 and 2 more
  pool default: needs 50 of cpu, the largest of 2 types has 7900m

3 pods: 0 on 0 new nodes, 0 on existing nodes, 3 unschedulable
`
	if err != nil || out != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, out))
	}
	out, err = simulate(t, poolYAML+"---\n"+webYAML, "-f", "-", "--instance-types", filepath.Join(folder, "instance-types.json"))
	if err != nil {
		t.Errorf("unexpected error: %v", err)
	}
	for _, want := range []string{
		"NEW NODE",
		"3 pods: 3 on 1 new node, 0 on existing nodes, 0 unschedulable\nprice 0.1000 USD per hour, cost 0.1050",
		"████████░░  79%",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestSimulateFailOnUnschedulable(t *testing.T) {
	folder := files(t, map[string]string{"web.yaml": webYAML})
	out, err := simulate(t, "", "-f", folder, "--fail-on-unschedulable")
	if err == nil || err.Error() != "3 of 3 pods are unschedulable" {
		t.Errorf("got error %v, want 3 of 3 pods are unschedulable", err)
	}
	if code := cli.ExitCode(err); code == 2 {
		t.Error("exit code 2 is that of bad input")
	}
	if !strings.Contains(out, "there is no node pool") {
		t.Errorf("the reason is missing in\n%s", out)
	}
	if _, err := simulate(t, "", "-f", folder); err != nil {
		t.Errorf("without the flag: %v", err)
	}
}

// TestSimulateBoundsWorkloads checks that a workload with too many pods is reported and excluded, and that the rest
// is decided.
func TestSimulateBoundsWorkloads(t *testing.T) {
	job := "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: 2147483647, template: {spec: {restartPolicy: " +
		"Never, containers: [{name: c, image: i}]}}}\n"
	set := "---\n" + strings.NewReplacer("Deployment", "StatefulSet", "web", "db", "replicas: 3", "replicas: 2000000000").Replace(webYAML)
	folder := files(t, map[string]string{"pool.yaml": poolYAML, "instance-types.json": typesJSON, "web.yaml": webYAML + job + set})
	out, progress, err := runBoth(t, "", "simulate", "-f", folder, "-o", "json")
	var a offline.LaunchAnswer
	switch {
	case cli.ExitCode(err) != 2:
		t.Fatalf("exit code %d, want 2", cli.ExitCode(err))
	case json.Unmarshal([]byte(out), &a) != nil:
		t.Fatalf("no JSON of a %T:\n%s", a, out)
	case a.Pods.New != 3:
		t.Fatalf("a.Pods.New is %v, want 3", a.Pods.New)
	}
	for _, want := range []string{"Job j: spec.parallelism: is 2147483647, and at most 999997 pods may be added", "StatefulSet db: spec.replicas: is 2000000000"} {
		if all := progress + err.Error(); !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if _, err := simulate(t, "", "-f", filepath.Join(folder, "pool.yaml"), "-f", "-", "--max-pods", "2"); err != nil {
		t.Errorf("without pods: %v", err)
	}
	if out, err := simulate(t, webYAML, "-f", "-", "--max-pods", "2"); cli.ExitCode(err) != 2 || out != "" {
		t.Errorf("three pods with a limit of two: %v\n%s", err, out)
	}
	if out, err := simulate(t, webYAML, "-f", "-", "--max-pods", "3"); err != nil || !strings.Contains(out, "3 pods") {
		t.Errorf("three pods with a limit of three: %v\n%s", err, out)
	}
}

// TestSimulatePassesOver checks that ignored kinds are reported with their version, and are not errors.
func TestSimulatePassesOver(t *testing.T) {
	folder := files(t, map[string]string{"pool.yaml": poolYAML + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n" +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: t}\n" +
		"---\napiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\n"})
	_, progress, err := runBoth(t, "", "simulate", "-f", folder)
	want := "skipped 1 object of kind ConfigMap\n" +
		"skipped 1 object of kind Job of batch.volcano.sh/v1alpha1\nskipped 2 objects of kind Secret\n" +
		"no pod is pending, so nothing is launched; pods read: 0, of which bound: 0, finished: 0\n"
	if err != nil || progress != want {
		t.Errorf("%v\n%s", err, cmp.Diff(want, progress))
	}
}

// TestSimulateProviders checks that no types and prices are invented: those of a provider that is not built in are not
// known, which is bad input unless the pools are excluded, and the other pools are decided about.
func TestSimulateProviders(t *testing.T) {
	of := func(class, name string) string {
		changed := strings.NewReplacer("karpenter.kwok.sh, kind: KWOKNodeClass", class, "name: default}\nspec", "name: "+name+"}\nspec")
		return changed.Replace(poolYAML) + "---\n"
	}
	azure, auto, wrong := of("karpenter.azure.com, kind: AKSNodeClass", "azure"), of("eks.amazonaws.com, kind: NodeClass", "auto"),
		of("karpenter.kwok.sh, kind: NodeClass", "wrong")
	amazon := of("karpenter.k8s.aws, kind: EC2NodeClass", "amazon")
	classless := strings.Replace(poolYAML, "      nodeClassRef: {group", "      # {group", 1)
	kindless := strings.Replace(poolYAML, "kind: KWOKNodeClass, ", "", 1)
	const unknown = "want --instance-types FILE"
	excluded := []string{"--cloud-provider=kwok"}
	for name, c := range map[string]struct {
		pools     string
		arguments []string
		code      int
		placed    int
		says      []string
	}{
		"kwok":                        {poolYAML, nil, 0, 3, nil},
		"another provider":            {azure, nil, 2, 0, []string{"NodePool azure: spec.template.spec.nodeClassRef: ", "AKSNodeClass", unknown}},
		"EKS Auto Mode":               {auto, nil, 2, 0, []string{"NodePool auto: ", "NodeClass.eks.amazonaws.com", unknown}},
		"another kind":                {wrong, nil, 2, 0, []string{"NodePool wrong: ", "NodeClass.karpenter.kwok.sh", unknown}},
		"beside kwok":                 {azure + poolYAML, nil, 2, 3, []string{"NodePool azure: "}},
		"beside AWS":                  {azure + amazon, nil, 2, 3, []string{"NodePool azure: ", unknown}},
		"with types":                  {azure, []string{"--instance-types", "types.json"}, 0, 3, nil},
		"excluded":                    {azure, excluded, 0, 0, []string{"--cloud-provider=kwok excludes pools of the kind AKSNodeClass"}},
		"AWS excluded":                {amazon, excluded, 0, 0, []string{"--cloud-provider=kwok excludes pools of the kind EC2NodeClass"}},
		"excluded beside kwok":        {azure + amazon + poolYAML, excluded, 0, 3, nil},
		"without a node class":        {classless, nil, 2, 0, []string{"spec.template.spec.nodeClassRef: is required"}},
		"without the kind of a class": {kindless, nil, 2, 0, []string{"spec.template.spec.nodeClassRef.kind: is required"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := files(t, map[string]string{"pools.yaml": c.pools, "web.yaml": webYAML})
			arguments := slices.Clone(c.arguments)
			if slices.Contains(arguments, "types.json") {
				arguments[1] = filepath.Join(files(t, map[string]string{"types.json": typesJSON}), "types.json")
			}
			out, progress, err := runBoth(t, "", append([]string{"simulate", "-o", "json", "-f", folder}, arguments...)...)
			all := fmt.Sprint(out, progress, err)
			if cli.ExitCode(err) != c.code {
				t.Fatalf("exit code of %v, want %d", err, c.code)
			}
			var a offline.LaunchAnswer
			if err := json.Unmarshal([]byte(out), &a); err != nil || a.Pods.New != c.placed {
				t.Errorf("%v, %d pods on new nodes, want %d:\n%s", err, a.Pods.New, c.placed, out)
			}
			for _, want := range c.says {
				if !strings.Contains(all, want) {
					t.Errorf("no %q in\n%s", want, all)
				}
			}
		})
	}
}

// TestSimulateChosenLabels checks that the answer contains the value of a custom label for which the pool allows
// several.
func TestSimulateChosenLabels(t *testing.T) {
	pool := strings.Replace(poolYAML, "requirements: [", "requirements: [{key: team, operator: In, values: [red, blue]}, {key: floor, operator: In, values: [\"2\"]}, ", 1)
	folder := files(t, map[string]string{"pool.yaml": pool, "instance-types.json": typesJSON, "web.yaml": webYAML})
	a := simulateJSON(t, "-f", folder)
	if diff := cmp.Diff(map[string]string{"team": "blue"}, a.Nodes[0].Labels); len(a.Nodes) != 1 || diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	out, err := simulate(t, "", "-f", folder)
	if err != nil {
		t.Errorf("unexpected error: %v", err)
	}
	for _, want := range []string{"LABELS CHOSEN", "  team=blue\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestSimulateDocument checks that the documented fields exist under their names, even if they are empty.
func TestSimulateDocument(t *testing.T) {
	node := "---\napiVersion: v1\nkind: Node\nmetadata: {name: old, labels: {kubernetes.io/hostname: old}}\nstatus: {allocatable: {cpu: 1, memory: 8Gi, pods: 20}}\n"
	folder := files(t, map[string]string{"pool.yaml": poolYAML + node, "instance-types.json": typesJSON,
		"web.yaml": webYAML + "---\n" + strings.NewReplacer("web", "big", "500m", "50").Replace(webYAML)})
	names := func(text string) []string {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		return slices.Sorted(maps.Keys(object))
	}
	first := func(text, field string) string {
		var object map[string][]json.RawMessage
		_ = json.Unmarshal([]byte(text), &object) // other fields are not lists
		if len(object[field]) == 0 {
			t.Fatalf("no %s in\n%s", field, text)
		}
		return string(object[field][0])
	}
	member := func(text, field string) string {
		var object map[string]json.RawMessage
		_ = json.Unmarshal([]byte(text), &object) // names has reported the error
		return string(object[field])
	}
	full, err := simulate(t, "", "-f", folder, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	empty, err := simulate(t, poolYAML, "-f", "-", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	top := []string{"bindOrder", "costPerHour", "existingNodes", "lowerBoundCostPerHour", "lowerBoundPerHour", "nodes", "pods", "pricePerHour", "stats", "unschedulable"}
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"the answer", full, top},
		{"an empty answer", empty, top},
		{"pods", member(full, "pods"), []string{"existing", "new", "total", "unschedulable"}},
		{"a node", first(full, "nodes"), []string{"allocatable", "capacityType", "instanceType", "instanceTypes", "name", "nodePool", "pods", "pricePerHour", "requests", "zone"}},
		{"an existing node", first(full, "existingNodes"), []string{"name", "pods"}},
		{"an unschedulable pod", first(full, "unschedulable"), []string{"pod", "reasons"}},
		{"a reason", first(first(full, "unschedulable"), "reasons"), []string{"code", "message", "nodePool"}},
		{"statistics", member(full, "stats"), []string{"allocBytes", "cpuSeconds", "peakRSSBytes", "wallSeconds"}},
	} {
		if diff := cmp.Diff(c.want, names(c.text)); diff != "" {
			t.Errorf("%s, -want +got:\n%s", c.name, diff)
		}
	}
	if strings.Contains(empty, "null") {
		t.Errorf("a list without members is null:\n%s", empty)
	}
}

// TestSimulateReportsAndGoesOn checks that unreadable input is reported, line by line, and that the rest is decided
// and printed.
func TestSimulateReportsAndGoesOn(t *testing.T) {
	folder := files(t, map[string]string{"pool.yaml": poolYAML, "instance-types.json": typesJSON, "web.yaml": webYAML,
		"bad.yaml":   "a: [b\n---\n" + strings.Replace(webYAML, "replicas: 3", "replicas: many", 1) + "---\n" + strings.ReplaceAll(webYAML, "web", "after"),
		"claim.yaml": "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: c}\nspec: {nodeClassRef: {group: g, kind: k, name: class}, requirements: [{key: a, operator: Near}]}\n",
		"pools.yaml": strings.NewReplacer("name: default}\nspec", "name: odd}\nspec", "operator: In", "operator: Near").Replace(poolYAML),
	})
	out, progress, err := runBoth(t, "", "simulate", "-f", folder, "-f", filepath.Join(folder, "none"), "-o", "json")
	if cli.ExitCode(err) != 2 {
		t.Fatalf("got %v, want a usage error", err)
	}
	var a offline.LaunchAnswer
	if err := json.Unmarshal([]byte(out), &a); err != nil || a.Pods.New != 6 {
		t.Errorf("%v in\n%s", err, out)
	}
	all := progress + err.Error()
	for _, want := range []string{
		"bad.yaml: document 1: ", "bad.yaml: document 2: Deployment web: spec.replicas: is a JSON string, want an integer, 2147483647 at most",
		"none: no such file", "NodePool odd: spec.template.spec.requirements[0].operator", "NodeClaim c: spec.requirements[0].operator: is \"Near\", want ",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if n := strings.Count(strings.TrimSpace(all), "\n"); n != 4 {
		t.Errorf("%d lines, want 5:\n%s", n+1, all)
	}
}

// TestSimulateVolumes checks that a claim bound to a volume in a zone restricts its pod to the zone, that a CSINode's
// limit is respected, and that a claim that is not among the files is assumed.
func TestSimulateVolumes(t *testing.T) {
	types := strings.ReplaceAll(typesJSON, `"offerings": [`, `"offerings": [{"zone": "b", "capacityType": "on-demand", "price": 0.9, "available": true}, `)
	volumes := `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {volumeName: pv1, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
status: {phase: Bound}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv1}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: disks.example.com, volumeHandle: h}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [b]}]}]}}
---
apiVersion: v1
kind: Node
metadata: {name: full, labels: {kubernetes.io/hostname: full, topology.kubernetes.io/zone: b}}
status: {capacity: {cpu: 8, memory: 8Gi, pods: 20}, allocatable: {cpu: 8, memory: 8Gi, pods: 20}}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: full}
spec: {drivers: [{name: disks.example.com, nodeID: full, topologyKeys: [], allocatable: {count: 0}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: i}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: q}
spec: {containers: [{name: c, image: i}], volumes: [{name: v, persistentVolumeClaim: {claimName: none}}]}
`
	folder := files(t, map[string]string{"pool.yaml": poolYAML, "instance-types.json": types, "volumes.yaml": volumes})
	a := simulateJSON(t, "-f", folder)
	if len(a.Nodes) != 1 || a.Nodes[0].Zone != "b" {
		t.Errorf("new nodes %+v, want one in zone b", a.Nodes)
	}
	if want := []string{"default/q"}; len(a.ExistingNodes) != 1 || !slices.Equal(a.ExistingNodes[0].Pods, want) {
		t.Errorf("pods go to existing nodes %+v, want %v, whose volume is assumed to be of no driver", a.ExistingNodes, want)
	}
	want := []offline.Missing{{Kind: "PersistentVolumeClaim", Name: "default/none",
		Assumed: "taken as bound to a volume that any node can use"}}
	if diff := cmp.Diff(want, a.Missing); diff != "" || len(a.Unschedulable) != 0 {
		t.Errorf("unschedulable %+v, want none; missing (-want +got):\n%s", a.Unschedulable, diff)
	}
}

// TestSimulatePolicies checks that the cost of preferences is printed, that --preference-policy=Ignore avoids it, and
// that the node price has an effect.
func TestSimulatePolicies(t *testing.T) {
	wishing := strings.Replace(webYAML, "    spec:\n", "    spec:\n      affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}}]}}\n", 1)
	folder := files(t, map[string]string{"pool.yaml": poolYAML, "instance-types.json": typesJSON, "web.yaml": wishing})
	a := simulateJSON(t, "-f", folder, "--node-overhead-price", "0.1")
	if len(a.Nodes) != 3 || math.Abs(a.CostPerHour-0.6) > 0.001 {
		t.Errorf("%d nodes for %v USD per hour, want 3 for 0.6", len(a.Nodes), a.CostPerHour)
	}
	if a.Preferences == nil || a.Preferences.Nodes != 2 {
		t.Errorf("the preferences cost %+v, want 2 nodes", a.Preferences)
	}
	if a := simulateJSON(t, "-f", folder, "--preference-policy", "Ignore"); len(a.Nodes) != 1 || a.Preferences != nil {
		t.Errorf("got %+v", a)
	}
	spread := `{podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}]}}`
	plain := files(t, map[string]string{"pool.yaml": poolYAML, "instance-types.json": typesJSON, "web.yaml": webYAML})
	if a := simulateJSON(t, "-f", plain, "--scheduler-config", spread); len(a.Nodes) != 3 {
		t.Errorf("the default spread has no effect: %+v", a)
	}
}

// TestSimulateLeavesOut checks that gated pods and terminating pods get no node, with the reason.
func TestSimulateLeavesOut(t *testing.T) {
	folder := files(t, map[string]string{"pool.yaml": poolYAML, "instance-types.json": typesJSON, "pods.yaml": `apiVersion: v1
kind: Pod
metadata: {name: gated}
spec: {schedulingGates: [{name: example.com/quota}], containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: going, deletionTimestamp: "2026-01-01T00:00:00Z"}
spec: {containers: [{name: c, image: i}]}
`})
	a := simulateJSON(t, "-f", folder)
	want := []offline.Unschedulable{
		{Pod: "default/gated", Reasons: []offline.Reason{{Code: "PodWaiting", Message: "spec.schedulingGates: the pod has scheduling gates: example.com/quota"}}},
		{Pod: "default/going", Reasons: []offline.Reason{{Code: "PodWaiting", Message: "metadata.deletionTimestamp: the pod is being deleted"}}},
	}
	if diff := cmp.Diff(want, a.Unschedulable); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// badInput is a command line of simulate and what its usage error contains.
type badInput struct {
	arguments []string
	want      []string
}

func (b badInput) run(t *testing.T) {
	t.Helper()
	out, err := simulate(t, "", b.arguments...)
	if cli.ExitCode(err) != 2 {
		t.Errorf("%v: got error %v and output %q, want a usage error", b.arguments, err, out)
		return
	}
	for _, want := range b.want {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: got %q, want one line with %q", b.arguments, err, want)
		}
	}
}

func TestSimulateBadManifests(t *testing.T) {
	folder := files(t, map[string]string{
		"broken.yaml": poolYAML + "---\na: [b\n", "cut.json": `{"apiVersion": "v1", "kind": "Pod"`, "kindless.yaml": "metadata: {name: x}\n",
		"typo.yaml":     strings.Replace(poolYAML, "requirements", "requirments", 1),
		"type.yaml":     strings.Replace(webYAML, "replicas: 3", "replicas: many", 1),
		"quantity.yaml": strings.Replace(webYAML, "cpu: 500m", "cpu: a lot", 1),
		"pool.yaml":     strings.Replace(poolYAML, "operator: In", "operator: Near", 1),
		"nameless.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {}\n", "twice.yaml": poolYAML + "---\n" + poolYAML,
		"types.json": `{"instanceTypes": []}`, "list.json": `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"x": 1}}]}`,
		"binary.yaml": "apiVersion: \x00v1\n", "weight.yaml": strings.Replace(poolYAML, "spec:\n", "spec:\n  weight: 500\n", 1),
		"budget.yaml": strings.Replace(poolYAML, "spec:\n", "spec:\n  disruption: {budgets: [{nodes: some}]}\n", 1),
		"heavy.yaml":  strings.Replace(poolYAML, "spec:\n", "spec:\n  weight: 5000000000\n", 1), "half.yaml": strings.Replace(webYAML, "replicas: 3", "replicas: 1.5", 1),
		"soon.yaml": strings.Replace(poolYAML, "spec:\n", "spec:\n  disruption: {consolidateAfter: soon}\n", 1), "array.json": `["apiVersion", "kind"]`, "text.yaml": "just a text\n",
		"name.yaml":       strings.Replace(poolYAML, "name: default", "name: 5", 1),
		"beta.yaml":       strings.Replace(poolYAML, "karpenter.sh/v1", "karpenter.sh/v1beta1", 1),
		"class.yaml":      poolYAML + "---\napiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {name: default}\n",
		"alpha.yaml":      "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: default}\n",
		"quota.yaml":      "apiVersion: autoscaling.x-k8s.io/v1alpha2\nkind: CapacityQuota\nmetadata: {name: all}\n",
		"extensions.yaml": strings.Replace(webYAML, "apps/v1", "extensions/v1beta1", 1),
		"negative.yaml":   strings.Replace(webYAML, "replicas: 3", "replicas: -3", 1),
		"good.yaml":       poolYAML, "syntax.json": "{\"apiVersion\": \"v1\",\n }",
	})
	if err := os.Mkdir(filepath.Join(folder, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(folder, name) }
	for _, c := range []badInput{
		{[]string{"-f", at("missing.yaml")}, []string{"missing.yaml", "no such file"}},
		{[]string{"-f", at("empty")}, []string{"empty", "want manifests"}},
		{[]string{"-f", at("broken.yaml")}, []string{"broken.yaml: document 2", "line"}},
		{[]string{"-f", at("cut.json")}, []string{"cut.json: document 1", "cut off"}},
		{[]string{"-f", at("syntax.json")}, []string{"syntax.json: document 1: line 2: is not JSON"}},
		{[]string{"-f", at("kindless.yaml")}, []string{"kindless.yaml: document 1", "apiVersion or kind"}},
		{[]string{"-f", at("typo.yaml")}, []string{"typo.yaml: document 1: NodePool default", "spec.template.spec.requirments: unknown field"}},
		{[]string{"-f", at("type.yaml")}, []string{"type.yaml: document 1: Deployment web: spec.replicas: is a JSON string, want an integer, 2147483647 at most"}},
		{[]string{"-f", at("quantity.yaml")}, []string{`Deployment web: spec.template.spec.containers[0].resources.requests.cpu: is "a lot", want a quantity`}},
		{[]string{"-f", at("pool.yaml")}, []string{"pool.yaml: document 1: NodePool default", "spec.template.spec.requirements[0].operator", "Near"}},
		{[]string{"-f", at("nameless.yaml")}, []string{"nameless.yaml: document 1", "metadata.name is missing"}},
		{[]string{"-f", at("twice.yaml")}, []string{"twice.yaml: document 2: NodePool default", "another object of the name"}},
		{[]string{"-f", at("list.json")}, []string{"list.json: document 1: item 1: Pod p", `"spec.x"`}},
		{[]string{"-f", at("good.yaml"), "--instance-types", at("types.json")}, []string{"types.json", "no instance types"}},
		{[]string{"-f", at("good.yaml"), "--instance-types", at("missing.json")}, []string{"missing.json", "no such file"}},
		{[]string{"-f", at("binary.yaml")}, []string{"binary.yaml: is not text (byte 0 at offset 12), want YAML or JSON as UTF-8"}},
		{[]string{"-f", at("good.yaml"), "--instance-types", "/dev/zero"},
			[]string{"reading instance types: /dev/zero: is not text (byte 0 at offset 0), want YAML or JSON as UTF-8"}},
		{[]string{"-f", "/dev/zero"}, []string{"/dev/zero: is not text (byte 0 at offset 0), want YAML or JSON as UTF-8"}},
		{[]string{"-f", at("weight.yaml")}, []string{"NodePool default: spec.weight: is 500, want 100 or less"}},
		{[]string{"-f", at("heavy.yaml")}, []string{"NodePool default: spec.weight: is 5000000000, want 100 or less"}},
		{[]string{"-f", at("half.yaml")}, []string{"Deployment web: spec.replicas: is 1.5, want an integer"}},
		{[]string{"-f", at("soon.yaml")}, []string{`NodePool default: spec.disruption.consolidateAfter: is "soon", want a duration such as 30s, 5m or 1h30m, or Never`}},
		{[]string{"-f", at("array.json")}, []string{"array.json: document 1: is a list, want a Kubernetes object"}},
		{[]string{"-f", at("text.yaml")}, []string{"text.yaml: document 1: is a text, want a Kubernetes object"}},
		{[]string{"-f", at("name.yaml")}, []string{"name.yaml: document 1: metadata.name: is a JSON number, want a string"}},
		{[]string{"-f", at("budget.yaml")}, []string{"NodePool default: spec.disruption.", `"some", want a number of nodes or a percentage`}},
		{[]string{"-f", at("beta.yaml")}, []string{"beta.yaml: document 1: NodePool default: apiVersion: is karpenter.sh/v1beta1, which is not read, want karpenter.sh/v1", "karpenter migrate -f FILE", "kubectl get nodepools.v1.karpenter.sh"}},
		{[]string{"-f", at("class.yaml")}, []string{"class.yaml: document 2: EC2NodeClass default: apiVersion: is karpenter.k8s.aws/v1beta1, which is not read, want karpenter.k8s.aws/v1", "karpenter migrate -f FILE", "kubectl get ec2nodeclasses.v1.karpenter.k8s.aws"}},
		{[]string{"-f", at("alpha.yaml")}, []string{"Provisioner default: apiVersion: is karpenter.sh/v1alpha5, which is not read, want a NodePool of karpenter.sh/v1"}},
		{[]string{"-f", at("quota.yaml")}, []string{"CapacityQuota all: apiVersion: is autoscaling.x-k8s.io/v1alpha2, which is not read, " +
			"want autoscaling.x-k8s.io/v1beta1"}},
		{[]string{"-f", at("extensions.yaml")}, []string{"Deployment web: apiVersion: is extensions/v1beta1, which is not read, want apps/v1"}},
		{[]string{"-f", at("negative.yaml")}, []string{"Deployment web: spec.replicas: Invalid value: -3: must be greater than or equal to 0"}},
	} {
		c.run(t)
	}
}

func TestSimulateBadFlags(t *testing.T) {
	good := filepath.Join(files(t, map[string]string{"good.yaml": poolYAML}), "good.yaml")
	for _, c := range []badInput{
		{nil, []string{"-f"}},
		{[]string{"-f", good, "-o", "xml"}, []string{"--output", `"xml"`, "text, wide, json or yaml"}},
		{[]string{"-f", good, "--bogus"}, []string{"--bogus"}},
		{[]string{"-f", good, "--repeat", "0"}, []string{"--repeat is 0"}},
		{[]string{"-f", good, "--repeat", "often"}, []string{`--repeat is "often", want an integer`}},
		{[]string{"-f", good, "--node-overhead-price", "a lot"}, []string{`--node-overhead-price is "a lot", want a number`}},
		{[]string{"-f", good, "--fail-on-unschedulable=yes"}, []string{`--fail-on-unschedulable is "yes", want true or false`}},
		{[]string{"-f", good, "--max-pods", "0"}, []string{"--max-pods is 0, want 1 or more"}},
		{[]string{"-f", good, "--cloud-provider", "gke"}, []string{`--cloud-provider is "gke", want kwok or aws`}},
		{[]string{"-f", good, "--vm-memory-overhead-percent", "7.5"}, []string{"--vm-memory-overhead-percent is 7.5, want 0 or more and less than 1"}},
		{[]string{"-f", good, "--reserved-enis", "-1"}, []string{"--reserved-enis is -1, want 0 or more"}},
		{[]string{"-f", good, "--now", "today"}, []string{`--now is "today"`, "2026-01-31T12:00:00Z"}},
		{[]string{"-f", good, "--preference-policy", "Maybe"}, []string{`--preference-policy is "Maybe", want Respect or Ignore`}},
		{[]string{"-f", good, "--min-values-policy", "Maybe"}, []string{`--min-values-policy is "Maybe", want Strict or BestEffort`}},
		{[]string{"-f", good, "--node-overhead-price", "-1"}, []string{"--node-overhead-price is -1"}},
		{[]string{"-f", good, "--node-overhead-price", "NaN"}, []string{"--node-overhead-price is NaN"}},
		{[]string{"-f", good, "--packing-effort", "0"}, []string{"--packing-effort is 0"}},
		{[]string{"-f", good, "--work-budget", "-1"}, []string{"--work-budget is -1"}},
		{[]string{"-f", good, "--scheduler-config", "{podTopologySpread: {x: 1}}"}, []string{"--scheduler-config", `unknown field`}},
		{[]string{"good.yaml", "-f", good}, []string{`unexpected argument "good.yaml": to read a file or a folder, write -f good.yaml`}},
		{[]string{"-f", "https://a.example.com/a.yaml"}, []string{"https://a.example.com/a.yaml: is a URL",
			"curl -fsSL https://a.example.com/a.yaml | kubectl karpenter ... -f -"}},
		{[]string{"--live", "--kubeconfig", "none", "-f", "missing.yaml"}, []string{"reading manifests: missing.yaml: no such file"}},
	} {
		c.run(t)
	}
}

// TestSimulateSpotShare checks that for a pool with a limit on spot the answer contains the plan's share.
func TestSimulateSpotShare(t *testing.T) {
	types := `{"instanceTypes": [`
	for i, name := range []string{"c5.large", "c6.large", "m5.large"} {
		if i > 0 {
			types += ","
		}
		types += `{"name": "` + name + `", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "2", "memory": "8Gi", "pods": "20"}, "offerings": [` +
			`{"zone": "a", "capacityType": "spot", "price": 0.03, "available": true}, {"zone": "b", "capacityType": "spot", "price": 0.03, "available": true}]}`
	}
	pool := strings.NewReplacer("metadata: {name: default}", `metadata: {name: default, annotations: {karpenter-go.github.io/max-spot-share: "30"}}`, "[on-demand]", "[spot]").Replace(poolYAML)
	web := strings.NewReplacer("replicas: 3", "replicas: 10", "cpu: 500m", "cpu: 1500m").Replace(webYAML)
	folder := files(t, map[string]string{"pool.yaml": pool, "web.yaml": web, "types.json": types + "]}"})
	out, err := simulate(t, "", "-f", filepath.Join(folder, "pool.yaml"), "-f", filepath.Join(folder, "web.yaml"), "--instance-types", filepath.Join(folder, "types.json"), "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var got offline.LaunchAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Nodes) != 10 || len(got.SpotShares) != 1 {
		t.Fatalf("%d nodes, spot shares %+v; want 10 and those of one pool", len(got.Nodes), got.SpotShares)
	}
	switch s := got.SpotShares[0]; {
	case s.NodePool != "default":
		t.Errorf("the spot share is that of pool %s, want default", s.NodePool)
	case s.MaxPercent != 30:
		t.Errorf("the limit of the spot share is %d %%, want 30", s.MaxPercent)
	case s.Percent > 30 || s.Percent < 17:
		t.Errorf("the spot share is %v %%, want at most 30, and no less than six zones and types make necessary", s.Percent)
	}
	text, err := simulate(t, "", "-f", filepath.Join(folder, "pool.yaml"), "-f", filepath.Join(folder, "web.yaml"), "--instance-types", filepath.Join(folder, "types.json"))
	if err != nil || !strings.Contains(text, "the pool allows 30% (max-spot-share)") {
		t.Errorf("the text does not contain it: %v\n%s", err, text)
	}
}

// TestSimulateNoPodWaits checks that an answer without a pod gives the reason: all pods that were read have nodes.
func TestSimulateNoPodWaits(t *testing.T) {
	pod := func(name, node, phase string) string {
		return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {nodeName: '" + node + "', containers: [{name: c, image: i}]}\nstatus: {phase: " + phase + "}\n"
	}
	input := poolYAML + pod("runs", "n1", "Running") + pod("ended", "n1", "Succeeded")
	_, said, err := runBoth(t, input, "simulate", "-f", "-", "-o", "json")
	const want = "no pod is pending, so nothing is launched; pods read: 2, of which bound: 1, finished: 1\n"
	if err != nil || !strings.Contains(said, want) {
		t.Errorf("%v, it reported\n%swant\n%s", err, said, want)
	}
	if _, said, err = runBoth(t, input+pod("waits", "", "Pending"), "simulate", "-f", "-"); err != nil || strings.Contains(said, "no pod waits") {
		t.Errorf("with a pending pod: %v, it reported\n%s", err, said)
	}
}
