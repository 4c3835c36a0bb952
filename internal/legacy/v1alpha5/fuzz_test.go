package v1alpha5

import (
	"bytes"
	"io"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/karpenter-go/karpenter/internal/testing/golden"
)

// FuzzTranslate verifies that for any input, Translate returns a deterministic result for each object that the API
// would return unchanged, and does not modify the objects. A class always has its required fields.
func FuzzTranslate(f *testing.F) {
	for _, file := range golden.Read(f, "testdata") {
		for _, part := range file.Files {
			if part.Name == "in.yaml" {
				f.Add(part.Data, uint8(0))
				f.Add(part.Data, uint8(255))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, known uint8) {
		objects := readable(text)
		var settings Settings
		settings.Kwok = known&1 != 0
		if known&2 != 0 {
			settings.ClusterName, settings.DefaultInstanceProfile = "test", "nodes"
		}
		if known&4 != 0 {
			settings.KubernetesMinor, settings.MaxPods, settings.Drift = 34, 110, true
		}
		var before []*unstructured.Unstructured
		for _, object := range objects {
			before = append(before, object.DeepCopy())
		}
		results := Translate(objects, settings)
		if len(results) != len(objects) {
			t.Fatalf("%d results for %d objects", len(results), len(objects))
		}
		if !reflect.DeepEqual(before, objects) {
			t.Errorf("an object has changed:\n%s", cmp.Diff(before, objects))
		}
		if again := Translate(objects, settings); !reflect.DeepEqual(results, again) {
			t.Errorf("the second result differs:\n%s", cmp.Diff(results, again))
		}
		for i, r := range results {
			if (r.Pool != nil) != (r.Kind == KindProvisioner) || r.Name != objects[i].GetName() {
				t.Errorf("%s %s: pool %v", r.Kind, r.Name, r.Pool)
			}
			readBack(t, r)
			for _, class := range r.Classes {
				spec := class.Spec
				switch {
				case len(spec.SubnetSelectorTerms)*len(spec.SecurityGroupSelectorTerms)*len(spec.AMISelectorTerms) == 0:
					t.Errorf("len(spec.SubnetSelectorTerms)*len(spec.SecurityGroupSelectorTerms)*len(spec.AMISelectorTerms) is 0, class %s, lacks required fields: %+v", class.Name, spec)
				case spec.InstanceProfile == nil:
					t.Errorf("spec.InstanceProfile is nil, class %s, lacks required fields: %+v", class.Name, spec)
				case *spec.InstanceProfile == "":
					t.Errorf(`*spec.InstanceProfile is "", class %s, lacks required fields: %+v`, class.Name, spec)
				}
			}
		}
	})
}

// readable returns the older objects in a text, as far as it can be parsed.
func readable(text []byte) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); err == io.EOF || err != nil {
			return objects
		}
		if object.Object != nil && Translates(object) {
			objects = append(objects, object)
		}
	}
}
