package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMarks checks that each block has a language, and that marks of commands and YAML name what runs them, or why
// nothing does.
func TestMarks(t *testing.T) {
	tests := testNames(t)
	n := 0
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			n++
			if problem := fault(b, tests); problem != "" {
				t.Errorf("%v: %s", b, problem)
			}
		}
	}
	if n < 50 {
		t.Errorf("found only %d blocks", n)
	}
}

// fault returns what is wrong with a block's language and mark.
func fault(b block, tests map[string]bool) string {
	kind, what, _ := strings.Cut(b.mark, ": ")
	switch b.language {
	case "sh", "yaml":
	case "text", "json", "go", "hcl":
		return ""
	default:
		return "a block of " + b.language + ": want sh, yaml, text, json, go or hcl"
	}
	switch {
	case kind == "not run" && strings.Contains(what, " "):
	case kind == "run by" && tests[what]:
	case kind == "part of" && b.language == "yaml":
	case kind == "run" && b.language == "sh" && slices.Contains([]string{"shell", "sandbox", "cluster"}, what):
	case kind == "run by":
		return "there is no test " + what
	default:
		return "the mark " + b.mark + " says neither what runs it nor why nothing does"
	}
	return ""
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// testNames returns the names of the repository's tests.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, match := range testFunction.FindAllSubmatch(text, -1) {
			names[string(match[1])] = true
		}
		return err
	})
	if err != nil || len(names) < 100 {
		t.Fatalf("%d tests were found: %v", len(names), err)
	}
	return names
}

// TestMarksAreRead checks that invalid marks are detected.
func TestMarksAreRead(t *testing.T) {
	tests := map[string]bool{"TestA": true}
	for _, b := range []block{
		{language: "sh"}, {language: ""}, {language: "bash", mark: "run: shell"}, {language: "sh", mark: "run by: TestB"},
		{language: "sh", mark: "not run: because"}, {language: "sh", mark: "run: kind"}, {language: "sh", mark: "part of: a b"}, {language: "yaml", mark: "run: shell"},
	} {
		if fault(b, tests) == "" {
			t.Errorf("a block of %q with the mark %q is accepted", b.language, b.mark)
		}
	}
	for _, b := range []block{{language: "text"}, {language: "sh", mark: "run: shell"}, {language: "yaml", mark: "run by: TestA"}, {language: "sh", mark: "not run: a cluster is needed"}} {
		if found := fault(b, tests); found != "" {
			t.Errorf("a block of %q with the mark %q: %s", b.language, b.mark, found)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	// GitHub's anchors: lowercase letters, digits, - and _; spaces become -, other characters are removed.
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

func anchors(text string) map[string]bool {
	there := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		there[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-")] = true
	}
	return there
}

// TestLinks checks that links within the repository have an existing target, and their anchors an existing heading.
func TestLinks(t *testing.T) {
	n := 0
	for _, page := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, page), ""), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			n++
			file := page
			if target != "" {
				file = path.Join(path.Dir(page), target)
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, match[1])
			} else if anchor != "" && !anchors(read(t, file))[anchor] {
				t.Errorf("%s links to %s, and there is no such heading", page, match[1])
			}
		}
	}
	if n < 50 {
		t.Errorf("found only %d links", n)
	}
}

// TestEveryPageIsFound checks that README.md, or a page that it links to, links to each page.
func TestEveryPageIsFound(t *testing.T) {
	linked := map[string]bool{"README.md": true}
	for queue := []string{"README.md"}; len(queue) > 0; queue = queue[1:] {
		for _, match := range link.FindAllStringSubmatch(read(t, queue[0]), -1) {
			target, _, _ := strings.Cut(match[1], "#")
			file := path.Join(path.Dir(queue[0]), target)
			if strings.HasSuffix(target, ".md") && !strings.Contains(target, "://") && !linked[file] {
				linked[file] = true
				queue = append(queue, file)
			}
		}
	}
	for _, page := range pages(t) {
		if !linked[page] {
			t.Errorf("nothing leads from README.md to %s", page)
		}
	}
}

var (
	makeCommand = regexp.MustCompile("(?m)(?:^|`|\\s)make ([a-z]+)(?:`| [A-Z]|$| +#)")
	target      = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
)

// TestTargets checks that make targets in the pages exist.
func TestTargets(t *testing.T) {
	there := map[string]bool{}
	for _, match := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		there[match[1]] = true
	}
	n := 0
	for _, page := range pages(t) {
		for _, match := range makeCommand.FindAllStringSubmatch(read(t, page), -1) {
			if n++; !there[match[1]] {
				t.Errorf("%s mentions make %s; the Makefile has no such target", page, match[1])
			}
		}
	}
	if n < 10 {
		t.Errorf("found only %d commands of make", n)
	}
}
