package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/plugin/admission"
)

// judge returns the check by the definitions, as the command does.
func judge(t *testing.T) func(map[string]any) []Fault {
	t.Helper()
	server, err := admission.New()
	if err != nil {
		t.Fatal(err)
	}
	return func(object map[string]any) []Fault {
		refusals, err := server.Create(object)
		if err != nil {
			t.Fatal(err)
		}
		var faults []Fault
		for _, r := range refusals {
			faults = append(faults, Fault(r))
		}
		return faults
	}
}

// TestAccepted validates the results for every manifest of the matrix as an API server would.
func TestAccepted(t *testing.T) {
	check, seen := judge(t), 0
	for name, file := range manifests(t) {
		t.Run(name, func(t *testing.T) {
			for _, d := range split(File{Name: "out", Text: Run([]File{file}, Options{}).Manifests}) {
				if err := d.parse(); err != nil {
					t.Fatal(err)
				}
				if d.root == nil || !checked(text(at(d.root, "apiVersion")), text(at(d.root, "kind"))) {
					continue
				}
				seen++
				for _, fault := range check(plain(d.root).(map[string]any)) {
					t.Errorf("%s %s: %s %s", text(at(d.root, "kind")), nameOf(d.root), fault.Field, fault.Problem)
				}
			}
		})
	}
	if seen < fewest {
		t.Errorf("%d objects were validated, want at least %d", seen, fewest)
	}
}

// faulty contains manifests whose results an API server would reject, and all notes with the outcome impossible.
var faulty = []struct {
	name, text string
	want       []string // field and part of the text
}{
	{"an old label in a pool", poolWith("v1beta1", "", none) + "    metadata:\n      labels: {karpenter.sh/provisioner-name: x}\n",
		[]string{"spec.template.metadata.labels[karpenter.sh/provisioner-name]: a label of the domain karpenter.sh cannot be set"}},
	{"no spec", "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\n  name: a\n", []string{"spec: is required"}},
	{"no values", poolWith("v1", "", "requirements: [{key: a, operator: In, values: []}]"),
		[]string{"spec.template.spec.requirements[0]: operator In needs at least one value"}},
	{"name", strings.Replace(poolWith("v1", "", none), "name: a", "name: Bad_Name", 1), []string{`metadata.name: is "Bad_Name"`}},
	{"two values", poolWith("v1", "", "requirements: [{key: a, operator: Gt, values: ['1', '2']}]"),
		[]string{"spec.template.spec.requirements[0]: operators Gt, Lt, Gte and Lte need exactly one value"}},
	{"host", poolWith("v1", "", "requirements: [{key: kubernetes.io/hostname, operator: Exists}]"),
		[]string{"spec.template.spec.requirements[0].key: "}},
	{"no metadata", strings.Replace(poolWith("v1", "", none), "metadata:\n  name: a\n", "", 1), []string{"metadata.name: is required"}},
	{"a number for a name, and nothing else", "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: 5}\nspec: null\n",
		[]string{"metadata.name: is of type integer", "spec: is required"}},
	{"no kind of ours", "apiVersion: karpenter.sh/v1\nkind: NodePools\nmetadata: {name: a}\n",
		[]string{"apiVersion: karpenter.sh/v1 has no kind NodePools"}},
	{"another's kind", "apiVersion: example.com/v1\nkind: NodePools\nmetadata: {name: a}\n", nil},
	{"simulated class", "apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: a}\nspec: {many: 5}\n",
		[]string{"spec.many: unknown field"}},

	// reported once
	{"time", poolWith("v1", "", "expireAfter: soon\n"+none), []string{`spec.template.spec.expireAfter: is "soon", want a duration`}},
	{"amount", poolWith("v1", "limits: {cpu: ten}", none), []string{`spec.limits.cpu: is "ten", want a quantity`}},
	{"termination", poolWith("v1", "", "terminationGracePeriod: soon\n"+none),
		[]string{`spec.template.spec.terminationGracePeriod: is "soon", want a duration`}},
	{"no class", "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec: {template: {spec: {requirements: []}}}\n",
		[]string{"spec.template.spec.nodeClassRef: is required"}},
	{"effect of a pool's taint", poolWith("v1", "", "taints: [{key: gpu}]\n"+none),
		[]string{"spec.template.spec.taints[0].effect: is required"}},
	{"effect of a Provisioner's taint", provisionerWith("taints: [{key: gpu}]"), nil}, // becomes NoSchedule
	{"a taint as kubectl has it", provisionerWith("taints: ['gpu=true:NoSchedule']"), nil},
	{"a taint that is none", provisionerWith("taints: [gpu]"), []string{"spec.taints[0]: is not a taint"}},
	{"a taint of lists", provisionerWith("taints: [{key: a, effect: [b]}]"),
		[]string{"spec.taints[0]: is not a taint, want a string as effect"}},
	{"a pool's taint of lists", poolWith("v1", "", "taints: [{key: a, effect: [b]}]\n"+none),
		[]string{"spec.template.spec.taints[0]: is not a taint, want a string as effect"}},
	{"a list for a template", "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec: {template: {spec: [a]}}\n",
		[]string{"spec.template.spec.nodeClassRef: is required", "spec.template.spec: is of type array, want an object"}},
	{"amount of a Provisioner", provisionerWith("limits: {resources: {cpu: '1,000'}}"), []string{"spec.limits.resources.cpu: "}},
}

func provisionerWith(spec string) string {
	return "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata:\n  name: a\nspec:\n  providerRef: {name: a}\n" + indent(spec, "  ")
}

// TestFaults compares the notes with the outcome impossible, and verifies that --check, which reads the output,
// repeats them.
func TestFaults(t *testing.T) {
	options := Options{Check: judge(t)}
	for _, test := range faulty {
		t.Run(test.name, func(t *testing.T) {
			result := Run([]File{{Name: "in", Text: []byte(test.text)}}, options)
			compareFaults(t, result, test.want)
			if !strings.Contains(test.text, "Provisioner") {
				compareFaults(t, Run([]File{{Name: "again", Text: result.Manifests}}, options), test.want)
			}
		})
	}
}

func compareFaults(t *testing.T, result Result, want []string) {
	t.Helper()
	var got []string
	for _, e := range result.Report {
		for _, n := range e.Notes {
			if n.Outcome == Impossible {
				got = append(got, n.Field+": "+n.Text)
			}
		}
	}
	if len(got) != len(want) {
		t.Fatalf("impossible is %q, want %q\n%s", got, want, result.Report.Text())
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("impossible is %q, want %q", got[i], want[i])
		}
	}
}

// TestTaintText compares the results for taints in the notation of kubectl.
func TestTaintText(t *testing.T) {
	d, _ := run(t, poolWith("v1", "", "taints: ['gpu=true:NoSchedule', 'example.com/a:NoExecute', 'b=:PreferNoSchedule']\n"+none))
	want := []any{
		map[string]any{"key": "gpu", "value": "true", "effect": "NoSchedule"},
		map[string]any{"key": "example.com/a", "effect": "NoExecute"},
		map[string]any{"key": "b", "effect": "PreferNoSchedule"},
	}
	if diff := cmp.Diff(any(want), plain(at(d.root, "spec", "template", "spec", "taints"))); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
}

// TestFaultsByObject verifies that objects that share an entry of the report have separate lines with their names.
func TestFaultsByObject(t *testing.T) {
	group := func(name string, percent, disk int) string {
		return "  - {name: " + name + ", amiFamily: AmazonLinux2023, instanceType: m5.large, maxSize: 3, iam: {instanceRoleName: r}, volumeSize: " + itoa(disk) + ", kubeletExtraConfig: {imageGCHighThresholdPercent: " + itoa(percent) + "}}\n"
	}
	in := "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c}\nmanagedNodeGroups:\n" + group("a",
		200, 80) + group("b", 200, 90) + group("c", 90, 100)
	const path = "spec.kubelet.imageGCHighThresholdPercent: "
	compareFaults(t, Run([]File{{Name: "in", Text: []byte(in)}}, Options{Check: judge(t)}),
		[]string{"EC2NodeClass a." + path, "EC2NodeClass b." + path})
}

// TestPrintedTwice verifies that two objects with one name are reported for this project's kinds only. Other kinds
// may have the same names, and namespaces.
func TestPrintedTwice(t *testing.T) {
	object := func(version, kind, namespace string) string {
		return "---\napiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: a, namespace: " + namespace + "}\nspec: {}\n"
	}
	ours := "---\n" + poolWith("v1", "", none)
	for _, test := range []struct {
		in   string
		want []string
	}{
		{object("cluster.x-k8s.io/v1beta1", "Machine", "a") + object("cluster.x-k8s.io/v1beta1", "Machine", "b"), nil},
		{object("hypershift.openshift.io/v1beta1", "NodePool", "a") + object("hypershift.openshift.io/v1beta1", "NodePool", "b") + ours, nil},
		{ours + ours, []string{": NodePool a is printed twice"}},
	} {
		compareFaults(t, Run([]File{{Name: "in", Text: []byte(test.in)}}, Options{}), test.want)
	}
}
