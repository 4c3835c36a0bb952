package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/internal/legacy/migrate"
	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

const todaysPool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
spec:
  template:
    spec:
      requirements: []
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
`

// todaysClass is a class that an API server accepts. Lines of spec can follow.
const todaysClass = `apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default, annotations: {}}
spec:
  role: node
  amiSelectorTerms: [{alias: bottlerocket@latest}]
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
`

// olderPool is the same pool in v1beta1.
var olderPool = strings.Replace(strings.Replace(todaysPool, "/v1\n", "/v1beta1\n", 1), "group: karpenter.k8s.aws", "apiVersion: karpenter.k8s.aws/v1beta1", 1)

const oldSettings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: karpenter-global-settings}\ndata: {aws.clusterName: prod}\n"

// migrations are files, flags, and the expected results.
var migrations = []struct {
	name      string
	files     map[string]string
	arguments []string
	code      int
	prints    []string // empty: nothing is printed
	says      []string
}{
	{"today's", map[string]string{"a.yaml": todaysPool}, nil, 0, []string{todaysPool}, []string{"1 object, 1 unchanged"}},
	{"today's, checked", map[string]string{"a.yaml": todaysPool}, []string{"--check"}, 0, nil, nil},
	{"older", map[string]string{"a.yaml": olderPool}, nil, 0, []string{"apiVersion: karpenter.sh/v1\n", "group: karpenter.k8s.aws"}, []string{"changed", "NodePool default (", "a.yaml: document 1)"}},
	{"older, checked", map[string]string{"a.yaml": olderPool}, []string{"--check"}, 1, nil, []string{"changed"}},
	{"a folder, in the order of names", map[string]string{"b.yaml": "# second\n", "a.json": `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "first"}}`, "c.txt": "{"}, nil, 0, []string{"first", "---\n# second\n"}, nil},
	{"impossible", map[string]string{"a.yaml": strings.Replace(todaysPool, "requirements: []", "expireAfter: soon", 1)}, nil, 1, []string{"expireAfter: soon"}, []string{"impossible", "want a duration"}},
	{"an unknown field", map[string]string{"a.yaml": todaysPool + "  replicasMax: 5\n"}, nil, 1, []string{"replicasMax"}, []string{"spec.replicasMax: unknown field"}},
	{"a value out of range", map[string]string{"a.yaml": todaysPool + "  weight: 500\n"}, nil, 1, []string{"weight"}, []string{"spec.weight: is 500, want 100 or less"}},
	{"a field of another type", map[string]string{"a.yaml": todaysPool + "  limits: [a]\n"}, nil, 1, []string{"limits"}, []string{"spec.limits: is of type array, want an object"}},
	{"a rule of the definition", map[string]string{"a.yaml": strings.Replace(todaysPool, "[]", "[{key: a, operator: In, values: []}]", 1)}, []string{"--check"}, 1, nil, []string{"spec.template.spec.requirements[0]: operator In needs at least one value"}},
	{"a name that no object may have", map[string]string{"a.yaml": strings.Replace(todaysPool, "name: default", "name: Bad_Name", 1)}, nil, 1, []string{"Bad_Name"}, []string{"metadata.name: is"}},
	{"a class", map[string]string{"a.yaml": todaysClass}, []string{"--check"}, 0, nil, []string{"1 object, 1 unchanged"}},
	{"an expression", map[string]string{"a.yaml": todaysClass + "  kubelet: {maxPods: \"vcpus *\"}\n"}, []string{"--check"}, 1, nil,
		[]string{"impossible spec.kubelet.maxPods: \"vcpus *\" is neither a number such as 110 nor a valid expression"}},
	{"a value of an annotation",
		map[string]string{"a.yaml": strings.Replace(todaysClass, "{}", `{karpenter-go.github.io/prefix-delegation: "yes"}`, 1)}, nil, 1,
		[]string{"yes"}, []string{`impossible metadata.annotations[karpenter-go.github.io/prefix-delegation]: is "yes", want true or false`}},
	{"user data", map[string]string{"a.yaml": todaysClass + "  userData: \"[settings\"\n"}, nil, 1, []string{"userData"},
		[]string{"impossible spec.userData: "}},
	{"older user data", map[string]string{"a.yaml": strings.Replace(todaysClass, "aws/v1", "aws/v1beta1", 1) +
		"  userData: \"[settings\"\n"}, nil, 1, []string{"userData"}, []string{"impossible spec.userData: "}},
	{"values of the chart", map[string]string{"a.yaml": oldSettings}, []string{"--values", "VALUES", "--report", "REPORT"}, 0, []string{"#   settings:\n#     clusterName: prod\n"}, []string{"settings.clusterName"}},
	{"nothing", nil, nil, 2, nil, []string{"no file named"}},
	{"a cloud", map[string]string{"a.yaml": todaysPool}, []string{"--cloud-provider=moon"}, 2, nil, []string{"moon"}},
	{"a version", map[string]string{"a.yaml": todaysPool}, []string{"--kubernetes-version=new"}, 2, nil, []string{"1.34"}},
	{"workloads of files", map[string]string{"a.yaml": todaysPool}, []string{"--workloads"}, 2, nil, []string{"--workloads requires --live"}},
	{"a kubeconfig without a cluster", map[string]string{"a.yaml": todaysPool}, []string{"--kubeconfig=a"}, 2, nil, []string{"--live"}},
}

// TestMigrateFiles checks the output and the exit code of the verb for files.
func TestMigrateFiles(t *testing.T) {
	for _, test := range migrations {
		t.Run(test.name, func(t *testing.T) {
			folder := files(t, test.files)
			beside := t.TempDir()
			arguments := []string{"migrate", "-f", folder}
			for _, argument := range test.arguments {
				if argument == "VALUES" || argument == "REPORT" {
					argument = filepath.Join(beside, argument)
				}
				arguments = append(arguments, argument)
			}
			out, said, err := runBoth(t, "", arguments...)
			if err != nil {
				said += err.Error()
			}
			if got := cli.ExitCode(err); got != test.code {
				t.Errorf("it ended with %d (%v), want %d", got, err, test.code)
			}
			for _, text := range test.prints {
				if !strings.Contains(out, text) {
					t.Errorf("it printed\n%s, want %q", out, text)
				}
			}
			if len(test.prints) == 0 && out != "" {
				t.Errorf("it printed %q, want nothing", out)
			}
			for _, text := range test.says {
				if !strings.Contains(said, text) {
					t.Errorf("it reported\n%s, want %q", said, text)
				}
			}
			if test.name == "values of the chart" {
				checkBeside(t, beside)
			}
		})
	}
}

// TestMigrateDangling checks that a broken link in a folder is reported, and that the rest of the folder is printed.
func TestMigrateDangling(t *testing.T) {
	folder := files(t, map[string]string{"a.yaml": todaysPool, "c.yaml": "# last\n"})
	if err := os.Symlink(filepath.Join(folder, "nowhere"), filepath.Join(folder, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	out, said, err := runBoth(t, "", "migrate", "-f", folder)
	if code := cli.ExitCode(err); code != 2 || !strings.Contains(err.Error(), "1 file could not be read") {
		t.Errorf("it ended with %d (%v), want 2", code, err)
	}
	if want := todaysPool + "---\n# last\n"; out != want {
		t.Errorf("it printed\n%s, want\n%s", out, want)
	}
	if !strings.Contains(said, "b.yaml") || !strings.Contains(said, "cannot be read") {
		t.Errorf("it reported\n%s", said)
	}
}

// checkBeside checks the values and the report that were written to files.
func checkBeside(t *testing.T, folder string) {
	t.Helper()
	values, err := os.ReadFile(filepath.Join(folder, "VALUES"))
	if err != nil || string(values) != "settings:\n  clusterName: prod\n" {
		t.Errorf("values are %q (%v)", values, err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "REPORT"))
	if err != nil {
		t.Fatal(err)
	}
	var report migrate.Report
	if err := json.Unmarshal(text, &report); err != nil {
		t.Errorf("the report is not JSON: %v\n%s", err, text)
	}
	if len(report) != 1 || report[0].Object != "ConfigMap karpenter-global-settings" {
		t.Errorf("the report covers %+v, want the ConfigMap karpenter-global-settings only", report)
	}
}

// TestMigrateLive reads a cluster that serves Provisioners, current pools, and workloads with old names, and whose
// machines are simulated.
func TestMigrateLive(t *testing.T) {
	s := sandboxtest.StartSandbox(t, sandboxtest.Options{})
	config, err := s.Config()
	if err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Install(t.Context(), config, []*apiextensionsv1.CustomResourceDefinition{provisioners(t)}); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create(t, c, liveObjects)
	out, said, err := runBoth(t, "", "migrate", "--live", "--kubeconfig", s.Kubeconfig())
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	liveOutput(t, out, said)
	liveWorkloads(t, s.Kubeconfig())
	again, said, err := runBoth(t, out, "migrate", "-f", "-", "--check")
	if err != nil || again != "" {
		t.Errorf("migrating the output changes it again: %v\n%s", err, said)
	}
}

// liveObjects are the objects of the cluster of TestMigrateLive.
var liveObjects = []string{
	"{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: older}, spec: {providerRef: {name: a}, ttlSecondsAfterEmpty: 30, consolidation: {enabled: false}}}",
	"{apiVersion: v1, kind: Node, metadata: {name: first}, spec: {providerID: 'kwok://first'}}",
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: karpenter-global-settings, namespace: default}, data: {aws.clusterName: prod, featureGates.driftEnabled: \"true\"}}",
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: another, namespace: default}, data: {a: b}}",
	"{apiVersion: apps/v1, kind: Deployment, metadata: {name: old, namespace: default}, spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {karpenter.sh/provisioner-name: older}, containers: [{name: c, image: i}]}}}}",
	"{apiVersion: apps/v1, kind: Deployment, metadata: {name: new, namespace: default}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}",
}

// create creates objects that are given as YAML.
func create(t *testing.T, c client.Client, objects []string) {
	t.Helper()
	for _, text := range objects {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// liveOutput checks that pools and classes are printed, and that workloads are only reported.
func liveOutput(t *testing.T, out, said string) {
	t.Helper()
	for _, text := range []string{"kind: NodePool\nmetadata:\n  name: older\n", "kind: KWOKNodeClass\n", "consolidateAfter: 30s", "clusterName: prod"} {
		if !strings.Contains(out, text) {
			t.Errorf("it did not print %q", text)
		}
	}
	for _, text := range []string{"EC2NodeClass", "kind: Deployment", "kind: Node\n", "name: another\n", "uid:", "resourceVersion", "managedFields", "status:", "Provisioner"} {
		if strings.Contains(out, text) {
			t.Errorf("it printed %q", text)
		}
	}
	for _, text := range []string{"simulated (Node first)", "Deployment default/old", "applying it restarts its pods"} {
		if !strings.Contains(said, text) {
			t.Errorf("it did not report %q", text)
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", out, said)
	}
}

// liveWorkloads checks that workloads are printed on request, and EC2's classes if the provider is aws.
func liveWorkloads(t *testing.T, kubeconfig string) {
	t.Helper()
	workloads, _, err := runBoth(t, "", "migrate", "--live", "--workloads", "--cloud-provider=aws", "--kubeconfig", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"EC2NodeClass": true, "name: old\n": true, "karpenter.sh/nodepool: older": true, "name: new\n": false, "replicas:": false} {
		if strings.Contains(workloads, text) != want {
			t.Errorf("with workloads it printed %q: %t\n%s", text, !want, workloads)
		}
	}
}

// provisioners returns the definition of the kind from older charts, as far as storing objects needs it.
func provisioners(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	text := `metadata: {name: provisioners.karpenter.sh}
spec:
  group: karpenter.sh
  scope: Cluster
  names: {kind: Provisioner, plural: provisioners, singular: provisioner, listKind: ProvisionerList}
  versions:
  - name: v1alpha5
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	if err := yaml.Unmarshal([]byte(text), definition); err != nil {
		t.Fatal(err)
	}
	return definition
}
