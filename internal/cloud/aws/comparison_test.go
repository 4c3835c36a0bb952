package aws

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// comparisonPage compares upstream's provider with this one.
const comparisonPage = root + "/docs/aws-comparison.md"

// TestComparison checks that each row of docs/aws-comparison.md has a verdict of the four, that each claim has a proof
// which exists (a test, a golden document of a launch, or a path), and that nothing else has one.
func TestComparison(t *testing.T) {
	text, err := os.ReadFile(comparisonPage)
	check(t, err)
	tests := testNames(t)
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 7 || strings.HasPrefix(line, "|--") || cells[3] == " here " {
			continue
		}
		rows++
		name, verdict := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[3])
		var proofs []string
		for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[5], -1) {
			proofs = append(proofs, found[1])
		}
		switch {
		case !slices.Contains([]string{"same", "more", "not yet", "neither"}, verdict):
			t.Errorf("%s: the verdict is %q, want same, more, not yet or neither", name, verdict)
		case (verdict == "same" || verdict == "more") != (len(proofs) > 0):
			t.Errorf("%s: the verdict %q has the proofs %v", name, verdict, proofs)
		}
		for _, proof := range proofs {
			_, golden := os.Stat("launch/testdata/" + proof + ".txtar")
			_, path := os.Stat(root + "/" + proof)
			if !tests[proof] && golden != nil && path != nil {
				t.Errorf("%s: there is no test, golden document or path %s", name, proof)
			}
		}
	}
	if rows < 40 {
		t.Errorf("the page has %d rows: the test reads the wrong ones", rows)
	}
}

// testNames returns the names of the tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names, declaration := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	check(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		for _, found := range declaration.FindAllSubmatch(text, -1) {
			names[string(found[1])] = true
		}
		return err
	}))
	return names
}
