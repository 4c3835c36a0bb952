package v1beta1

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"
)

// checkRoundTrip verifies both laws for one object, taken to be of each version in turn.
func checkRoundTrip(t *testing.T, fields map[string]any, group, kind string) {
	t.Helper()
	c := Converter{Expiry: func(pool string) string { return map[string]string{"default": "72h"}[pool] }}
	fields["kind"] = kind
	for _, version := range []string{v1beta1, v1} {
		object := reread(t, fields)
		object["apiVersion"] = group + "/" + version
		other := v1
		if version == v1 {
			other = v1beta1
		} else {
			unannotate(object, AnnotationV1) // a new object of v1beta1 does not have it
			unannotate(object, AnnotationV1Beta1)
		}
		tidy(object)
		before := written(object)
		there, err := c.Convert(object, group+"/"+other)
		if err != nil {
			t.Fatalf("to %s: %v\n%s", other, err, before)
		}
		if written(object) != before {
			t.Fatalf("the object was changed:\n%s\n%s", before, written(object))
		}
		back, err := c.Convert(reread(t, there), group+"/"+version)
		if err != nil {
			t.Fatalf("back to %s: %v\n%s", version, err, written(there))
		}
		if diff := cmp.Diff(before, written(back)); diff != "" {
			t.Fatalf("%s, %s, %s (-want +got):\n%s\nwas %s\nin between %s", version, other, version, diff, before, written(there))
		}
		if diff := cmp.Diff(written(fixed(object)), written(fixed(there))); diff != "" {
			t.Fatalf("a conversion may not change metadata other than annotations (-want +got):\n%s", diff)
		}
	}
}

// reread returns the object after encoding and decoding.
func reread(t *testing.T, fields map[string]any) map[string]any {
	t.Helper()
	for range 2 { // 1.0 becomes 1 once
		fields = object(written(fields))
	}
	if fields == nil {
		t.Fatal("not an object")
	}
	return fields
}

// fixed returns the parts that no conversion may change.
func fixed(object map[string]any) map[string]any {
	metadata := map[string]any{}
	for key, value := range child(object, "metadata") {
		if key != "annotations" {
			metadata[key] = value
		}
	}
	return map[string]any{"metadata": metadata, "status": object["status"], "kind": object["kind"]}
}

var kinds = []struct{ group, kind string }{{core, "NodePool"}, {core, "NodeClaim"}, {aws, awsClass}}

// FuzzRoundTripOfJSON tests objects of any form that the API server could pass.
func FuzzRoundTripOfJSON(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			data, err := yaml.YAMLToJSON(file.Data)
			if err != nil {
				f.Fatal(err)
			}
			for which := range kinds {
				f.Add(data, byte(which))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, which byte) {
		fields := object(string(data))
		if fields == nil {
			t.Skip("the document is no JSON object")
		}
		fields["metadata"] = metadataOf(fields["metadata"])
		k := kinds[int(which)%len(kinds)]
		checkRoundTrip(t, fields, k.group, k.kind)
	})
}

// metadataOf returns metadata of the form that the API server guarantees.
func metadataOf(value any) map[string]any {
	metadata, _ := value.(map[string]any)
	if metadata == nil {
		return map[string]any{}
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		delete(metadata, "annotations")
	}
	for key, value := range annotations {
		if _, ok := value.(string); !ok {
			delete(annotations, key)
		}
	}
	return metadata
}

// fuzzedField is a field of random objects, with its possible values as JSON.
type fuzzedField struct {
	path   string
	values []string
}

var poolFields = []fuzzedField{
	{"metadata.labels", []string{`{"karpenter.sh/nodepool":"default"}`, `{"karpenter.sh/nodepool":"other"}`}},
	{"spec.disruption", []string{`{}`}},
	{"spec.disruption.consolidationPolicy", []string{`"WhenUnderutilized"`, `"WhenEmpty"`, `"WhenEmptyOrUnderutilized"`, `"Balanced"`, `""`, `null`}},
	{"spec.disruption.consolidateAfter", []string{`"0s"`, `"0m"`, `"30s"`, `"Never"`, `null`}},
	{"spec.disruption.expireAfter", []string{`"720h"`, `"Never"`, `null`, `2592000`}},
	{"spec.disruption.budgets", []string{`[]`, `[{"nodes":"10%"}]`, `[{"nodes":"0","schedule":"0 8 * * sun","duration":"8h","reasons":["Empty"]}]`}},
	{"spec.weight", []string{`1`, `100`}}, {"spec.replicas", []string{`0`, `3`}},
	{"spec.limits", []string{`{"cpu":1000,"memory":"1000Gi"}`, `{}`}},
	{"spec.template", []string{`{}`}}, {"spec.template.metadata.labels", []string{`{"a":"b"}`}},
	{"spec.template.spec", []string{`{}`}},
	{"spec.template.spec.expireAfter", []string{`"720h"`, `"Never"`, `"0s"`}},
	{"spec.template.spec.resources", []string{`{}`, `{"requests":{"cpu":"1"}}`}},
	{"spec.template.spec.terminationGracePeriod", []string{`"1h30m"`}},
	{"spec.template.spec.requirements", []string{`[]`, `[{"key":"a","operator":"Gte","values":["1"]}]`}},
	{"spec.requirements", []string{`[]`}}, {"spec.expireAfter", []string{`"720h"`, `"Never"`, `""`}}, {"spec.resources", []string{`{}`}},
}

var sharedFields = []fuzzedField{
	{"kubelet", []string{`{}`, `{"maxPods":110}`, `{"clusterDNS":["10.0.0.10"],"kubeReserved":{"cpu":"1"},"cpuCFSQuota":false}`, `[]`, `"a"`, `null`}},
	{"nodeClassRef", []string{`{}`, `null`}},
	{"nodeClassRef.name", []string{`"default"`, `"other"`}},
	{"nodeClassRef.kind", []string{`"EC2NodeClass"`, `"KWOKNodeClass"`, `""`}},
	{"nodeClassRef.apiVersion", []string{`"karpenter.k8s.aws/v1beta1"`, `"karpenter.k8s.aws"`, `"karpenter.k8s.aws/v1"`, `"karpenter.kwok.sh/v1alpha1"`, `"v1"`, `""`, `"/"`, `"a/b"`, `"g/v1"`}},
	{"nodeClassRef.group", []string{`"karpenter.k8s.aws"`, `"karpenter.kwok.sh"`, `""`, `"g"`}},
}

var classFields = []fuzzedField{
	{"spec.amiFamily", []string{`"AL2"`, `"AL2023"`, `"Bottlerocket"`, `"Ubuntu"`, `"Custom"`, `"Windows2022"`, `"al2"`, `""`, `null`}},
	{"spec.amiSelectorTerms", []string{`[]`, `null`, `[{"alias":"al2@latest"}]`, `[{"alias":"al2023@latest"}]`, `[{"alias":"al2023@v1"}]`, `[{"id":"ami-placeholder"}]`,
		`[{"alias":"al2@latest","id":"ami-1"}]`, `[{"tags":{"a":"b"}},{"ssmParameter":"p"}]`, `["al2@latest"]`, `"a"`}},
	{"spec.blockDeviceMappings", []string{`[]`, `[{"deviceName":"/dev/sda1","rootVolume":true,"ebs":{"encrypted":true,"volumeType":"gp3","volumeSize":"20Gi"}}]`, `[{}]`}},
	{"spec.metadataOptions", []string{`{}`, `{"httpPutResponseHopLimit":2}`}},
	{"spec.role", []string{`"r"`}}, {"spec.instanceProfile", []string{`"p"`}}, {"spec.kubelet", []string{`{"maxPods":3}`}},
}

var noteFields = []fuzzedField{
	{AnnotationKubelet, []string{`"{}"`, `"{\"maxPods\": 110}"`, `"{"`, `"null"`, `"[]"`, `""`}},
	{AnnotationNodeClassReference, []string{`"{\"name\":\"default\"}"`, `"{\"kind\":\"EC2NodeClass\",\"name\":\"default\",\"apiVersion\":\"karpenter.k8s.aws/v1beta1\"}"`, `"{"`, `"{}"`}},
	{AnnotationUbuntu, []string{`"amiFamily"`, `"amiFamily,blockDeviceMappings,incompatible"`, `"incompatible"`, `""`}},
	{AnnotationV1Beta1, []string{`"{\"of\":\"0\",\"edits\":[{\"path\":[\"spec\"],\"remove\":true}]}"`, `"{"`}},
	{AnnotationV1, []string{`"{\"of\":\"0\",\"edits\":[]}"`, `""`}},
	{"example.com/a", []string{`"b"`}},
}

// FuzzRoundTripOfFields tests objects with all combinations of the fields and annotations that the mappings read: two
// bytes determine whether a field is present and which of its values it has.
func FuzzRoundTripOfFields(f *testing.F) {
	for _, seed := range []string{"", "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01", strings.Repeat("\x02", 60), strings.Repeat("\x03\x00", 40)} {
		for which := range kinds {
			f.Add([]byte(seed), byte(which))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, which byte) {
		k := kinds[int(which)%len(kinds)]
		fields := map[string]any{"metadata": map[string]any{"name": "default", "uid": "1", "finalizers": []any{"a/b"}}, "status": map[string]any{"nodeName": "n"}}
		set := func(prefix []string, split bool, table []fuzzedField) {
			for _, field := range table {
				if len(data) == 0 {
					return
				}
				choice := int(data[0]) % (len(field.values) + 1)
				if data = data[1:]; choice == 0 {
					continue
				}
				var value any
				if err := json.Unmarshal([]byte(field.values[choice-1]), &value); err != nil {
					t.Fatalf("%s: %v", field.path, err)
				}
				path := append(append([]string{}, prefix...), field.path)
				if split {
					path = append(append([]string{}, prefix...), strings.Split(field.path, ".")...)
				}
				edit{Path: path, Value: value}.make(fields)
			}
		}
		set([]string{"metadata", "annotations"}, false, noteFields)
		if k.kind == awsClass {
			set(nil, true, classFields)
		} else {
			set(nil, true, poolFields)
			set([]string{"spec"}, true, sharedFields)
			set([]string{"spec", "template", "spec"}, true, sharedFields)
		}
		checkRoundTrip(t, fields, k.group, k.kind)
	})
}
