package sandbox

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// versionedModule writes the tree of smallModule with an additional modfile for another version.
func versionedModule(t *testing.T) string {
	t.Helper()
	module := smallModule(t)
	writeFiles(t, module, map[string]string{
		"1.1.mod": "module github.com/karpenter-go/karpenter/sandbox/kubernetes\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes v1.1.9\n\tsigs.k8s.io/kwok v0.4.0\n)\n\n" +
			"replace (\n\tk8s.io/kubernetes => ./a\n\tsigs.k8s.io/kwok => ./b\n)\n",
		"1.1.sum": "",
	})
	return module
}

// TestSourceOf checks that a minor version is built from the modfile that requires it, into a folder of its own, and
// that the default version needs no name.
func TestSourceOf(t *testing.T) {
	module := versionedModule(t)
	for version, file := range map[string]string{"": "go.mod", "1.2": "go.mod", "v1.2": "go.mod", "1.1": "1.1.mod"} {
		want := source{module, filepath.Join(module, file)}
		if got, err := sourceOf(module, version); err != nil || got != want {
			t.Errorf("version %q: %+v %v, want %+v", version, got, err, want)
		}
	}
	_, err := sourceOf(module, "1.7")
	var unknown *VersionError
	if !errors.As(err, &unknown) || !strings.HasSuffix(err.Error(), "one of 1.1, 1.2 (default)") {
		t.Errorf("an unknown version: %v", err)
	}
	writeFiles(t, module, map[string]string{"1.0.mod": "module m\n"})
	if _, err := sourceOf(module, "1.1"); err == nil || !strings.Contains(err.Error(), "1.0.mod requires no k8s.io/kubernetes") {
		t.Errorf("a modfile without Kubernetes: %v", err)
	}
}

// TestBuildOfVersions checks that each version has its own build, which other versions' files do not affect.
func TestBuildOfVersions(t *testing.T) {
	t.Setenv(cacheVariable, t.TempDir())
	module := versionedModule(t)
	folders := map[string]string{}
	for _, version := range []string{"", "1.1"} {
		from, err := sourceOf(module, version)
		if err != nil {
			t.Fatal(err)
		}
		if folders[version], err = build(t.Context(), from, func(string) {}); err != nil {
			t.Fatal(err)
		}
	}
	if folders[""] == folders["1.1"] {
		t.Errorf("both versions are built into %s", folders[""])
	}
	writeFiles(t, module, map[string]string{"1.1.sum": "example.org/m v1.0.0 h1:x\n"})
	keys := map[string]string{}
	for version := range folders {
		from, err := sourceOf(module, version)
		if err != nil {
			t.Fatal(err)
		}
		if keys[version], err = buildKey(t.Context(), from); err != nil {
			t.Fatal(err)
		}
	}
	if got := filepath.Base(folders[""]); got != keys[""] {
		t.Errorf("the default is built again for a change of 1.1: %s, then %s", got, keys[""])
	}
	if got := filepath.Base(folders["1.1"]); got == keys["1.1"] {
		t.Error("1.1 is not built again for a change of its checksums")
	}
}
