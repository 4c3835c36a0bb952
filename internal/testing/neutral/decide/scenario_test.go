package decide

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/testing/golden"
)

// TestScenarios reads testdata/*.txtar. A file begins with its intent. "both.yaml" and instance-types.json are part of each
// input, "without.yaml" completes the input without a change, and each file "with-NAME.yaml" the input with one. "want" is
// what all of them cost, in USD per hour with 0.005 for each node.
func TestScenarios(t *testing.T) { golden.Each(t, play) }

func play(t *testing.T, file *golden.File) {
	content := map[string]string{}
	for _, f := range file.Files {
		content[f.Name] = string(f.Data)
	}
	want, got := map[string]string{}, map[string]string{}
	for _, f := range file.Files {
		if strings.HasPrefix(f.Name, "with") {
			want[f.Name] = strings.TrimSpace(content["want"])
			got[f.Name] = costOf(t, content, f.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("costs (-want +got):\n%s", diff)
	}
}

// costOf decides a file together with what all inputs of the scenario have.
func costOf(t *testing.T, content map[string]string, name string) string {
	t.Helper()
	folder := t.TempDir()
	for _, part := range []string{"instance-types.json", "both.yaml", name} {
		if content[part] == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, part), []byte(content[part]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Folder(folder, strings.Contains(content["both.yaml"], "kind: Node\n"))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if d.Unschedulable > 0 {
		return fmt.Sprintf("%d pods without a place", d.Unschedulable)
	}
	return fmt.Sprintf("%.4f", d.Cost)
}
