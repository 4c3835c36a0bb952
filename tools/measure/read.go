package main

import (
	"errors"
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
	names []string          // all names of files
	texts map[string]string // by name: Go, pages of docs, scripts
}

// read parses all tracked .go files. Files in testdata folders are data.
func read(root string) (*repository, error) {
	list, err := output(exec.Command("git", "-C", root, "ls-files"))
	if err != nil {
		return nil, err
	}
	repo := &repository{fset: token.NewFileSet(), texts: map[string]string{}}
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
	page := strings.HasPrefix(name, "docs/") && strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".js")
	if !page && !strings.HasSuffix(name, ".go") || strings.Contains(name, "/testdata/") || strings.Contains(name, "zz_generated") {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(root, name))
	if os.IsNotExist(err) { // deleted, and not committed yet
		return nil
	}
	if err != nil {
		return err
	}
	r.texts[name] = string(text)
	if page {
		return nil
	}
	tree, err := parser.ParseFile(r.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	r.files = append(r.files, goFile{name: name, test: strings.HasSuffix(name, "_test.go"), text: string(text), tree: tree})
	return nil
}

// output returns what a command prints.
func output(cmd *exec.Cmd) ([]byte, error) {
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, exit.Stderr)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return out, nil
}

// lines returns how many lines a node has, the first and the last included.
func (r *repository) lines(node ast.Node) int {
	return r.fset.Position(node.End()).Line - r.fset.Position(node.Pos()).Line + 1
}
