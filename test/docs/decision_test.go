package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const decisions = "docs/adr/"

var (
	decisionName = regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	decisionForm = regexp.MustCompile(`(?s)^# (\d+)\. [^\n]+\n\nStatus: (?:Proposed|Accepted|Superseded by \[\d+\]\([^)]+\))\b.*` +
		`\n## Context\n.*\n## Decision\n.*\n## Consequences\n.*\n## Sources\n`)
	// named matches a file or folder of the repository in a list of sources.
	named = regexp.MustCompile("`((?:api|charts|cmd|docs|internal|sandbox|test|tools)/[^`\\s]+|arch_test\\.go)`")
)

// TestDecisions checks that each decision has the form that docs/adr/README.md describes, a number of its own and a row
// in the index, and that the files that it names as sources exist.
func TestDecisions(t *testing.T) {
	index := read(t, decisions+"README.md")
	numbers := map[string]string{}
	for _, page := range pages(t) {
		if !strings.HasPrefix(page, decisions) || page == decisions+"README.md" {
			continue
		}
		text := read(t, page)
		name := decisionName.FindStringSubmatch(path.Base(page))
		form := decisionForm.FindStringSubmatch(text)
		if name == nil || form == nil {
			t.Errorf("%s: the name or the sections are not those that %sREADME.md asks for", page, decisions)
			continue
		}
		if strings.TrimLeft(name[1], "0") != form[1] {
			t.Errorf("%s: the title has the number %s", page, form[1])
		}
		if other := numbers[form[1]]; other != "" {
			t.Errorf("%s and %s have the same number", other, page)
		}
		numbers[form[1]] = page
		if !strings.Contains(index, "("+path.Base(page)+")") {
			t.Errorf("%sREADME.md does not list %s", decisions, page)
		}
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		long := func(line string) bool { return utf8.RuneCountInString(line) > 120 }
		if at := slices.IndexFunc(lines, long); len(lines) > 60 || at >= 0 {
			t.Errorf("%s has %d lines, want at most 60, of at most 120 columns (line %d)", page, len(lines), at+1)
		}
		_, sources, _ := strings.Cut(text, "\n## Sources\n")
		for _, match := range named.FindAllStringSubmatch(sources, -1) {
			if _, err := os.Stat(filepath.Join(root, match[1])); err != nil {
				t.Errorf("%s names %s, which does not exist", page, match[1])
			}
		}
	}
	if len(numbers) < 15 {
		t.Errorf("found only %d decisions", len(numbers))
	}
}
