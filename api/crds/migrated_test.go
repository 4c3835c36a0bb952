package crds_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// migrated is the output of internal/legacy/migrate for the matrix of manifests, as stored by its tests.
const migrated = "../../internal/legacy/migrate/testdata"

// testMigrated creates the output of `kubectl karpenter migrate` through the API server: all of it is valid and has no
// unknown fields.
func testMigrated(t *testing.T, s *server) {
	paths, err := filepath.Glob(filepath.Join(migrated, "*.yaml"))
	if err != nil || len(paths) < 40 {
		t.Fatalf("%d migrated manifests, %v", len(paths), err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}
	if err := s.Create(t.Context(), account); err == nil { // no controller is running that would create it
		t.Cleanup(func() {
			if err := s.Delete(context.Background(), account); err != nil {
				t.Errorf("deleting the service account: %v", err)
			}
		})
	}
	created := 0
	for _, path := range paths {
		if strings.HasPrefix(filepath.Base(path), "values-") {
			continue
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for decoder := yamlstream.NewYAMLOrJSONDecoder(file, 4096); ; {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(&object.Object); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if len(object.Object) == 0 { // only comments
				continue
			}
			if namespaced(object.GetKind()) {
				object.SetNamespace("default")
			}
			created++
			if err := s.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s: %s %s: %v", filepath.Base(path), object.GetKind(), object.GetName(), err)
			}
		}
	}
	if created < 60 {
		t.Errorf("%d objects, want 60 or more", created)
	}
}

func namespaced(kind string) bool {
	switch kind {
	case "NodePool", "EC2NodeClass", "PersistentVolume":
		return false
	}
	return true
}
