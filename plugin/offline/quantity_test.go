package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuantitiesAreBounded checks that quantities whose parsing would not end are reported, in files and in captures,
// whatever field they are in, and that texts of the same characters are not: a label may be a short commit.
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
		{"labels", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"1e98701","namespace":"9e1234","uid":"1e1234",
			"labels":{"version":"1e98701","owner":"e123456"},"annotations":{"commit":"12e45678"}},
			"spec":{"containers":[{"name":"a","image":"1e98701","env":[{"name":"REVISION","value":"1e98701"}]}]}}`, ""},
		{"pool", `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"1e98701"},"spec":{"template":{
			"metadata":{"labels":{"version":"1e98701"}},"spec":{"nodeClassRef":{"group":"karpenter.kwok.sh","kind":"KWOKNodeClass","name":"1e98701"},
			"requirements":[]}}}}`, ""},
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
				if test.want == "" && len(o.Problems) == 0 {
					continue
				}
				if len(o.Problems) != 1 || test.want == "" || !strings.Contains(o.Problems[0].Error(), test.want) {
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

// TestRequestsOfAddedPodsAreBounded checks that a request of a pod that is added, which a page may send, is refused
// when its parsing would not end.
func TestRequestsOfAddedPodsAreBounded(t *testing.T) {
	o, err := newManifests()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.patternOf(&Change{Pods: 1, CPU: "1e-1000000000"}); err == nil {
		t.Error("1e-1000000000 CPUs are accepted")
	}
}
