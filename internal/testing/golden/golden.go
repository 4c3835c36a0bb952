// Package golden reads testdata/*.txtar, the files of tests whose inputs and results are text. Each begins with a sentence
// that says what it shows, and has named sections.
//
// It must not know what the sections mean.
package golden

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/karpenter-go/karpenter/internal/testing/golden/update"
)

// Update is the flag -update of a test.
var Update = update.Files

// File is one of the files.
type File struct {
	*txtar.Archive

	path string
}

// Each runs the test for each file.
func Each(t *testing.T, test func(*testing.T, *File)) {
	for _, f := range Read(t, "testdata") {
		t.Run(f.Name(), func(t *testing.T) { test(t, f) })
	}
}

// Read returns the files of a folder.
func Read(t testing.TB, folder string) []*File {
	t.Helper()
	paths, err := filepath.Glob(folder + "/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	var files []*File
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if intent := strings.TrimSpace(string(archive.Comment)); !strings.HasSuffix(intent, ".") {
			t.Fatalf("%s begins with %q, want a sentence of intent", path, intent)
		}
		files = append(files, &File{archive, path})
	}
	return files
}

// Name returns the name of the file, without its extension.
func (f *File) Name() string { return strings.TrimSuffix(filepath.Base(f.path), ".txtar") }

// Section returns the text of a section, nil if there is none.
func (f *File) Section(name string) []byte {
	if i := f.index(name); i >= 0 {
		return f.Files[i].Data
	}
	return nil
}

func (f *File) index(name string) int {
	return slices.IndexFunc(f.Files, func(s txtar.File) bool { return s.Name == name })
}

// Check compares a section with a result.
func (f *File) Check(t *testing.T, name, got string) {
	t.Helper()
	with := &txtar.Archive{Comment: f.Comment, Files: slices.Clone(f.Files)}
	if i := f.index(name); i >= 0 {
		with.Files[i].Data = []byte(got)
	} else {
		with.Files = append(with.Files, txtar.File{Name: name, Data: []byte(got)})
	}
	f.CheckAll(t, with)
}

// CheckAll compares the file with one that has the inputs and the results. With -update it is written instead.
func (f *File) CheckAll(t *testing.T, got *txtar.Archive) {
	t.Helper()
	if *Update {
		if err := os.WriteFile(f.path, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
		f.Archive = got // further sections of the file may be checked
		return
	}
	if diff := cmp.Diff(string(txtar.Format(f.Archive)), string(txtar.Format(got))); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it):\n%s", f.path, diff)
	}
}
