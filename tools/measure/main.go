// Measure counts what makes the code of this repository hard to read: long functions, types with many methods, names
// that several packages use for different things, tests that join conditions.
//
//	git ls-files ─> parsed .go ─> one number per measure ─> table
//	go list      ─> dependencies of the commands ────────┘
//
// The numbers of an older commit come from a worktree of it (-root), written by -write and shown beside the current
// ones by -before.
//
// It must not decide what is good: limits are in tools/language and .golangci.yaml. It depends on nothing else of the
// repository.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
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
	before := flag.String("before", "", "`FILE` with the numbers to show beside the current ones")
	write := flag.String("write", "", "write the numbers to this `FILE`")
	detail := flag.Bool("detail", false, "show the worst case of each measure")
	flag.Parse()
	if err := run(os.Stdout, *root, *before, *write, *detail); err != nil {
		fmt.Fprintf(os.Stderr, "measure: %v\n", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root, before, write string, detail bool) error {
	repo, err := read(root)
	if err != nil {
		return err
	}
	now := repo.measures()
	linked, err := dependencies(root)
	if err != nil {
		return err
	}
	now = append(now, linked...)
	if write != "" {
		text, err := json.MarshalIndent(now, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(write, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	earlier := map[string]string{}
	if before != "" {
		text, err := os.ReadFile(before)
		if err != nil {
			return err
		}
		var list []measure
		if err := json.Unmarshal(text, &list); err != nil {
			return fmt.Errorf("%s: %w", before, err)
		}
		for _, m := range list {
			earlier[m.Name] = m.Value
		}
	}
	return table(out, now, earlier, before != "", detail)
}

// table prints Markdown, so that the output can be part of a page.
func table(out io.Writer, now []measure, earlier map[string]string, both, detail bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	row := func(name, was, is, worst string) {
		fmt.Fprintf(w, "| %s\t|", name)
		if both {
			fmt.Fprintf(w, " %s\t|", was)
		}
		fmt.Fprintf(w, " %s\t|", is)
		if detail {
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
		row(m.Name, was, m.Value, m.Detail)
	}
	return w.Flush()
}
