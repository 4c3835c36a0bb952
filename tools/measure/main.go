// Measure counts what makes the code of this repository hard to read: long functions, types with many methods, names
// that several packages use for different things, tests that join conditions.
//
//	git ls-files ─> parsed .go ─> one number per measure ─> table
//	go list      ─> dependencies of the commands ────────┘
//
// The numbers of an older commit are shown beside the current ones: -before names the commit, or a file that -write has
// written. With -changed, the table has only rows that differ.
//
// It must not decide what is good: limits are in tools/language and .golangci.yaml. It depends on nothing else of the
// repository.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"text/tabwriter"
)

// measure is a number with its unit in words. Detail names the worst case.
type measure struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Detail string `json:"detail,omitempty"`
}

func main() {
	root := flag.String("root", ".", "the repository")
	before := flag.String("before", "", "`COMMIT`, or a file with numbers, to show beside the current ones")
	changed := flag.Bool("changed", false, "leave out what is as before")
	write := flag.String("write", "", "write the numbers to this `FILE`")
	detail := flag.Bool("detail", false, "show the worst case of each measure")
	flag.Parse()
	if err := run(os.Stdout, options{*root, *before, *write, *detail, *changed}); err != nil {
		fmt.Fprintf(os.Stderr, "measure: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	root, before, write string
	detail, changed     bool
}

func run(out io.Writer, o options) error {
	now, err := measured(o.root)
	if err != nil {
		return err
	}
	if o.write != "" {
		text, err := json.MarshalIndent(now, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(o.write, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	earlier, err := numbersBefore(o.root, o.before)
	if err != nil {
		return err
	}
	return table(out, now, earlier, o)
}

// measured returns the numbers of a folder.
func measured(root string) ([]measure, error) {
	repo, err := read(root)
	if err != nil {
		return nil, err
	}
	linked, err := dependencies(root)
	return append(repo.measures(), linked...), err
}

// numbersBefore returns the values of a file or of a commit by the names of measures.
func numbersBefore(root, before string) (map[string]string, error) {
	var list []measure
	text, err := os.ReadFile(before)
	switch {
	case before == "":
	case err == nil:
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", before, err)
		}
	default:
		if list, err = measuredAt(root, before); err != nil {
			return nil, err
		}
	}
	earlier := map[string]string{}
	for _, m := range list {
		earlier[m.Name] = m.Value
	}
	return earlier, nil
}

// measuredAt returns the numbers of a commit, which it checks out in a folder for the time being.
func measuredAt(root, commit string) (list []measure, err error) {
	folder, err := os.MkdirTemp("", "measure")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if _, err := output(exec.Command("git", "-C", root, "worktree", "add", "--detach", "--force", folder, commit)); err != nil {
		return nil, err
	}
	defer func() {
		_, failed := output(exec.Command("git", "-C", root, "worktree", "remove", "--force", folder))
		err = errors.Join(err, failed)
	}()
	return measured(folder)
}

// table prints Markdown, so that the output can be part of a page.
func table(out io.Writer, now []measure, earlier map[string]string, o options) error {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	row := func(name, was, is, worst string) {
		fmt.Fprintf(w, "| %s\t|", name)
		if o.before != "" {
			fmt.Fprintf(w, " %s\t|", was)
		}
		fmt.Fprintf(w, " %s\t|", is)
		if o.detail {
			fmt.Fprintf(w, " %s\t|", worst)
		}
		fmt.Fprintln(w)
	}
	row("measure", "before", "now", "worst case")
	row("---", "---", "---", "---")
	for _, m := range now {
		was := earlier[m.Name]
		if was == "" {
			was = "-"
		}
		if !o.changed || was != m.Value {
			row(m.Name, was, m.Value, m.Detail)
		}
	}
	return w.Flush()
}
