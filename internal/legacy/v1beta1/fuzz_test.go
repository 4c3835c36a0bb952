package v1beta1

import (
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/internal/testing/golden"
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
		if text, ok := annotation(object, AnnotationV1Beta1); ok && version == v1 { // edits are applied to their object only
			annotate(object, AnnotationV1Beta1, strings.ReplaceAll(text, "DIGEST", digest(object)))
		}
		tidy(object)
		before := written(object)
		there, err := convertBounded(t, c, object, group+"/"+other)
		if bound := (*BoundError)(nil); errors.As(err, &bound) && version == v1beta1 {
			continue // what only v1beta1 has is too much for an annotation
		}
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

// convertBounded converts an object, and verifies that the allocated bytes are at most what its fields and those of the
// texts in its annotations may cost.
func convertBounded(t *testing.T, c Converter, object map[string]any, to string) (map[string]any, error) {
	t.Helper()
	text := written(object)
	most, _ := Cost(text)
	for _, key := range []string{AnnotationV1Beta1, AnnotationV1, AnnotationKubelet, AnnotationNodeClassReference} {
		text, _ := annotation(object, key)
		fields, _ := Cost(text)
		most += min(fields, mostCost)
	}
	most += 100<<10 + 10*len(text)
	got := math.MaxInt
	var converted map[string]any
	var err error
	for range 3 { // other goroutines may allocate too
		if got <= most {
			break
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		converted, err = c.Convert(object, to)
		runtime.ReadMemStats(&after)
		got = min(got, int(after.TotalAlloc-before.TotalAlloc))
	}
	if got > most {
		t.Errorf("the conversion of %d bytes to %s allocated %d bytes, want at most %d: %s", len(text), to, got, most, text)
	}
	return converted, err
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
	for _, file := range golden.Read(f, "testdata") {
		for _, section := range file.Files {
			data, err := yaml.YAMLToJSON(section.Data)
			if err != nil {
				f.Fatal(err)
			}
			for which := range kinds {
				f.Add(data, byte(which))
			}
		}
	}
	for _, forged := range []string{
		`[{"path":["spec","x"],"value":{"a":{"b":[{},{},1]}}},{"path":["spec","x","a","b"],"remove":true}]`,
		`[{"path":["spec"` + strings.Repeat(`,"a"`, 63) + `],"value":1}]`,
		`[{"path":["spec"` + strings.Repeat(`,"a"`, 2000) + `],"value":1}]`,
		`[{"path":["spec","x"],"value":` + nest(`{"a":`, "}", 90) + `}]`,
		`[{"path":["metadata","annotations","` + AnnotationKubelet + `"],"value":"{\"a\":{},\"b\":[[],[],[]]}"}]`,
	} {
		note, err := json.Marshal(`{"of":"DIGEST","edits":` + forged + `}`)
		if err != nil {
			f.Fatal(err)
		}
		for _, note := range []string{string(note), strings.NewReplacer(",", `\u002c`, "{", `\u007b`, "[", `\u005b`).Replace(string(note))} {
			f.Add([]byte(`{"metadata":{"annotations":{"`+AnnotationV1Beta1+`":`+note+`}},"spec":{"x":{"a":{"a":{}}},"template":{"spec":{"kubelet":{"maxPods":1}}}}}`), byte(0))
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
	{AnnotationV1Beta1, []string{`"{\"of\":\"0\",\"edits\":[{\"path\":[\"spec\"],\"remove\":true}]}"`, `"{"`,
		`"{\"of\":\"DIGEST\",\"edits\":[{\"path\":[\"spec\",\"template\",\"spec\",\"kubelet\"],\"value\":{\"maxPods\":1}},{\"path\":[\"metadata\",\"annotations\",\"a\"],\"value\":\"b\"}]}"`,
		`"{\"of\":\"DIGEST\",\"edits\":[{\"path\":[\"spec\"],\"value\":[1]}]}"`}},
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
		setAll := func(prefix []string, split bool, table []fuzzedField) {
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
				set(fields, path, value)
			}
		}
		setAll([]string{"metadata", "annotations"}, false, noteFields)
		if k.kind == awsClass {
			setAll(nil, true, classFields)
		} else {
			setAll(nil, true, poolFields)
			setAll([]string{"spec"}, true, sharedFields)
			setAll([]string{"spec", "template", "spec"}, true, sharedFields)
		}
		checkRoundTrip(t, fields, k.group, k.kind)
	})
}

// set sets the field at a path, and makes the maps above it.
func set(fields map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		next, ok := fields[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			fields[name] = next
		}
		fields = next
	}
	fields[path[len(path)-1]] = value
}
