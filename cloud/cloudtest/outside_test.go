package cloudtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutside runs the suite on the provider of testdata in a module whose path is not below that of this module: it can
// import nothing internal.
func TestOutside(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/karpenter-go/karpenter"
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	folder := t.TempDir()
	definition := strings.Replace(read(filepath.Join(root, "go.mod")), "module "+module, "module example.org/provider", 1) +
		"\nrequire " + module + " v0.0.0\nreplace " + module + " => " + root + "\n"
	for name, text := range map[string]string{
		"go.mod": definition, "go.sum": read(filepath.Join(root, "go.sum")),
		"provider.go": read("testdata/provider/provider.go"), "provider_test.go": read("testdata/provider/provider_test.go"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-v", "-mod=mod", "-count=1", ".")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOPROXY=off", "GOWORK=off", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	if skipped := strings.Count(string(out), "--- SKIP"); skipped != 1 || !strings.Contains(string(out), "has_not_drifted") {
		t.Errorf("%d tests are skipped, want the one of drift, which the provider does not detect:\n%s", skipped, out)
	}
}
