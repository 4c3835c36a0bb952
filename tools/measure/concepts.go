package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// A list is a place where concepts are written down that a reader has to learn, one to a row.
type list struct {
	name string
	page string
	// heading begins the table, "" stands for all tables of the page; row matches the rows that count, once for each
	// value of its group.
	heading string
	row     *regexp.Regexp
}

var lists = []list{
	{"words of docs/architecture.md", "docs/architecture.md", "| word |", regexp.MustCompile(`^\| ([A-Z][A-Za-z, ]+) \|`)},
	{"flags of the controller", "docs/reference/flags.md", "", regexp.MustCompile("^\\| `(--[a-z0-9-]+)`")},
	{"annotations, labels and taints of ours", "docs/reference/annotations.md", "",
		regexp.MustCompile("^\\| `(karpenter-go\\.github\\.io/[^`]+)`")},
	{"metrics", "docs/reference/metrics.md", "", regexp.MustCompile("^\\| `([a-z0-9_]+)`")},
}

// addConcepts adds how many concepts each list has, and their sum with the codes of verdicts. A cell of words counts
// once for each word between commas.
func (r *repository) addConcepts(add func(name string, value any, detail string)) {
	sum := r.codes()
	add("concepts: codes of verdicts", sum, "")
	for _, l := range lists {
		n := l.count(r.texts[l.page])
		add("concepts: "+l.name, n, l.page)
		sum += n
	}
	add("concepts", sum, "")
}

func (l list) count(text string) int {
	seen, inside := map[string]bool{}, l.heading == ""
	for line := range strings.Lines(text) {
		if l.heading != "" && !strings.HasPrefix(line, "|") {
			inside = false
		}
		inside = inside || l.heading != "" && strings.HasPrefix(line, l.heading)
		if found := l.row.FindStringSubmatch(line); inside && found != nil {
			for name := range strings.SplitSeq(found[1], ",") {
				seen[strings.TrimSpace(name)] = true
			}
		}
	}
	return len(seen)
}

// codes counts the constants of the block that begins with a plan.Code.
func (r *repository) codes() int {
	count := 0
	for _, f := range r.files {
		if f.test || f.folder() != "internal/engine/plan" {
			continue
		}
		for _, d := range f.tree.Decls {
			block, ok := d.(*ast.GenDecl)
			if !ok || block.Tok != token.CONST {
				continue
			}
			if first := block.Specs[0].(*ast.ValueSpec); first.Type != nil && dotted(first.Type) == "Code" {
				count += len(block.Specs)
			}
		}
	}
	return count
}
