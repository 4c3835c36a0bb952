package migrate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// knownTypes returns EC2 types for tests.
func knownTypes() []InstanceType {
	amd, arm := []string{"amd64"}, []string{"arm64"}
	return []InstanceType{
		{"c5.large", amd, 2, 4096, 0, 0}, {"c6i.2xlarge", amd, 8, 16384, 0, 0}, {"c7a.2xlarge", amd, 8, 16384, 0, 0},
		{"c7i.2xlarge", amd, 8, 16384, 0, 0},
		{"g5.xlarge", amd, 4, 16384, 1, 0}, {"inf2.xlarge", amd, 4, 16384, 0, 1}, {"m5.2xlarge", amd, 8, 32768, 0, 0},
		{"m5.large", amd, 2, 8192, 0, 0}, {"m5.xlarge", amd, 4, 16384, 0, 0},
		{"m5a.2xlarge", amd, 8, 32768, 0, 0}, {"m5n.2xlarge", amd, 8, 32768, 0, 0}, {"m6g.xlarge", arm, 4, 16384, 0, 0},
		{"m7a.large", amd, 2, 8192, 0, 0}, {"m7i.large", amd, 2, 8192, 0, 0},
		{"p3.2xlarge", amd, 8, 62464, 1, 0}, {"t4g.large", arm, 2, 8192, 0, 0},
	}
}

// TestGroups migrates whole clusters with typical configurations. It compares the output with
// testdata/groups/NAME.out.yaml and the report with NAME.txt, and verifies that a second migration changes nothing.
func TestGroups(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "groups", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, ".out.yaml") })
	if len(paths) < 4 {
		t.Fatalf("%d clusters, want at least 4", len(paths))
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			options := Options{InstanceTypes: knownTypes}
			result := Run([]File{{Name: name + ".yaml", Text: text}}, options)
			golden(t, filepath.Join("groups", name+".out.yaml"), string(result.Manifests))
			golden(t, filepath.Join("groups", name+".txt"), result.Report.Text())
			again := Run([]File{{Name: "again", Text: result.Manifests}}, options)
			if diff := cmp.Diff(string(result.Manifests), string(again.Manifests)); diff != "" || again.Changed {
				t.Errorf("migrated again it changes (changed %t, -once +twice):\n%s", again.Changed, diff)
			}
		})
	}
}

// cluster returns a ClusterConfig with one unmanaged group, with the fields in flow YAML.
func cluster(fields string) string {
	return "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c, version: \"1.30\"}\nnodeGroups:\n  - {name: g, instanceType: m5.large, amiFamily: AmazonLinux2023, maxSize: 3, iam: {instanceRoleName: r}, " + fields + "}\n"
}

// podWith returns a Deployment whose pods have a spec, in flow YAML.
func podWith(spec string) string {
	return "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: n}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: i}], " + spec + "}\n"
}

// notesOf returns the lines of the report about the group g, without the order of the steps.
func notesOf(result Result) []string {
	var lines []string
	for _, entry := range result.Report {
		for _, note := range entry.Notes {
			if strings.HasPrefix(note.Field, "g.") || note.Field == "minSize" || note.Field == "maxSize" {
				lines = append(lines, string(note.Outcome)+" "+note.Field)
			}
		}
	}
	return lines
}

// TestGroupLabels verifies that the pool gets the labels that the API allows, and that for the others, the report
// contains the pods that require them.
func TestGroupLabels(t *testing.T) {
	for _, test := range []struct {
		name, fields, pod string
		want              string // labels of the pool, as JSON
		notes             []string
		says              string
	}{
		{"one's own", "labels: {team: a, example.com/x: \"1\"}", "", `{"example.com/x":"1","team":"a"}`, nil, ""},
		{"those that pods of GPUs select", "labels: {k8s.amazonaws.com/accelerator: t4}", "", `{"k8s.amazonaws.com/accelerator":"t4"}`, nil, ""},
		{"roles", "labels: {node-role.kubernetes.io/worker: \"\", kubernetes.io/role: worker}", "",
			`{"kubernetes.io/role":"worker","node-role.kubernetes.io/worker":""}`, nil, ""},
		{"what the pool's nodes are in any case", "labels: {kubernetes.io/arch: amd64, node.kubernetes.io/instance-type: m5.large}",
			"", `null`, nil, ""},
		{"what they are not", "labels: {kubernetes.io/arch: arm64}", "", `null`, []string{"impossible g.labels[kubernetes.io/arch]"},
			"the requirements of the NodePool determine this label"},
		{"of karpenter, that no pod selects", "labels: {karpenter.sh/a: b}", "", `null`, []string{"impossible g.labels[karpenter.sh/a]"},
			"no pod in the input uses it"},
		{"of karpenter, that pods select", "labels: {karpenter.k8s.aws/a: b}", "nodeSelector: {karpenter.k8s.aws/a: b}",
			`null`, []string{"impossible g.labels[karpenter.k8s.aws/a]"}, "pods that use it (Deployment n/d)"},
		{"the group's name, that pods select", "spot: false", "nodeSelector: {alpha.eksctl.io/nodegroup-name: g}",
			`{"alpha.eksctl.io/nodegroup-name":"g"}`, []string{"advice g.labels[alpha.eksctl.io/nodegroup-name]"},
			"pods use it (Deployment n/d)"},
		{"another group's name, that pods select", "spot: false", "nodeSelector: {alpha.eksctl.io/nodegroup-name: h}", `null`, nil, ""},
		{"pods that keep off", "spot: true", "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: node-lifecycle, operator: NotIn, values: [spot]}]}]}}}", `{"node-lifecycle":"spot"}`, []string{"advice g.labels[node-lifecycle]"}, ""},
		{"pods that would rather", "spot: false", "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: node-lifecycle, operator: Exists}]}}]}}", `{"node-lifecycle":"on-demand"}`, []string{"advice g.labels[node-lifecycle]"}, ""},
		{"pods that spread over groups", "spot: false",
			"topologySpreadConstraints: [{topologyKey: alpha.eksctl.io/nodegroup-name, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]",
			`{"alpha.eksctl.io/nodegroup-name":"g"}`, []string{"advice g.labels[alpha.eksctl.io/nodegroup-name]"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := cluster(test.fields)
			if test.pod != "" {
				in += podWith(test.pod)
			}
			d, result := run(t, in)
			if text(at(d.root, "kind")) != "NodePool" {
				t.Fatalf("the first object is\n%s", result.Manifests)
			}
			if diff := cmp.Diff(test.want, asJSON(t, at(d.root, "spec", "template", "metadata", "labels"))); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.notes, notesOf(result)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if report := result.Report.Text(); !strings.Contains(report, test.says) {
				t.Errorf("the report is\n%s, want it to contain %q", report, test.says)
			}
		})
	}
}

func asJSON(t *testing.T, node *yaml.Node) string {
	t.Helper()
	text, err := json.Marshal(plain(node))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestHome verifies that the controller starts on nodes that it did not launch, that are not removed, and on which it
// may run.
func TestHome(t *testing.T) {
	group := func(name, capacity string, least int, taints int) *nodeGroup {
		return &nodeGroup{name: name, capacityTypes: []string{capacity}, least: least, taints: make([]*yaml.Node, taints), os: "linux"}
	}
	windows := group("windows", "on-demand", 9, 0)
	windows.os = "windows"
	for _, test := range []struct {
		want   string
		groups []*nodeGroup
	}{
		{"a", []*nodeGroup{group("a", "on-demand", 1, 0), group("spot", "spot", 5, 0), group("tainted", "on-demand", 7, 1), windows}},
		{"large", []*nodeGroup{group("a", "on-demand", 1, 0), group("large", "on-demand", 2, 0)}},
		{"spot", []*nodeGroup{group("spot", "spot", 5, 0), windows}},
		{"", []*nodeGroup{windows, group("tainted", "on-demand", 7, 1)}},
	} {
		got := ""
		if home := homeOf(test.groups); home != nil {
			got = home.name
		}
		if got != test.want {
			t.Errorf("the group is %q, want %q", got, test.want)
		}
	}
}

// TestLabelsOfNodes verifies that a pool gets the additional labels of the nodes of a known group if pods require
// them and all nodes have them. Otherwise the report contains what is lost.
func TestLabelsOfNodes(t *testing.T) {
	node := func(name, labels string) string {
		return "---\napiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", labels: {alpha.eksctl.io/nodegroup-name: g, " + labels + "}}\nspec: {}\n"
	}
	nodes := node("1", "all: a, some: b, karpenter.sh/x: z") + node("2", "all: a, karpenter.sh/x: z")
	for _, test := range []struct {
		pod, want string
		notes     []string
	}{
		{"", `null`, []string{"advice g.labels[all]", "advice g.labels[some]"}},
		{"nodeSelector: {all: a}", `{"all":"a"}`, []string{"advice g.labels[all]", "advice g.labels[some]"}},
		{"nodeSelector: {some: b}", `null`, []string{"advice g.labels[all]", "impossible g.labels[some]"}},
		{"nodeSelector: {some: other, all: other}", `null`, []string{"advice g.labels[all]", "advice g.labels[some]"}},
		{"nodeSelector: {karpenter.sh/x: z}", `null`,
			[]string{"advice g.labels[all]", "impossible g.labels[karpenter.sh/x]", "advice g.labels[some]"}},
	} {
		in := cluster("spot: false") + nodes
		if test.pod != "" {
			in += podWith(test.pod)
		}
		d, result := run(t, in)
		if diff := cmp.Diff(test.want, asJSON(t, at(d.root, "spec", "template", "metadata", "labels"))); diff != "" {
			t.Errorf("%s: labels (-want +got):\n%s", test.pod, diff)
		}
		if diff := cmp.Diff(test.notes, notesOf(result)); diff != "" {
			t.Errorf("%s: notes (-want +got):\n%s", test.pod, diff)
		}
	}
}

// TestNodesWithoutOwner verifies that no pool is proposed for the control plane and for Fargate, and that the pool does
// not get a temporary taint.
func TestNodesWithoutOwner(t *testing.T) {
	node := func(name, labels, taint string) string {
		return "---\napiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", labels: {kops.k8s.io/instancegroup: " + name + ", kubernetes.io/os: linux, node.kubernetes.io/instance-type: m5.large, " + labels + "}}\nspec: {taints: [{key: " + taint + ", effect: NoSchedule}]}\n"
	}
	in := scaler(`[cluster-autoscaler]`, `["--startup-taint=agent-not-ready", "--status-taint=flaky"]`) +
		node("master", `node-role.kubernetes.io/control-plane: ""`, "node-role.kubernetes.io/control-plane") + node("fargate",
		"eks.amazonaws.com/compute-type: fargate", "eks.amazonaws.com/compute-type") +
		node("a", "x: y", "agent-not-ready") + node("b", "x: y", "flaky") + node("c", "x: y", "mine")
	result := Run([]File{{Name: "in", Text: []byte(in)}}, Options{})
	if diff := cmp.Diff([]string{"NodePool a", "NodePool b", "NodePool c"}, result.Report[0].Became); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	taints := map[string]string{}
	for _, d := range split(File{Name: "out", Text: result.Manifests}) {
		if err := d.parse(); err != nil {
			t.Fatal(err)
		}
		if text(at(d.root, "kind")) == "NodePool" {
			spec := at(d.root, "spec", "template", "spec")
			taints[text(at(d.root, "metadata", "name"))] = asJSON(t, at(spec, "taints"))
			if startup := text(at(firstOf(at(spec, "startupTaints")), "key")); startup != "agent-not-ready" {
				t.Errorf("the startup taint is %q", startup)
			}
		}
	}
	if diff := cmp.Diff(map[string]string{"a": "null", "b": "null", "c": `[{"effect":"NoSchedule","key":"mine"}]`}, taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
}

// TestSharedClasses verifies that groups with identical machines share one class, that of the first, unless it has to
// be completed manually.
func TestSharedClasses(t *testing.T) {
	in := "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c}\nmanagedNodeGroups:\n" +
		"  - {name: a, iam: {instanceRoleName: r}}\n  - {name: b, iam: {instanceRoleName: r}, spot: true}\n  - {name: c, iam: {instanceRoleName: r}, volumeSize: 100}\n  - {name: d, iam: {instanceRoleName: r}, volumeSize: 100}\n" +
		"  - {name: e, iam: {instanceRoleName: r}, preBootstrapCommands: [x]}\n"
	result := Run([]File{{Name: "in", Text: []byte(in)}}, Options{})
	want := []string{"NodePool a", "EC2NodeClass a", "NodePool b", "NodePool c", "EC2NodeClass c", "NodePool d",
		"NodePool e", "EC2NodeClass e"}
	if diff := cmp.Diff(want, result.Report[0].Became); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var classes []string
	for _, d := range split(File{Name: "out", Text: result.Manifests}) {
		if err := d.parse(); err != nil {
			t.Fatal(err)
		}
		if text(at(d.root, "kind")) == "NodePool" {
			classes = append(classes, text(at(d.root, "spec", "template", "spec", "nodeClassRef", "name")))
		}
	}
	if diff := cmp.Diff([]string{"a", "a", "c", "c", "e"}, classes); diff != "" {
		t.Errorf("classes of the pools (-want +got):\n%s", diff)
	}
}

// TestNodesOfNoGroup verifies that nodes without a group's label are reported, with a ClusterConfig or a Deployment.
func TestNodesOfNoGroup(t *testing.T) {
	nodes := "---\napiVersion: v1\nkind: Node\nmetadata: {name: alone, labels: {kubernetes.io/os: linux}}\nspec: {}\n"
	for name, in := range map[string]string{"ClusterConfig c": cluster("spot: false") + nodes,
		"Deployment kube-system/scaler": scaler(`[cluster-autoscaler]`, `[]`) + nodes} {
		first := Run([]File{{Name: "in", Text: []byte(in)}}, Options{}).Report[0]
		if first.Object != name || !strings.Contains((Report{first}).Text(),
			"1 node without a label of a node group such as eks.amazonaws.com/nodegroup (alone)") {
			t.Errorf("%s:\n%s", name, Report{first}.Text())
		}
	}
}

// TestNamesOfGroups verifies that of groups that would become the same NodePool, the second is not proposed, which is
// more than advice. A NodePool kind of another project does not prevent proposals.
func TestNamesOfGroups(t *testing.T) {
	node := func(group string) string {
		return "---\napiVersion: v1\nkind: Node\nmetadata: {name: \"" + group + "\", labels: {eks.amazonaws.com/nodegroup: \"" + group + "\", node.kubernetes.io/instance-type: m5.large}}\nspec: {}\n"
	}
	groups := strings.TrimSuffix(cluster("spot: false"), "\n")
	for _, test := range []struct {
		name, in   string
		became     []string // of the first object
		impossible []string // fields
	}{
		{"groups of a file", groups + "\n  - {name: G, instanceType: c5.large, iam: {instanceRoleName: r}, maxSize: 1}\n  - {name: h, instanceType: c5.large, amiFamily: AmazonLinux2023, iam: {instanceRoleName: r}, maxSize: 1}\n", []string{"NodePool g", "EC2NodeClass g", "NodePool h"}, []string{"nodeGroups[1]"}},
		{"of both kinds", groups + "\nmanagedNodeGroups: [{name: g, instanceType: c5.large}]\n",
			[]string{"NodePool g", "EC2NodeClass g"}, []string{"managedNodeGroups[0]"}},
		{"of nodes", scaler(`[cluster-autoscaler]`, `[]`) + node("web-1") + node("Web_1") + node("web-1"),
			[]string{"NodePool web-1"}, []string{"Web_1"}},
		{"of a file and of nodes", groups + "\n" + node("g") + node("G"), []string{"NodePool g", "EC2NodeClass g"}, []string{"G"}},
		{"another project's", groups + "\n---\napiVersion: hypershift.openshift.io/v1beta1\nkind: NodePool\nmetadata: {name: g, namespace: a}\nspec: {}\n", []string{"NodePool g", "EC2NodeClass g"}, nil},
		{"one that is there", groups + "\n---\n" + strings.Replace(poolWith("v1", "", none), "name: a", "name: g", 1),
			[]string{"EC2NodeClass g"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			result := Run([]File{{Name: "in", Text: []byte(test.in)}}, Options{})
			if diff := cmp.Diff(test.became, result.Report[0].Became); diff != "" {
				t.Errorf("proposed (-want +got):\n%s", diff)
			}
			var impossible []string
			for _, n := range result.Report[0].Notes {
				if n.Outcome == Impossible {
					impossible = append(impossible, n.Field)
				}
			}
			if diff := cmp.Diff(test.impossible, impossible); diff != "" {
				t.Errorf("impossible (-want +got):\n%s\n%s", diff, result.Report.Text())
			}
		})
	}
}
