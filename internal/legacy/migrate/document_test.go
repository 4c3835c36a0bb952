package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNothingIsLost verifies that every document of a file is printed, however the documents are written and
// separated.
func TestNothingIsLost(t *testing.T) {
	for _, test := range []struct {
		name, in   string
		origins    []string // of the entries
		wants      []string // parts of the output
		impossible int
	}{
		{"JSON, then YAML", "{\"kind\": \"A\"}\n---\nkind: B\n", []string{"document 1", "document 2"}, []string{`{"kind": "A"}`, "kind: B"}, 0},
		{"YAML, then JSON", "kind: A\n---\n{\"kind\": \"B\"}\n---\nkind: C\n", []string{"document 1", "document 2", "document 3"},
			[]string{"kind: A", `{"kind": "B"}`, "kind: C"}, 0},
		{"JSON behind JSON", "{\"kind\": \"A\"} {\"kind\": \"B\"}\n{\n\t\"kind\": \"C\"\n}\n",
			[]string{"document 1", "document 2", "document 3"}, []string{`{"kind": "A"}`, `{"kind": "B"}`, "\t\"kind\": \"C\""}, 0},
		{"JSON, then text", "{\"kind\": \"A\"}\nkind: B\n", []string{"document 1", "document 2"}, []string{`{"kind": "A"}`, "kind: B"}, 0},
		{"flow YAML, then YAML", "{kind: A}\n---\nkind: B\n", []string{"document 1", "document 2"}, []string{"{kind: A}", "kind: B"}, 0},
		{"flow YAML behind flow YAML", "{kind: A}\n{kind: B}\n", []string{"document 1"}, []string{"{kind: A}\n{kind: B}\n"}, 1},
		{"JSON that ends too early", "{\"kind\": \"A\"}\n{\"kind\": \"B\"\n", []string{"document 1", "document 2"},
			[]string{`{"kind": "A"}`, `{"kind": "B"`}, 1},
		{"dots between two", "kind: A\n...\nkind: B\n", []string{"document 1", "document 2"}, []string{"kind: A\n---\nkind: B\n"}, 0},
		{"dots at the end", "kind: A\n...\n---\nkind: B\n...\n", []string{"document 1", "document 2"}, []string{"kind: A\n---\nkind: B\n"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			result := Run([]File{{Name: "in", Text: []byte(test.in)}}, Options{})
			var origins []string
			for _, entry := range result.Report {
				origins = append(origins, strings.TrimPrefix(entry.Origin, "in: "))
			}
			if diff := cmp.Diff(test.origins, origins); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
			for _, want := range test.wants {
				if !strings.Contains(string(result.Manifests), want) {
					t.Errorf("printed\n%s, want it to contain %q", result.Manifests, want)
				}
			}
			if got := result.Report.Count(Impossible); got != test.impossible {
				t.Errorf("%d impossible, want %d:\n%s", got, test.impossible, result.Report.Text())
			}
		})
	}
}
