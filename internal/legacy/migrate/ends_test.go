package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const podWithOldName = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a # one\nspec:\n  nodeSelector:\n    karpenter.sh/provisioner-name: x\n  containers:\n  - {name: a, image: i}\n"

// dos returns a text with DOS line ends.
func dos(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// lineEnds contains texts, and their output.
var lineEnds = []struct{ name, text, want string }{
	{"neither", dos("a: b\nc: d\n"), dos("a: b\nc: d\n")},
	{"mixed", "a: b\r\nc: d\ne: f\r\n", "a: b\r\nc: d\ne: f\r\n"},
	{"no end", "a: b\r\nc: d", "a: b\r\nc: d\r\n"},
	{"two documents", dos("---\na: b\n---\n\nc: d\n"), dos("a: b\n---\nc: d\n")},
	{"one line changes", dos(podWithOldName), dos(strings.Replace(podWithOldName, "provisioner-name", "nodepool", 1))},
	{"one line of a mixed one changes", strings.Replace(podWithOldName, "one\n", "one\r\n", 1),
		strings.Replace(strings.Replace(podWithOldName, "provisioner-name", "nodepool", 1), "one\n", "one\r\n", 1)},
	{"lines are put in", dos("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: i}]}\n"),
		dos("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  selector:\n    matchLabels:\n      a: b\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: i}]}\n")},
	{"written anew", dos(poolWith("v1", "weight: \"5\" # five", none)), dos(poolWith("v1", "weight: 5 # five", none))},
	{"JSON", dos("{\n\"a\": 5}\n"), dos("{\n\"a\": 5}\n")},
	{"none", "a: b\n", "a: b\n"},
}

// TestLineEnds verifies that lines keep their ends.
func TestLineEnds(t *testing.T) {
	for _, test := range lineEnds {
		t.Run(test.name, func(t *testing.T) {
			result := Run([]File{{Name: "in", Text: []byte(test.text)}}, Options{})
			if diff := cmp.Diff(test.want, string(result.Manifests)); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
			if result.Report.Count(Impossible) > 0 {
				t.Error(result.Report.Text())
			}
		})
	}
}
