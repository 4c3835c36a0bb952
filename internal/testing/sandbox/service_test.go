package sandbox

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestCreateLocalService checks that the Service of a sandbox points to this machine, and that a second `up` does not change
// it.
func TestCreateLocalService(t *testing.T) {
	s := startTest(t, Options{DataDir: t.TempDir(), Assets: testAssets(t), Components: APIOnly()})
	config, err := s.Config()
	if err != nil {
		t.Fatal(err)
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := CreateLocalService(t.Context(), config, "karpenter"); err != nil {
		t.Fatal(err)
	}
	before, err := api.CoreV1().Services("kube-system").Get(t.Context(), "karpenter", metav1.GetOptions{})
	switch {
	case err != nil:
		t.Fatalf("unexpected error: %v", err)
	case before.Spec.Type != corev1.ServiceTypeExternalName:
		t.Fatalf("the Service has the type %s, want %s", before.Spec.Type, corev1.ServiceTypeExternalName)
	case before.Spec.ExternalName != "localhost":
		t.Fatalf("the Service points to %q, want localhost", before.Spec.ExternalName)
	}
	if err := CreateLocalService(t.Context(), config, "karpenter"); err != nil {
		t.Fatal(err)
	}
	after, err := api.CoreV1().Services("kube-system").Get(t.Context(), "karpenter", metav1.GetOptions{})
	if err != nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("after a second call: version %s, want %s (%v)", after.ResourceVersion, before.ResourceVersion, err)
	}
}
