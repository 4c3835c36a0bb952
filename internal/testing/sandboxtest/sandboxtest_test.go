package sandboxtest

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

const boats = `
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.org}
spec:
  group: example.org
  scope: Cluster
  names: {kind: Boat, listKind: BoatList, plural: boats, singular: boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              masts: {type: integer, minimum: 1}
---
# a document that holds nothing
`

// TestStartServesTheDefinitions checks that a test's API server serves the given definitions with their validation
// rules, and reports the version of Kubernetes that it was built from.
func TestStartServesTheDefinitions(t *testing.T) {
	config := Start(t, Options{Manifests: [][]byte{[]byte(boats)}})
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	resource := client.Resource(schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "boats"})
	boat := func(name string, masts int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Boat",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"masts": masts},
		}}
	}
	if _, err := resource.Create(t.Context(), boat("sloop", 1), metav1.CreateOptions{}); err != nil {
		t.Errorf("creating a valid object: %v", err)
	}
	if _, err := resource.Create(t.Context(), boat("raft", 0), metav1.CreateOptions{}); err == nil {
		t.Error("an invalid object was accepted")
	}
	versions, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if versions.Major != "1" || versions.GitVersion == "v0.0.0-master+$Format:%H$" {
		t.Errorf("the API server reports version %s", versions.GitVersion)
	}
}

// TestParse checks that every definition of a manifest is read, and that invalid YAML is rejected.
func TestParse(t *testing.T) {
	definitions, err := Parse([]byte(boats))
	if err != nil {
		t.Fatal(err)
	}
	if len(definitions) != 1 || definitions[0].Spec.Scope != apiextensionsv1.ClusterScoped {
		t.Errorf("got %d definitions, want the cluster-scoped boats", len(definitions))
	}
	if _, err := Parse([]byte("a: [")); err == nil {
		t.Error("broken YAML was accepted")
	}
}
