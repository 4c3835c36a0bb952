package schemas

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// compiled returns the schema in the file, as a validator that shares nothing with what wrote it.
func compiled(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// valid reports whether the schema accepts a document in YAML or JSON.
func valid(t *testing.T, schema *jsonschema.Schema, document []byte) error {
	t.Helper()
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(value)
}

// TestManifests checks that the schemas accept the manifests of the end-to-end tests, and name what is wrong in others.
func TestManifests(t *testing.T) {
	schemas := map[string]*jsonschema.Schema{
		"NodePool": compiled(t, "karpenter.sh/nodepool_v1.json"), "KWOKNodeClass": compiled(t, "karpenter.kwok.sh/kwoknodeclass_v1alpha1.json"),
		"EC2NodeClass": compiled(t, "karpenter.k8s.aws/ec2nodeclass_v1.json"),
	}
	accepted := map[string]int{}
	files, err := filepath.Glob("../e2e/testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, document := range documents(t, file) {
			kind := kindOf(t, document)
			if schemas[kind] == nil || !strings.Contains(string(document), "/v1") || strings.Contains(string(document), "/v1beta1") {
				continue
			}
			if err := valid(t, schemas[kind], document); err != nil {
				t.Errorf("%s: %v\n%s", file, err, document)
			}
			accepted[kind]++
		}
	}
	if accepted["NodePool"] < 5 {
		t.Errorf("accepted %v, want 5 NodePools or more", accepted)
	}
	for want, document := range map[string]string{
		"additional properties 'requirments' not allowed": "kind: NodePool\nspec: {template: {spec: {requirments: []}}}",
		"got string, want array":                          "kind: NodePool\nspec: {template: {spec: {requirements: none}}}",
		"'/spec/disruption/consolidationPolicy'":          "kind: NodePool\nspec: {disruption: {consolidationPolicy: Often}}",
	} {
		if err := valid(t, schemas["NodePool"], []byte(document)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", document, err, want)
		}
	}
}

func documents(t *testing.T, file string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list [][]byte
	for _, part := range bytes.Split(text, []byte("\n---")) {
		if len(bytes.TrimSpace(part)) > 0 {
			list = append(list, part)
		}
	}
	return list
}

func kindOf(t *testing.T, document []byte) string {
	t.Helper()
	var object struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &object); err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return object.Kind
}

const cluster = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec: {template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, requirements: []}}}
---
apiVersion: v1
kind: Pod
metadata: {name: small, namespace: default}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: huge, namespace: default}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1M}}}]}
`

// TestDocuments checks that the schemas accept what the plugin prints.
func TestDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the plugin")
	}
	dir := t.TempDir()
	plugin, file := filepath.Join(dir, "kubectl-karpenter"), filepath.Join(dir, "cluster.yaml")
	if err := os.WriteFile(file, []byte(cluster), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", plugin, "./plugin/kubectl-karpenter")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const log = "../../internal/testing/world/testdata/life.log"
	for name, arguments := range map[string][]string{
		"history":          {"history", "-f", log, "-o", "json"},
		"history-commands": {"history", "commands", "-f", log, "-o", "json"},
		"history-hours":    {"history", "--by", "hour", "-f", log, "-o", "json"},
		"history-pod":      {"history", "pod", "default/batch-9", "-f", log, "-o", "json"},
		"simulate":         {"simulate", "-f", file, "-o", "json"},
		"simulate-disrupt": {"simulate", "-f", file, "--disrupt", "-o", "json"},
	} {
		command := exec.CommandContext(t.Context(), plugin, arguments...)
		var problems bytes.Buffer
		command.Stderr = &problems
		out, err := command.Output()
		if len(out) == 0 {
			t.Fatalf("%s: %v\n%s", name, err, problems.String())
		}
		if err := valid(t, compiled(t, "output/"+name+".json"), out); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
