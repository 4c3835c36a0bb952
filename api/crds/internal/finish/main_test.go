package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/api/crds"
)

// generated returns the text of the checked-in definitions, by file name.
func generated(t *testing.T) map[string]string {
	t.Helper()
	entries, err := crds.Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		text, err := crds.Files.ReadFile(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(text)
	}
	return files
}

// written returns a directory that holds the files.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestFinishingAgainChangesNothing(t *testing.T) {
	files := generated(t)
	directory := written(t, files)
	if err := run(directory); err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
}

func TestNothingIsSkippedInSilence(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(map[string]string)
		want  string
	}{
		{"no definitions", func(files map[string]string) { clear(files) }, "there is no definition of"},
		{"a kind is missing", func(files map[string]string) { delete(files, "karpenter.sh_nodeclaims.yaml") }, "there is no definition of NodeClaim"},
		{"a property has another name", func(files map[string]string) {
			name := "karpenter.sh_nodepools.yaml"
			files[name] = strings.ReplaceAll(files[name], "startupTaints:", "firstTaints:")
		}, `at spec.template.spec.startupTaints: there is no property "startupTaints"`},
		{"a file is not a definition", func(files map[string]string) { files["other.yaml"] = "a: b" }, "completing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := generated(t)
			test.spoil(files)
			if err := run(written(t, files)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one that mentions %q", err, test.want)
			}
		})
	}
}
