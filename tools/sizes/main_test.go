package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestPackageOf(t *testing.T) {
	for symbol, want := range map[string]string{
		"main.main":                                                 "main",
		"github.com/a/b/c.(*T).Method.func":                         "github.com/a/b/c",
		"gopkg.in/yaml%2ev3.(*parser).node":                         "gopkg.in/yaml.v3",
		"slices.SortFunc[go.shape.[]github.com/a/b.T,go.shape.int]": "slices",
		"type:*github.com/a/b.T":                                    "type:*",
		"go:func.*":                                                 "go:*",
		"_cgo_init":                                                 "(linker)",
	} {
		if got := packageOf(symbol); got != want {
			t.Errorf("%s: %s, want %s", symbol, got, want)
		}
	}
	for path, want := range map[string]string{
		"crypto/tls": "Go", "type:*": "type:*", "k8s.io/api/core/v1": "k8s.io/api", "github.com/a/b/c/d": "github.com/a/b",
		"github.com/aws/aws-sdk-go-v2/service/ec2/types": "github.com/aws/aws-sdk-go-v2/service/ec2", "main": "Go",
	} {
		if got := moduleOf(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// built returns a program for Linux that is built in a folder.
func built(t *testing.T, folder, name string) program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "grpcnotrace", "-trimpath", "-o", path, name)
	build.Dir = folder
	build.Env = append(build.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	p, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTemplates checks that a program with text/template is found, also with a later version of Go: its symbol may get
// another name.
func TestTemplates(t *testing.T) {
	for source, want := range map[string]bool{
		`package main

import (
	"os"
	"text/template"
)

func main() { _ = template.Must(template.New("").Parse("{{.Name}}")).Execute(os.Stdout, os.Args) }
`: true,
		"package main\n\nfunc main() {}\n": false,
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		p := built(t, folder, "main.go")
		var text strings.Builder
		p.print(&text, false, 5)
		if p.templates != want || strings.Contains(text.String(), "text/template is linked") != want {
			t.Errorf("got %v, want %v: %s", p.templates, want, text.String())
		}
	}
}

// TestPrograms bounds the programs that users download, and checks that none has what keeps every exported method.
func TestPrograms(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads programs for Linux")
	}
	for name, most := range map[string]uint64{
		// Bytes without symbols, some 5% above what docs/measures.md has.
		"./cmd/karpenter":            60_000_000,
		"./plugin/kubectl-karpenter": 61_000_000,
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			p := built(t, "../..", name)
			if p.loaded > most || p.loaded < most/2 {
				t.Errorf("%d bytes, want at most %d, and not less than half of that", p.loaded, most)
			}
			var text strings.Builder
			p.print(&text, false, 5)
			if p.templates || !strings.Contains(text.String(), "text/template is not linked") || !strings.Contains(text.String(), ".text") {
				t.Error(text.String())
			}
		})
	}
}
