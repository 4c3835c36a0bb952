package schemas

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"

	"github.com/karpenter-go/karpenter/api/crds"
	"github.com/karpenter-go/karpenter/internal/legacy/migrate"
	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/doctor"
	"github.com/karpenter-go/karpenter/plugin/history"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/top"
)

// update writes the files.
var update = flag.Bool("update", false, "write docs/reference/schemas again")

const (
	folder = "../../docs/reference/schemas"
	draft  = "https://json-schema.org/draft/2020-12/schema"
)

// outputs are the documents by name.
var outputs = map[string]any{
	"simulate":         offline.LaunchAnswer{},
	"simulate-diff":    offline.DiffAnswer{},
	"simulate-disrupt": offline.DisruptAnswer{},
	"explain-pod":      offline.PodOutcome{},
	"explain-pods":     offline.PodsOutcome{},
	"explain-node":     offline.NodeOutcome{},
	"explain-pool":     offline.PoolOutcome{},
	"explain-overlay":  offline.OverlayDetails{},
	"explain-buffer":   offline.BufferDetails{},
	"explain-quota":    offline.QuotaDetails{},
	"explain-pools":    offline.PoolsOutcome{},
	"top":              top.Fleet{},
	"history":          history.Nodes{},
	"history-node":     history.NodeRecords{},
	"history-pod":      history.PodRecords{},
	"history-commands": history.Commands{},
	"history-hours":    history.Hours{},
	"doctor":           doctor.Report{},
	"migrate-report":   migrate.Report{},
}

// TestSchemas compares the files with the definitions and types, and fails for a file that belongs to neither.
func TestSchemas(t *testing.T) {
	want := map[string][]byte{}
	for name, document := range outputs {
		want["output/"+name+".json"] = outputSchema(t, name, document)
	}
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		for i := range d.Spec.Versions {
			v := &d.Spec.Versions[i]
			name := d.Spec.Group + "/" + strings.ToLower(d.Spec.Names.Kind) + "_" + v.Name + ".json"
			want[name] = resourceSchema(t, d.Spec.Names.Kind, v.Name, v.Schema.OpenAPIV3Schema)
		}
	}
	if *update {
		write(t, want)
	}
	got := read(t)
	for name, text := range want {
		if diff := cmp.Diff(string(text), string(got[name])); diff != "" {
			t.Errorf("%s: run make reference (-want +got):\n%s", name, diff)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s describes nothing: remove it", name)
	}
}

// outputSchema returns the schema of a document. Comments of fields become descriptions.
func outputSchema(t *testing.T, name string, document any) []byte {
	t.Helper()
	r := jsonschema.Reflector{RequiredFromJSONSchemaTags: false, ExpandedStruct: true, Mapper: func(of reflect.Type) *jsonschema.Schema {
		if of == reflect.TypeFor[bill.USD]() { // whole nano-USD, which documents have in USD
			return &jsonschema.Schema{Type: "number"}
		}
		return nil
	}}
	for _, source := range []string{"plugin/offline", "plugin/top", "plugin/history", "plugin/doctor", "internal/cluster/capture",
		"internal/legacy/migrate", "cloud"} {
		err := r.AddGoComments("github.com/karpenter-go/karpenter/test/schemas", "../../"+source, jsonschema.WithFullComment())
		if err != nil {
			t.Fatal(err)
		}
	}
	s := r.Reflect(document)
	s.ID = jsonschema.ID("https://raw.githubusercontent.com/karpenter-go/karpenter/main/docs/reference/schemas/output/" + name + ".json")
	return encode(t, s)
}

// resourceSchema returns the schema of a version of a custom resource as a document of its own.
func resourceSchema(t *testing.T, kind, version string, of any) []byte {
	t.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	document["$schema"], document["title"] = draft, kind+" "+version
	standard(document)
	return encode(t, document)
}

// standard rewrites what only Kubernetes reads: x-kubernetes-int-or-string becomes two types, and nullable a third. Fields
// that the definition does not have are refused where the API server drops them.
func standard(schema map[string]any) {
	if schema["x-kubernetes-int-or-string"] == true {
		delete(schema, "anyOf")
		schema["type"] = []any{"integer", "string"}
	}
	if kind, is := schema["type"].(string); is && schema["nullable"] == true {
		schema["type"] = []any{kind, "null"}
	}
	properties, _ := schema["properties"].(map[string]any)
	if _, open := schema["additionalProperties"]; !open && len(properties) > 0 && schema["x-kubernetes-preserve-unknown-fields"] != true {
		schema["additionalProperties"] = false
	}
	for _, property := range properties {
		standard(property.(map[string]any))
	}
	for _, part := range []string{"items", "additionalProperties"} {
		if inner, is := schema[part].(map[string]any); is {
			standard(inner)
		}
	}
	for key := range schema {
		if strings.HasPrefix(key, "x-kubernetes-") || key == "nullable" {
			delete(schema, key)
		}
	}
}

func encode(t *testing.T, document any) []byte {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func write(t *testing.T, files map[string][]byte) {
	t.Helper()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// read returns the files by their paths below the folder.
func read(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	paths, err := filepath.Glob(filepath.Join(folder, "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.ToSlash(name)] = text
	}
	return files
}
