package telemetry_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEventsAreDocumented verifies that the table of events in docs/operations.md contains exactly the reasons that
// the program emits.
func TestEventsAreDocumented(t *testing.T) {
	reasons := reasonsOfConstructors(t)
	emitted := map[string]bool{}
	call := regexp.MustCompile(`telemetry\.(\w+)\(`)
	for _, root := range []string{"..", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path,
				"_test.go") || strings.HasPrefix(path, "../telemetry/") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range call.FindAllStringSubmatch(string(text), -1) {
				if reason := reasons[found[1]]; reason != "" {
					emitted[reason] = true
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for reason := range emitted {
		want = append(want, reason)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, documentedReasons(t)); diff != "" || len(want) < 10 {
		t.Errorf("reasons of events, -emitted +docs/operations.md:\n%s", diff)
	}
}

// reasonsOfConstructors returns the reason of each function that creates an event.
func reasonsOfConstructors(t *testing.T) map[string]string {
	t.Helper()
	var text []byte
	for _, file := range []string{"events.go", "life.go", "static.go", "aws.go"} {
		more, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, more...)
	}
	values := map[string]string{}
	for _, found := range regexp.MustCompile(`(Reason\w+)\s*= "(\w+)"`).FindAllStringSubmatch(string(text), -1) {
		values[found[1]] = found[2]
	}
	reasons := map[string]string{}
	for _, found := range regexp.MustCompile(`(?s)\nfunc (\w+)\([^\n]*\) Event \{(.*?)\n\}`).FindAllStringSubmatch(string(text), -1) {
		name, body := found[1], found[2]
		reasons[name] = values[regexp.MustCompile(`Reason\w+`).FindString(body)]
		if other := regexp.MustCompile(`e := (\w+)\(node, `).FindStringSubmatch(body); reasons[name] == "" && other != nil {
			reasons[name] = reasons[other[1]]
		}
	}
	return reasons
}

func documentedReasons(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Events\n")
	if !found {
		t.Fatal("docs/operations.md has no section Events")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var list []string
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cell, _, _ := strings.Cut(line[2:], "|")
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cell, -1) {
			list = append(list, name[1])
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
