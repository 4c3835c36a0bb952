package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuantitiesAreBounded checks that quantities whose parsing would not end are reported, in files and in captures,
// whatever field they are in.
func TestQuantitiesAreBounded(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
		"spec":{"containers":[{"name":"a","image":"a","resources":{"requests":{%}}}]}}`
	for _, test := range []struct{ name, object, want string }{
		{"LimitRange", `{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"l"},
			"spec":{"limits":[{"type":"Pod","maxLimitRequestRatio":{"cpu":"1e-1000000000"}}]}}`, "an exponent of 10 digits"},
		{"CSIStorageCapacity", `{"apiVersion":"storage.k8s.io/v1","kind":"CSIStorageCapacity","metadata":{"name":"c"},
			"storageClassName":"s","capacity":"1e-1000000000"}`, "an exponent of 10 digits"},
		{"blank", strings.Replace(pod, "%", `"cpu":" 1e-1000000000"`, 1), "an exponent of 10 digits"},
		{"twice", strings.Replace(pod, "%", `"cpu":"1e-1000000000","cpu":"1"`, 1), "an exponent of 10 digits"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			file, capture := filepath.Join(folder, "object.json"), filepath.Join(folder, "capture.json")
			document := `{"apiVersion":"simulate.karpenter-go.github.io/v1alpha1","kind":"Capture",
				"input":{"objects":[],"cluster":[` + test.object + `],"sale":{"declared":{},"catalogues":[]}},"options":{"now":"2026-01-02T03:04:05Z"},"answer":{}}`
			for path, text := range map[string]string{file: test.object, capture: document} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				o, err := newManifests()
				if err != nil {
					t.Fatal(err)
				}
				o.readFile(path)
				if len(o.Problems) != 1 || !strings.Contains(o.Problems[0].Error(), test.want) {
					t.Errorf("%s: problems %v, want one about %s", filepath.Base(path), o.Problems, test.want)
				}
			}
		})
	}
}

// TestDepth verifies that brackets in texts of JSON do not count, and that those of one YAML document do not count for
// the next one.
func TestDepth(t *testing.T) {
	for _, test := range []struct {
		text string
		want int
	}{
		{`{"a":[{}]}`, 3},
		{` {"a":"{[{[\"[["}{"b":"{"}`, 1},
		{"a: '{'\n---\nb: '{['\n---\nc: []\n", 2},
		{"a:\n- - - b\n", 3},
	} {
		if got := depth([]byte(test.text)); got != test.want {
			t.Errorf("%q: %d, want %d", test.text, got, test.want)
		}
	}
}
