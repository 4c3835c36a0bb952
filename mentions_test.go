package karpenter

import (
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// namedFile matches the name of a Go file, with folders or without.
	namedFile = regexp.MustCompile(`[\w./-]*\w\.go\b`)
	// qualified matches an exported name of a package, such as plan.Step.
	qualified = regexp.MustCompile(`\b([a-z][a-z0-9]+)\.([A-Z]\w+)`)
	// quoted matches an unexported name in backquotes, such as `encodeClaim`. On pages for users it may be a field of an API.
	quoted = regexp.MustCompile("`([a-z]+[A-Z]\\w*)`")
)

var (
	// historic are pages that describe the past.
	historic = []string{"CHANGELOG.md", "docs/adr/"}
	// internals are pages about the code.
	internals = []string{"AGENTS.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/tour.md", "docs/where.md"}
)

// TestMentions checks that Go files and names that comments and pages mention exist: a file by the end of its path, an
// exported name of a package of this repository and a name in backquotes by its occurrence in code.
func TestMentions(t *testing.T) {
	list, err := exec.CommandContext(t.Context(), "git", "ls-files").Output()
	if err != nil {
		t.Fatal(err)
	}
	m := mentions{names: map[string]bool{}, packages: map[string]bool{}, folders: map[string]bool{}, texts: map[string]string{}}
	for name := range strings.Lines(string(list)) {
		m.read(t, strings.TrimSpace(name))
	}
	for place, text := range m.texts {
		for _, fault := range m.faults(text, strings.HasSuffix(place, ".go") || slices.Contains(internals, place)) {
			t.Errorf("%s: %s", place, fault)
		}
	}
}

// mentions has what can be mentioned, and the texts that mention it, by file.
type mentions struct {
	files                    []string
	names, packages, folders map[string]bool
	texts                    map[string]string
}

// read adds a file: the text of a page, or the names and the comments of a Go file.
func (m *mentions) read(t *testing.T, name string) {
	t.Helper()
	m.files = append(m.files, "/"+name)
	for folder := range strings.SplitSeq(path.Dir(name), "/") {
		m.folders[folder] = true
	}
	isPage := strings.HasSuffix(name, ".md") && !strings.HasPrefix(name, "docs/reference/") &&
		!slices.ContainsFunc(historic, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	isGo := strings.HasSuffix(name, ".go") && !strings.Contains(name, "/testdata/")
	if !isPage && !isGo && !strings.HasSuffix(name, ".yaml") {
		return
	}
	text, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if isPage {
		m.texts[name] = string(text)
		return
	}
	if !isGo {
		for _, word := range regexp.MustCompile(`\w+`).FindAllString(string(text), -1) {
			m.names[word] = true
		}
		return
	}
	m.packages[path.Base(path.Dir(name))] = true
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile(name, -1, len(text)), text, nil, scanner.ScanComments)
	for {
		_, kind, literal := s.Scan()
		switch kind {
		case token.EOF:
			return
		case token.IDENT:
			m.names[literal] = true
		case token.STRING:
			for _, word := range regexp.MustCompile(`\w+`).FindAllString(literal, -1) {
				m.names[word] = true
			}
		case token.COMMENT:
			m.texts[name] += literal + "\n"
		}
	}
}

// faults returns what a text mentions and what does not exist. Files below folders that are not here are those of other
// repositories, and NAME stands for any name.
func (m *mentions) faults(text string, internal bool) []string {
	var faults []string
	for _, name := range namedFile.FindAllString(text, -1) {
		name = strings.TrimPrefix(name, "./")
		first, _, below := strings.Cut(name, "/")
		if below && !m.folders[first] || strings.HasPrefix(path.Base(name), "_") || strings.Contains(name, "NAME") {
			continue
		}
		if !slices.ContainsFunc(m.files, func(file string) bool { return strings.HasSuffix(file, "/"+name) }) {
			faults = append(faults, "there is no file "+name)
		}
	}
	for _, match := range qualified.FindAllStringSubmatch(text, -1) {
		if m.packages[match[1]] && !m.names[match[2]] {
			faults = append(faults, "there is no name "+match[0])
		}
	}
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		if internal && !m.names[match[1]] && !strings.Contains(match[1], "NAME") {
			faults = append(faults, "there is no name "+match[1])
		}
	}
	return faults
}
