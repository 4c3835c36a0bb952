package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestSearch(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.go":                 "package a\n\n// f asks nobody,\n// and Somebody.\nfunc fNobody() string { return \"whom\" + `\nwhoever` }\n",
		"b.md":                 "# B\n\nEverybody, himself.\n```go\n// nobody\n```\n",
		"c.md":                 "The anybodys are not excluded, nor is nobodys.\n",
		"e.go":                 "package a\n\n// " + strings.Repeat("é", columns-3) + "\n// " + strings.Repeat("é", columns-2) + "\n",
		"f.go":                 "package a\n\nvar purchase, text = \"purchase\", \"nodes are bought\"\n",
		"f_test.go":            "package a\n\nvar other = \"nodes are bought\"\n",
		"charts/a/values.yaml": "# Empty: everybody.\n",
		"values.yaml":          "# Empty: everybody.\n",
		"d.go":                 "package a\n\n// nobody adds this file to git.\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tracked := []string{"add", "a.go", "b.md", "c.md", "e.go", "f.go", "f_test.go", "charts", "values.yaml"}
	for _, arguments := range [][]string{{"init", "-q"}, tracked} {
		if output, err := exec.Command("git", append([]string{"-C", root}, arguments...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", arguments, err, output)
		}
	}
	found, err := search(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range found {
		got = append(got, o.String())
	}
	want := []string{
		`a.go:3: "nobody" (comments)`, `a.go:4: "Somebody" (comments)`, `a.go:5: "Nobody" (identifiers)`,
		`a.go:5: "whom" (strings)`, `a.go:6: "whoever" (strings)`,
		`b.md:3: "Everybody" (markdown)`, `b.md:3: "himself" (markdown)`, `b.md:5: "nobody" (markdown)`,
		`charts/a/values.yaml:1: "everybody" (charts)`,
		`e.go:4: "141 columns" (lines)`, `f.go:3: "bought" (messages)`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCompare(t *testing.T) {
	found := []occurrence{{comments, "a.go", "nobody", 1}, {literals, "a.go", "whom", 2}, {literals, "b.go", "whom", 3}}
	lower, err := compare(found, map[string]int{comments: 1, literals: 5, markdown: 2})
	want := map[string]int{comments: 1, identifiers: 0, literals: 2, markdown: 0, charts: 0, lines: 0, shownTexts: 0}
	if err != nil || !maps.Equal(lower, want) {
		t.Errorf("compare: %v, %v, want %v", lower, err, want)
	}
	lower, err = compare(found, map[string]int{comments: 0, literals: 2})
	switch {
	case err == nil:
		t.Error("a comment above the limit: no error, want one")
	case !strings.Contains(err.Error(), `a.go:1: "nobody"`):
		t.Errorf("a comment above the limit: got error %q, want the line of the new word", err)
	case strings.Contains(err.Error(), "whom"):
		t.Errorf("a comment above the limit: got error %q, want nothing of whom, which is within its limit", err)
	}
	if lower[comments] != 0 {
		t.Errorf("a limit is raised to %d", lower[comments])
	}
}

func TestLimits(t *testing.T) {
	want := map[string]int{comments: 3, identifiers: 0, literals: 12, markdown: 0, charts: 0, lines: 0, shownTexts: 0}
	got, err := parseLimits("# a comment\ncomments 3\n\nstrings 12 # a comment\n")
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("parseLimits: %v, %v, want %v", got, err, want)
	}
	if again, err := parseLimits(formatLimits(want)); err != nil || !maps.Equal(again, want) {
		t.Errorf("written and read again: %v, %v, want %v", again, err, want)
	}
	for _, text := range []string{"comment 1", "comments", "comments -1", "comments many", "comments 1 2"} {
		if _, err := parseLimits(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
