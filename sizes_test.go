package karpenter

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// A type with more methods, or a folder with more files, has more than one job.
const (
	maxMethods = 60
	maxFiles   = 40
)

// oversized are the types and folders of the product that are over a limit, with the size that they must not exceed. A number
// here only falls, and an entry goes with the last method or file too many. There are no new ones.
var oversized = map[string]int{
	"internal/cloud/aws/launch.Launcher": 67,
	"plugin/offline":                     63,
}

// proofAndLegacy are the folders that are no part of the product.
var proofAndLegacy = []string{"internal/legacy/", "internal/testing/", "sandbox/", "test/", "tools/"}

// sizes returns the number of methods of each type of the product, by folder and name, and the number of Go files of each
// folder.
func sizes(t *testing.T, files map[string]string) (methods, folders map[string]int) {
	t.Helper()
	methods, folders = map[string]int{}, map[string]int{}
	for name, text := range files {
		if slices.ContainsFunc(proofAndLegacy, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		folders[path.Dir(name)]++
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[path.Dir(name)+"."+receiverOf(f.Recv.List[0].Type)]++
			}
		}
	}
	return methods, folders
}

// receiverOf returns the name of the type of a receiver.
func receiverOf(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiverOf(of.X)
	case *ast.IndexExpr:
		return receiverOf(of.X)
	case *ast.IndexListExpr:
		return receiverOf(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

// overLimit returns a text for each size over the limit that the list does not allow, and for each entry of the list that is
// not over the limit any more.
func overLimit(what string, counted, allowed map[string]int, limit int) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(counted)) {
		n, most := counted[name], max(limit, allowed[name])
		switch {
		case n > most:
			found = append(found, fmt.Sprintf("%s has %d %s, more than %d: divide it by its jobs", name, n, what, most))
		case n <= limit && allowed[name] > 0:
			found = append(found, fmt.Sprintf("%s has %d %s: take it from the list", name, n, what))
		}
	}
	return found
}

// TestSizes checks that each type of the product has one job, by the number of its methods, and each folder, by its files.
func TestSizes(t *testing.T) {
	methods, folders := sizes(t, loadSource(t))
	if methods["internal/engine/model.Snapshot"] == 0 || folders["internal/engine/model"] == 0 {
		t.Fatalf("the walk does not find the model: %d types, %d folders", len(methods), len(folders))
	}
	types := overLimit("methods", methods, oversized, maxMethods)
	for _, found := range append(types, overLimit("Go files", folders, oversized, maxFiles)...) {
		t.Error(found)
	}
	for _, name := range slices.Sorted(maps.Keys(oversized)) {
		if methods[name]+folders[name] == 0 {
			t.Errorf("there is no %s: take it from the list", name)
		}
	}
}

// TestSizesBite checks that what is over a limit is found, and so is an entry of the list that is not needed.
func TestSizesBite(t *testing.T) {
	methods, folders := sizes(t, map[string]string{
		"plugin/a/a.go":         "package a\n\ntype T[K any] struct{}\n\nfunc (T[K]) one() {}\n\nfunc (t *T[K]) two() {}\n\nfunc three() {}\n",
		"plugin/a/b.go":         "package a\n",
		"internal/testing/b.go": "package testing\n",
	})
	if want := map[string]int{"plugin/a.T": 2}; !maps.Equal(methods, want) {
		t.Errorf("methods %v, want %v", methods, want)
	}
	if want := map[string]int{"plugin/a": 2}; !maps.Equal(folders, want) {
		t.Errorf("folders %v, want %v", folders, want)
	}
	for _, test := range []struct {
		size, allowed int
		want          string
	}{
		{40, 0, ""},
		{41, 0, "x has 41 files, more than 40: divide it by its jobs"},
		{50, 50, ""},
		{51, 50, "x has 51 files, more than 50: divide it by its jobs"},
		{49, 50, ""},
		{40, 50, "x has 40 files: take it from the list"},
	} {
		got := strings.Join(overLimit("files", map[string]int{"x": test.size}, map[string]int{"x": test.allowed}, 40), "\n")
		if got != test.want {
			t.Errorf("size %d, allowed %d: %q, want %q", test.size, test.allowed, got, test.want)
		}
	}
}
