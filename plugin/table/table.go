// Package table lays out rows as text that fits a width in characters: a terminal's, or an unlimited one for a file.
//
//	columns, rows, width --Arrange--> Layout --> Header, Row
//
// If rows are too wide, columns are narrowed, then the last ones are omitted, and names are cut in the middle. Wrap breaks
// lines between words, and Plural says how many of a thing there are.
//
// The package must not depend on a terminal, or on what the rows are.
package table

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Column is a column of a table of rows of type T. The most important columns come first.
type Column[T any] struct {
	Title string
	// Right means right-aligned, for numbers.
	Right bool
	Cell  func(*T) string
	// Narrow is the cell where the whole one leaves no space for other columns; nil for none.
	Narrow func(*T) string
	// NarrowTitle is the title of a table whose columns are narrowed; empty for Title.
	NarrowTitle string
	// Least marks the column of names, whose cells may be cut in the middle. It is the length to which they are cut
	// before columns are omitted. Without a mark, it is the first column, with a length of 24.
	Least int
}

// Layout holds the columns of a table and their widths. Its columns are the first ones of those given to Arrange.
type Layout[T any] struct {
	columns []Column[T]
	widths  []int
	// names is the index of the column of names, longest the width of its longest cell, and least the length to which
	// names are shortened before columns are omitted.
	names, longest, least int
	// tail is how many characters at the end of a name are kept when it is shortened.
	tail int
}

// defaultLeast is Least of a table without a mark, and shortestName the length to which names are shortened while there
// are other columns.
const defaultLeast, shortestName = 24, 4

// most is the number of columns beside which names are shortened below Least. Columns before that of names count, too.
const most = 3

// Arrange computes the layout of rows for a width in characters, 0 for unlimited.
func Arrange[T any](columns []Column[T], rows []T, width int) Layout[T] {
	l := Layout[T]{columns: slices.Clone(columns), least: defaultLeast}
	if at := slices.IndexFunc(columns, func(c Column[T]) bool { return c.Least > 0 }); at >= 0 {
		l.names, l.least = at, columns[at].Least
	}
	l.measure(rows)
	if width > 0 && l.width() > width {
		l.squeeze(rows, width)
	}
	l.tail = l.distinctTail(rows)
	return l
}

// distinctTail returns the tail with which most names stay different when they are shortened. The first choice is
// half of the width. Names such as ip-10-0-17-221.eu-central-1.compute.internal differ before an end that all of
// them have.
func (l *Layout[T]) distinctTail(rows []T) int {
	width := l.widths[l.names]
	best, most := width/2, 0
	if l.longest <= width {
		return best
	}
	all := map[string]bool{}
	for i := range rows {
		all[l.columns[l.names].Cell(&rows[i])] = true
	}
	for _, tail := range []int{width / 2, width / 4, 3 * width / 4, 0, width - 1} {
		cut := make(map[string]bool, len(all))
		for name := range all {
			cut[cutTo(name, width, tail)] = true
		}
		if len(cut) > most {
			best, most = tail, len(cut)
		}
		if most == len(all) {
			break
		}
	}
	return best
}

// measure sets each width to that of the longest cell.
func (l *Layout[T]) measure(rows []T) {
	l.widths = make([]int, len(l.columns))
	for c := range l.columns {
		l.widths[c] = utf8.RuneCountInString(l.columns[c].Title)
		for i := range rows {
			l.widths[c] = max(l.widths[c], utf8.RuneCountInString(l.columns[c].Cell(&rows[i])))
		}
	}
	l.longest = l.widths[l.names]
}

// squeeze shortens names, then narrows columns, then omits some, then shortens names further, until the rest fits.
// Names get what is left. Names that have a narrow form are narrowed before they are shortened.
func (l *Layout[T]) squeeze(rows []T, width int) {
	if l.columns[l.names].Narrow == nil && l.shorten(l.least, width) {
		return
	}
	l.narrow(rows)
	for fewest := max(most, l.names+1); !l.shorten(l.least, width) && len(l.columns) > fewest; {
		l.drop()
	}
	for !l.shorten(shortestName, width) && len(l.columns) > 1 {
		l.drop()
	}
	if len(l.columns) == 1 {
		l.widths[0] = min(l.widths[0], width)
	}
}

// shorten gives names the width that other columns leave, at least so much, and reports whether the table fits.
func (l *Layout[T]) shorten(least, width int) bool {
	l.widths[l.names] = min(l.longest, max(least, width-(l.width()-l.widths[l.names])))
	return l.width() <= width
}

// narrow replaces cells and titles by their narrow forms.
func (l *Layout[T]) narrow(rows []T) {
	for i := range l.columns {
		c := &l.columns[i]
		if c.Narrow != nil {
			c.Cell = c.Narrow
		}
		if c.NarrowTitle != "" {
			c.Title = c.NarrowTitle
		}
	}
	l.measure(rows)
}

// drop omits the last column. If that is the column of names, the first one takes its place.
func (l *Layout[T]) drop() {
	last := len(l.columns) - 1
	l.columns, l.widths = l.columns[:last], l.widths[:last]
	if l.names == last {
		l.names, l.longest = 0, l.widths[0]
	}
}

func (l *Layout[T]) width() int {
	sum := 2 * (len(l.widths) - 1)
	for _, w := range l.widths {
		sum += w
	}
	return sum
}

// Columns returns the number of columns that have a place.
func (l *Layout[T]) Columns() int { return len(l.columns) }

// Header returns the line of titles. If paint is not nil, it changes the text of each column, for example to one with
// colors. Blanks around the text are not part of it.
func (l *Layout[T]) Header(paint func(column int, text string) string) string {
	return l.line(func(c *Column[T]) string { return c.Title }, paint)
}

// Row returns the line of a row. paint is that of Header.
func (l *Layout[T]) Row(row *T, paint func(column int, text string) string) string {
	return l.line(func(c *Column[T]) string { return c.Cell(row) }, paint)
}

func (l *Layout[T]) line(text func(*Column[T]) string, paint func(int, string) string) string {
	var b strings.Builder
	for i := range l.columns {
		c := &l.columns[i]
		if i > 0 {
			b.WriteString("  ")
		}
		cell := text(c)
		if i == l.names {
			cell = cutTo(cell, l.widths[i], l.tail)
		} else {
			cell = CutMiddle(cell, l.widths[i])
		}
		blank := strings.Repeat(" ", l.widths[i]-utf8.RuneCountInString(cell))
		if paint != nil {
			cell = paint(i, cell)
		}
		if c.Right {
			b.WriteString(blank + cell)
		} else {
			b.WriteString(cell + blank)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// Text returns header and rows as lines that fit a width in characters, 0 for unlimited.
func Text[T any](columns []Column[T], rows []T, width int) string {
	l := Arrange(columns, rows, width)
	var b strings.Builder
	b.WriteString(l.Header(nil) + "\n")
	for i := range rows {
		b.WriteString(l.Row(&rows[i], nil) + "\n")
	}
	return b.String()
}

// CutMiddle returns a name shortened to the width. Generated names differ at their ends, so the middle is left out.
func CutMiddle(text string, width int) string { return cutTo(text, width, width/2) }

// cutTo is CutMiddle with the number of characters that are kept at the end, less than the width.
func cutTo(text string, width, tail int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	if width < 3 {
		return Cut(text, width)
	}
	return string(runes[:width-tail-1]) + "…" + string(runes[len(runes)-tail:])
}

// Cut returns a text truncated to the width, with a sign that marks the truncation.
func Cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	return string([]rune(text)[:width-1]) + "…"
}

// Bar returns a share as ten blocks and a percentage.
func Bar(share float64) string {
	blocks := min(10, max(0, int(share*10+0.5)))
	return strings.Repeat("█", blocks) + strings.Repeat("░", 10-blocks) + " " + Percent(share)
}

// Percent returns a share as a percentage, with blanks before it for a column of two or three digits.
func Percent(share float64) string { return fmt.Sprintf("%3.0f%%", share*100) }

// Plural returns a number of things: "1 node", "2 nodes".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
