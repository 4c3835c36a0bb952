package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// files is a small repository that has one case of each measure, and its neighbor that does not count.
var files = map[string]string{
	"go.mod":               "module " + module + "\n\ngo 1.26.0\n",
	"cmd/karpenter/a.go":   "package main\n\nimport _ \"" + module + "/plugin/top\"\n\nfunc main() { used() }\n",
	"cmd/karpenter/b.go":   "package main\n\nfunc used() { twice(); twice() }\n\nfunc twice() {}\n",
	"plugin/top/top.go":    "package top\n",
	"internal/legacy/x.go": "package legacy\n",
	"test/x.go":            "package test\ntype a struct{}\nfunc (a) one() {}\n",
	"internal/engine/x/x.go": `package x

type part struct{}

func (part) one() {}
func (p *part) two() { p.one() }

type whole struct{ *part }

type other struct{ p *part }

func six(a, b, c, d, e, f int) {}
` + "func long() {" + strings.Repeat("\n", 60) + "}\n",
	"internal/engine/x/x_test.go": `package x

import "testing"

func FuzzX(f *testing.F) {}

func TestX(t *testing.T) {
	a, b, c := true, true, true
	if a && (b || c) {
		t.Errorf("one of three")
	}
	if a || b {
		t.Errorf("one of two")
	}
	if a && b && c {
		t.Log("no error")
	}
}
`,
	"internal/engine/x/testdata/fuzz/FuzzX/1": "go test fuzz v1\n",
}

// written returns a repository of git with the files.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, files)
	git(t, root, "init", "-q")
	git(t, root, "add", ".")
	return root
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func git(t *testing.T, root string, args ...string) {
	t.Helper()
	args = append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func TestMeasures(t *testing.T) {
	root := written(t, files)
	numbers := filepath.Join(root, "numbers.json")
	if err := run(&strings.Builder{}, options{root: root, write: numbers, detail: true}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(&out, options{root: root, before: numbers}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"functions over 60 lines":                                   "1",
		"functions over 5 parameters":                               "1",
		"product: lines of Go without tests":                        "84",
		"product: methods and files of the largest type":            "2, 1",
		"legacy: lines of Go without tests":                         "1",
		"legacy: methods and files of the largest type":             "0, 0",
		"proof: lines of Go without tests":                          "3",
		"proof: methods and files of the largest type":              "1, 1",
		"structs of the engine that embed another of their package": "1",
		"unexported functions used once, from another file":         "14.3 %", // used, of used twice one two six long, and one of test
		"tests: `if` with three or more conditions and one error":   "1",
		"fuzz targets, files of their corpora":                      "1, 1",
		"of these for operators and tests only":                     "1",
	} {
		if got := row(out.String(), name); got != want+" "+want {
			t.Errorf("%s: before and now are %q, want twice %q", name, got, want)
		}
	}
}

// TestSinceCommit checks that the table of changes shows what a commit had, and nothing that is as it was.
func TestSinceCommit(t *testing.T) {
	root := written(t, files)
	git(t, root, "commit", "-q", "-m", "one")
	write(t, root, map[string]string{"plugin/top/top.go": "package top\n\nvar Added int\n"})
	var out strings.Builder
	if err := run(&out, options{root: root, before: "HEAD", changed: true}); err != nil {
		t.Fatal(err)
	}
	if got, want := row(out.String(), "lines of plugin"), "1 3"; got != want {
		t.Errorf("lines of plugin: %q, want %q", got, want)
	}
	if strings.Contains(out.String(), "lines of api") {
		t.Errorf("the table has a line that is as before:\n%s", out.String())
	}
}

// row returns the numbers of a measure in a table, with single spaces.
func row(table, name string) string {
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.TrimSpace(cells[1]) == name {
			return strings.TrimSpace(cells[2]) + " " + strings.TrimSpace(cells[3])
		}
	}
	return ""
}
