package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// block is a code block of a page, with the mark above it, and its first line.
type block struct {
	page, mark, language, text string
	line                       int
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

var fence = regexp.MustCompile("(?m)(?:^<!-- (.*?) -->\n)?^```(\\w*)\n((?s:.*?))^```$")

var anyFence = regexp.MustCompile("(?m)^[ \t>]*(?:```|~~~)")

// pages returns the names of all pages, relative to the root.
func pages(t testing.TB) []string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/reference/*.md", "docs/adr/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("there is no %s: %v", pattern, err)
		}
		for _, path := range found {
			names = append(names, strings.TrimPrefix(filepath.ToSlash(path), root+"/"))
		}
	}
	return names
}

func read(t testing.TB, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the code blocks of a page.
func blocks(t testing.TB, page string) []block {
	t.Helper()
	text := read(t, page)
	var all []block
	for _, at := range fence.FindAllStringSubmatchIndex(text, -1) {
		b := block{page: page, language: text[at[4]:at[5]], text: text[at[6]:at[7]], line: 1 + strings.Count(text[:at[4]], "\n")}
		if at[2] >= 0 {
			b.mark = text[at[2]:at[3]]
		}
		all = append(all, b)
	}
	// Indented blocks, as in lists, would be missed.
	if n := len(anyFence.FindAllString(text, -1)); n != 2*len(all) {
		t.Fatalf("%s has %d lines that begin or end a block, and %d blocks were found; blocks begin at the first column", page, n, len(all))
	}
	return all
}

// marked returns all blocks with a mark, page by page.
func marked(t testing.TB, mark string) []block {
	t.Helper()
	var all []block
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.mark == mark {
				all = append(all, b)
			}
		}
	}
	return all
}
