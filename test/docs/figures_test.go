package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// measured is the line above a table of figures.
var measured = regexp.MustCompile(`(?m)^Measured on 20\d\d-\d\d-\d\d at ([0-9a-f]{8})\b`)

// settings are the tables whose numbers are limits and times that the code sets, or an example computed by hand, by their
// first cells.
var settings = []string{"| | every |", "| of | terms,", "| of | constraints,", "| node | pod |"}

// TestFigures: above each table of figures, a line names the date and the commit of its run.
func TestFigures(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	tables := 0
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range figuresOf(string(text)) {
			if slices.ContainsFunc(settings, func(head string) bool { return strings.HasPrefix(table.head, head) }) {
				continue
			}
			tables++
			found := measured.FindStringSubmatch(table.above)
			switch {
			case found == nil:
				t.Errorf("%s: the table %q: want a line \"Measured on DATE at COMMIT\" between the table before it and this one",
					filepath.Base(page), table.head)
			case !known(t, found[1]):
				t.Errorf("%s: the table %q was measured at %s, which is no commit", filepath.Base(page), table.head, found[1])
			}
		}
	}
	if tables < 10 {
		t.Errorf("%d tables of figures, want those of docs/performance.md", tables)
	}
}

// known reports whether the commit exists, as far as the clone has the history.
func known(t *testing.T, commit string) bool {
	t.Helper()
	git := func(arguments ...string) (string, error) {
		cmd := exec.Command("git", arguments...)
		cmd.Dir = root
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	if shallow, err := git("rev-parse", "--is-shallow-repository"); err != nil || shallow == "true" {
		return true
	}
	_, err := git("cat-file", "-e", commit+"^{commit}")
	return err == nil
}

// table is a table of a page, with the text between the heading or the table before it and itself.
type table struct{ head, above string }

var cellOfNumber = regexp.MustCompile(`^[*+-]*\d[\d,.]*( ?(%|x|s|ms|MiB|USD|min|h)\b.*|[*%x]*| .*)$`)

// figuresOf returns the tables of which most cells, without the first column, begin with a number.
func figuresOf(text string) []table {
	var tables []table
	var above, rows []string
	end := func() {
		if len(rows) > 2 && figures(rows[2:]) {
			tables = append(tables, table{rows[0], strings.Join(above, "\n")})
		}
		if len(rows) > 0 {
			above = nil
		}
		rows = nil
	}
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "|"):
			rows = append(rows, line)
			continue
		case strings.HasPrefix(line, "#"):
			end()
			above = nil
		}
		end()
		above = append(above, line)
	}
	end()
	return tables
}

func figures(rows []string) bool {
	numbers, all := 0, 0
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), "|")
		for _, cell := range cells[1:] {
			all++
			if cellOfNumber.MatchString(strings.TrimSpace(cell)) {
				numbers++
			}
		}
	}
	return len(rows) > 1 && numbers*2 > all
}

// TestFiguresFound: tables of numbers are found, tables of words are not.
func TestFiguresFound(t *testing.T) {
	text := "# A\n\n| a | b |\n|---|---|\n| x | words |\n| y | 3 words |\n\nMeasured on 2026-11-28 at 01234567.\n\n| c | d " +
		"|\n|---|---|\n| x | 1.5 s |\n| y | **2** |\n"
	found := figuresOf(text)
	if len(found) != 1 || found[0].head != "| c | d |" || !measured.MatchString(found[0].above) {
		t.Errorf("found %+v, want the second table with the line above it", found)
	}
}
