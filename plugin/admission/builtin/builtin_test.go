package builtin

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

var update = flag.Bool("update", false, "write the refusals to testdata again")

// TestRefusals compares what is said of each object with testdata/refusals.txtar. Its words are those of an API server:
// the test of the name in sandbox/kubernetes.
func TestRefusals(t *testing.T) {
	const file, end = "testdata/refusals.txtar", "--- refused"
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "\n-- ")
	for i := range parts[1:] {
		head, want, found := strings.Cut(parts[1+i], end)
		name, object, _ := strings.Cut(head, " --\n")
		if !found {
			t.Fatalf("%s: no line %q", name, end)
		}
		o, _, err := decoder.Decode([]byte(object), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var lines []string
		for _, refusal := range Refusals(o) {
			lines = append(lines, refusal.Error()+"\n")
		}
		for _, warning := range Warnings(o) {
			lines = append(lines, "warning: "+warning+"\n")
		}
		slices.Sort(lines)
		got := "\n" + strings.Join(lines, "")
		if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" && !*update {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		parts[1+i] = head + end + strings.TrimSuffix(got, "\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(parts, "\n-- ")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
