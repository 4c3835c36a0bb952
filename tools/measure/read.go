package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// goFile is a parsed file of the repository, without generated ones.
type goFile struct {
	name string // relative to the root, with slashes
	test bool
	text string
	tree *ast.File
}

func (f goFile) folder() string { return filepath.ToSlash(filepath.Dir(f.name)) }

// repository has what git tracks.
type repository struct {
	fset  *token.FileSet
	files []goFile
	names []string // all names of files
}

// read parses all tracked .go files. Files in testdata folders are data.
func read(root string) (*repository, error) {
	list, err := exec.Command("git", "-C", root, "ls-files").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w", root, err)
	}
	repo := &repository{fset: token.NewFileSet()}
	for name := range strings.Lines(string(list)) {
		name = strings.TrimSpace(name)
		repo.names = append(repo.names, name)
		if err := repo.add(root, name); err != nil {
			return nil, err
		}
	}
	return repo, nil
}

func (r *repository) add(root, name string) error {
	if !strings.HasSuffix(name, ".go") || strings.Contains(name, "/testdata/") || strings.Contains(name, "zz_generated") {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(root, name))
	if os.IsNotExist(err) { // deleted, and not committed yet
		return nil
	}
	if err != nil {
		return err
	}
	tree, err := parser.ParseFile(r.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	r.files = append(r.files, goFile{name: name, test: strings.HasSuffix(name, "_test.go"), text: string(text), tree: tree})
	return nil
}

// lines returns how many lines a node has, the first and the last included.
func (r *repository) lines(node ast.Node) int {
	return r.fset.Position(node.End()).Line - r.fset.Position(node.Pos()).Line + 1
}
