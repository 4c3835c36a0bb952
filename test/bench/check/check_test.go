package check

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// judgedWorld is a workload, a valid answer, and changes of it with the reports of an implementation of this checker
// in another language. rules.json breaks each rule once; random.json has random workloads with every form of
// constraint.
type judgedWorld struct {
	World struct {
		Types []workload.InstanceType
		Pools []karpv1.NodePool
		Nodes []corev1.Node
		Bound []corev1.Pod
		Pods  []corev1.Pod
	}
	ProviderLabels []string
	Base           map[string]json.RawMessage
	Cases          []struct {
		Name string
		// Changes are new values of fields, or of one element of a list ("nodes.3"); null removes a field.
		Changes map[string]json.RawMessage
		Report  Report
	}
}

func (j *judgedWorld) world() *workload.World {
	w := &j.World
	return &workload.World{Name: "judged", ProviderLabels: j.ProviderLabels, Types: w.Types, Pools: w.Pools, Nodes: w.Nodes, Bound: w.Bound, Pods: w.Pods}
}

func TestReports(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files of judged workloads, %v", len(files), err)
	}
	seen := map[string]int{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var worlds []judgedWorld
		if err := json.Unmarshal(content, &worlds); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i := range worlds {
			for _, c := range worlds[i].Cases {
				t.Run(c.Name, func(t *testing.T) {
					got, err := Of(worlds[i].world(), changed(t, worlds[i].Base, c.Changes))
					if err != nil {
						t.Fatal(err)
					}
					for kind := range got.Problems {
						seen[kind]++
					}
					opts := cmp.Options{cmpopts.IgnoreUnexported(Report{}), cmpopts.IgnoreFields(Report{}, "Examples"), cmpopts.EquateApprox(0, 1e-5)}
					if diff := cmp.Diff(c.Report, *got, opts); diff != "" {
						t.Errorf("-reference +got\n%s\n%s", diff, strings.Join(got.Examples, "\n"))
					}
					if (len(got.Examples) == 0) != (got.Count() == 0) || len(got.Examples) > 5 {
						t.Errorf("%d problems with examples %q", got.Count(), got.Examples)
					}
				})
			}
		}
	}
	for _, kind := range []string{
		"spread " + workload.LabelZone, "spread " + workload.LabelHost, "anti-affinity", "anti-affinity of a bound pod", "affinity",
		"capacity cpu", "capacity memory", "capacity pods", "capacity nvidia.com/gpu", "taint", "node selector", "node affinity",
		"pool requirement", "unknown pool", "offering", "limit", "option cannot hold", "price", "total price", "total cost", "placed twice",
		"unaccounted", "placed and unschedulable", "unschedulable twice", "unknown pod", "unknown node", "node name", "bind order",
	} {
		if seen[kind] == 0 {
			t.Errorf("no answer breaks %q", kind)
		}
	}
}

// changed returns the answer with some parts replaced.
func changed(t *testing.T, base, changes map[string]json.RawMessage) *Answer {
	t.Helper()
	all := map[string]json.RawMessage{}
	for name, value := range base {
		all[name] = value
	}
	for path, value := range changes {
		name, index, element := strings.Cut(path, ".")
		switch {
		case element:
			all[name] = replaced(t, all[name], index, value)
		case string(value) == "null":
			delete(all, name)
		default:
			all[name] = value
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Read(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func replaced(t *testing.T, text json.RawMessage, index string, value json.RawMessage) json.RawMessage {
	t.Helper()
	var elements []json.RawMessage
	if err := json.Unmarshal(text, &elements); err != nil {
		t.Fatal(err)
	}
	i, err := strconv.Atoi(index)
	if err != nil {
		t.Fatal(err)
	}
	elements[i] = value
	text, err = json.Marshal(elements)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRequests(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want int64 // millicores
	}{
		"containers add up":         {`containers: [{resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 2}}}]`, 3000},
		"a step of the start":       {`{containers: [{resources: {requests: {cpu: 1}}}], initContainers: [{resources: {requests: {cpu: 4}}}]}`, 4000},
		"a sidecar stays":           {`{containers: [{resources: {requests: {cpu: 2}}}], initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}]}`, 3000},
		"a step beside a sidecar":   {`{containers: [{resources: {requests: {cpu: 1}}}], initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 2}}}]}`, 3000},
		"a step before a sidecar":   {`{containers: [{resources: {requests: {cpu: 1}}}], initContainers: [{resources: {requests: {cpu: 2}}}, {restartPolicy: Always, resources: {requests: {cpu: 1}}}]}`, 2000},
		"overhead":                  {`{containers: [{resources: {requests: {cpu: 1}}}], overhead: {cpu: 1}}`, 2000},
		"a limit without request":   {`containers: [{resources: {limits: {cpu: 7}}}]`, 7000},
		"a request below a limit":   {`containers: [{resources: {limits: {cpu: 7}, requests: {cpu: 1}}}]`, 1000},
		"less than a thousandth":    {`containers: [{resources: {requests: {cpu: 0.1m}}}]`, 1},
		"pods that ask for nothing": {`containers: [{}]`, 0},
	} {
		var spec corev1.PodSpec
		if err := yaml.UnmarshalStrict([]byte(c.spec), &spec); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := requestOf(&spec)
		if got[corev1.ResourceCPU] != c.want || got[corev1.ResourcePods] != 1000 {
			t.Errorf("%s: %v, want %d millicores and one slot", name, got, c.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{``, `[]`, `{`, `{}`, `{"nodes":[{"name":"n"}]}`, `{"nodes":"none"}`,
		`{"nodes":[{"name":"n","nodePool":"p","instanceType":"t","zone":"z","capacityType":"spot"}]}`} {
		if a, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read as %+v", text, a)
		}
	}
}

func TestMedianOptions(t *testing.T) {
	of := func(lengths ...int) *Answer {
		a := &Answer{}
		for _, n := range lengths {
			a.Nodes = append(a.Nodes, NewNode{InstanceTypes: make([]string, n)})
		}
		return a
	}
	got := []int{of().MedianOptions(), of(4).MedianOptions(), of(9, 1, 5).MedianOptions(), of(2, 1).MedianOptions()}
	if want := []int{0, 4, 5, 2}; !slices.Equal(got, want) {
		t.Errorf("medians %v, want %v", got, want)
	}
}
