// Language counts words that the documentation style excludes: indefinite and personal pronouns in place of the thing
// that acts, and, in messages to users, words of trade. It also counts long lines of Go. It reads the .go and .md files
// that git tracks, the charts and the scripts of CI.
//
//	git ls-files ─> comments, strings, identifiers, lines of .go; text of .md, charts/ and .ci/ ─> counts ─> limits.txt
//
// Each kind of text has a limit. A count above its limit is an error, and occurrences are printed. A count below its
// limit is reported: -update writes the lower limit. The program never raises a limit. The goal is 0 everywhere.
//
// Generated files (zz_generated), this folder and tools/words, which have the words, are not read.
//
// It must not depend on the rest of the repository but the words: it reads text.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/karpenter-go/karpenter/tools/words"
)

// The words are excluded in any case. In identifiers they are excluded as parts of names too.
var (
	whole  = regexp.MustCompile(`(?i)\b(` + words.Excluded + `)\b`)
	within = regexp.MustCompile(`(?i)(` + words.Excluded + `)`)
	trade  = regexp.MustCompile(`(?i)\b(` + words.Trade + `)\b`)
)

// The kinds of text, as limits.txt names them.
const (
	comments    = "comments"
	identifiers = "identifiers"
	markdown    = "markdown"
	literals    = "strings"
	charts      = "charts"   // text of all files in charts/ and .ci/ but pages
	lines       = "lines"    // of Go, longer than columns
	shownTexts  = "messages" // strings of more than one word in programs that users run, with words of trade
)

var kinds = []string{comments, identifiers, markdown, literals, charts, lines, shownTexts}

// internalTexts are the files whose strings no user of the controller or of the plugin reads.
var internalTexts = regexp.MustCompile(`_test\.go$|^(sandbox|test|tools|hack)/|^internal/testing/`)

// columns is the length of the longest line of Go, in characters. A tab counts as one.
const columns = 140

// shown is how many occurrences of one kind an error lists.
const shown = 100

// occurrence is one excluded word, or one long line.
type occurrence struct {
	kind, file, word string
	line             int
}

func (o occurrence) String() string {
	return fmt.Sprintf("%s:%d: %q (%s)", o.file, o.line, o.word, o.kind)
}

func main() {
	root := flag.String("root", ".", "the repository")
	limits := flag.String("limits", "limits.txt", "file with the limits, one `KIND NUMBER` per line")
	list := flag.String("list", "", "print all occurrences of this `KIND`")
	update := flag.Bool("update", false, "write lower limits; limits are never raised")
	flag.Parse()
	if err := run(*root, *limits, *list, *update); err != nil {
		fmt.Fprintf(os.Stderr, "language: %v\n", err)
		os.Exit(1)
	}
}

func run(root, path, list string, update bool) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	limits, err := parseLimits(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	found, err := search(root)
	if err != nil {
		return err
	}
	for _, o := range found {
		if o.kind == list {
			fmt.Println(o)
		}
	}
	lower, err := compare(found, limits)
	if err != nil || maps.Equal(lower, limits) {
		return err
	}
	if !update {
		fmt.Printf("language: fewer than %s allows: `make lint LANGUAGE_ARGS=-update` writes the limits\n", filepath.Base(path))
		return nil
	}
	return os.WriteFile(path, []byte(formatLimits(lower)), 0o644)
}

// search returns the occurrences in all tracked files, sorted by file and line.
func search(root string) ([]occurrence, error) {
	command := exec.Command("git", "-C", root, "ls-files", "-z", "--", "*.go", "*.md", "charts/*", ".ci/*")
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the files that git tracks: %w", err)
	}
	var found []occurrence
	for _, name := range strings.FieldsFunc(string(output), func(r rune) bool { return r == 0 }) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			return nil, err
		}
		switch {
		case strings.HasPrefix(filepath.Base(name), "zz_generated"), strings.HasPrefix(name, "tools/language/"),
			strings.HasPrefix(name, "tools/words/"):
		case filepath.Ext(name) == ".md":
			found = append(found, occurrencesIn(whole, markdown, name, 1, string(text))...)
		case filepath.Ext(name) != ".go":
			found = append(found, occurrencesIn(whole, charts, name, 1, string(text))...)
		default:
			found = append(found, searchGo(name, text)...)
			found = append(found, longLines(name, string(text))...)
		}
	}
	slices.SortStableFunc(found, func(a, b occurrence) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	return found, nil
}

// searchGo returns the occurrences in one Go file. Syntax errors are left to the compiler.
func searchGo(name string, text []byte) []occurrence {
	var found []occurrence
	fset := token.NewFileSet()
	file := fset.AddFile(name, fset.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, func(token.Position, string) {}, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		line := file.Line(pos)
		switch tok {
		case token.EOF:
			return found
		case token.COMMENT:
			found = append(found, occurrencesIn(whole, comments, name, line, literal)...)
		case token.STRING:
			found = append(found, occurrencesIn(whole, literals, name, line, literal)...)
			if strings.Contains(literal, " ") && !internalTexts.MatchString(name) {
				found = append(found, occurrencesIn(trade, shownTexts, name, line, literal)...)
			}
		case token.IDENT:
			found = append(found, occurrencesIn(within, identifiers, name, line, literal)...)
		}
	}
}

// longLines returns the lines of a Go file that are longer than columns.
func longLines(name, text string) []occurrence {
	var found []occurrence
	for i, one := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(one); n > columns {
			found = append(found, occurrence{kind: lines, file: name, word: fmt.Sprintf("%d columns", n), line: i + 1})
		}
	}
	return found
}

// occurrencesIn returns the occurrences in a text that begins on a line of a file.
func occurrencesIn(pattern *regexp.Regexp, kind, file string, line int, text string) []occurrence {
	var found []occurrence
	for i, one := range strings.Split(text, "\n") {
		for _, word := range pattern.FindAllString(one, -1) {
			found = append(found, occurrence{kind: kind, file: file, word: word, line: line + i})
		}
	}
	return found
}

// compare returns the limits that the counts allow, or an error with the occurrences of each kind above its limit.
func compare(found []occurrence, limits map[string]int) (map[string]int, error) {
	counts := map[string]int{}
	for _, o := range found {
		counts[o.kind]++
	}
	lower := map[string]int{}
	var faults []error
	for _, kind := range kinds {
		lower[kind] = min(counts[kind], limits[kind])
		if counts[kind] <= limits[kind] {
			continue
		}
		var places []string
		for _, o := range found {
			if o.kind == kind && len(places) < shown {
				places = append(places, o.String())
			}
		}
		const fault = "%d in %s, and the limit is %d: name the thing that acts, say launch or remove, or break the line\n\t%s"
		faults = append(faults, fmt.Errorf(fault, counts[kind], kind, limits[kind], strings.Join(places, "\n\t")))
	}
	return lower, errors.Join(faults...)
}

// parseLimits reads one `KIND NUMBER` per line. A kind that is not listed has the limit 0.
func parseLimits(text string) (map[string]int, error) {
	limits := map[string]int{}
	for _, kind := range kinds {
		limits[kind] = 0
	}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if _, known := limits[fields[0]]; !known || len(fields) != 2 {
			return nil, fmt.Errorf("line %d: want KIND NUMBER, with a kind of %s", i+1, strings.Join(kinds, ", "))
		}
		n, err := strconv.Atoi(fields[1])
		if err != nil || n < 0 {
			return nil, fmt.Errorf("line %d: %q is not a count", i+1, fields[1])
		}
		limits[fields[0]] = n
	}
	return limits, nil
}

func formatLimits(limits map[string]int) string {
	text := "# How many excluded words and long lines each kind of text may have. Numbers only fall; the goal is 0. See main.go.\n"
	for _, kind := range kinds {
		text += fmt.Sprintf("%s %d\n", kind, limits[kind])
	}
	return text
}
