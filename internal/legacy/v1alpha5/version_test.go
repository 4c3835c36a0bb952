package v1alpha5

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWrittenVersion(t *testing.T) {
	entry := func(version, fields, subresource string, minute int) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC))
		return metav1.ManagedFieldsEntry{
			Manager: "m" + version, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "karpenter.sh/" + version, Time: &at,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: subresource,
		}
	}
	const one, two, none = `{"f:spec":{"f:a":{}}}`, `{"f:spec":{"f:a":{},"f:b":{}}}`, `{"f:metadata":{"f:labels":{}}}`
	for _, test := range []struct {
		name    string
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		{"a file", nil, "v1alpha5"},
		{"one manager", []metav1.ManagedFieldsEntry{entry("v1alpha3", one, "", 1)}, "v1alpha3"},
		{"a small edit later", []metav1.ManagedFieldsEntry{entry("v1alpha3", two, "", 1), entry("v1alpha5", one, "", 2)}, "v1alpha3"},
		{"a rewrite later", []metav1.ManagedFieldsEntry{entry("v1alpha3", one, "", 1), entry("v1alpha4", one, "", 2)}, "v1alpha4"},
		{"the order does not count", []metav1.ManagedFieldsEntry{entry("v1alpha4", one, "", 2), entry("v1alpha3", one, "", 1)}, "v1alpha4"},
		{"a status", []metav1.ManagedFieldsEntry{entry("v1alpha3", one, "", 1), entry("v1alpha5", two, "status", 2)}, "v1alpha3"},
		{"labels only", []metav1.ManagedFieldsEntry{entry("v1alpha3", none, "", 1)}, "v1alpha5"},
		{"unreadable", []metav1.ManagedFieldsEntry{entry("v1alpha3", `[`, "", 1)}, "v1alpha5"},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner"}}
			object.SetManagedFields(test.entries)
			if got := WrittenVersion(object); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestMeantVersion(t *testing.T) {
	for _, test := range []struct {
		name string
		spec map[string]any
		want string
	}{
		{"nothing", nil, V1Alpha5},
		{"v1alpha3 read as v1alpha5", map[string]any{"cluster": map[string]any{}}, V1Alpha3},
		{"v1alpha4 read as v1alpha5", map[string]any{"provider": map[string]any{"cluster": map[string]any{}}}, V1Alpha4},
		{"v0.4.1", map[string]any{"provider": map[string]any{"cluster": map[string]any{}}, "requirements": []any{}}, V1Alpha5},
		{"a provider that is none", map[string]any{"provider": "x"}, V1Alpha5},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "spec": test.spec}}
		if got := meantVersion(object); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
