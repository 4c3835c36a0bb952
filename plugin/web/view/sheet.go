package view

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/plugin/table"
)

// Sheet is a table. Cells are in the order of the columns.
type Sheet struct {
	Columns []Column
	Rows    []Row
}

// Column is a column of a sheet.
type Column struct {
	// Key is its name in documents and URLs, Title its head for people.
	Key, Title string
	// Number says that it is right-aligned, and sorted by value in descending order.
	Number bool
}

// Row is a row of a sheet. ID is its name in the URL, unique in the sheet.
type Row struct {
	ID    string
	Cells []Cell
}

// Cell is a text, or a number with its text.
type Cell struct {
	Text  string
	Value float64
	// Numeric says that Value is the cell.
	Numeric bool
}

// Words returns a cell of text.
func Words(text string) Cell { return Cell{Text: text} }

// Count returns a cell of a whole number.
func Count(n int) Cell { return Cell{strconv.Itoa(n), float64(n), true} }

// Money returns a cell of an amount in USD with the decimals.
func Money(usd float64, decimals int) Cell {
	return Cell{strconv.FormatFloat(usd, 'f', decimals, 64), usd, true}
}

// Percent returns a cell of a share.
func Percent(share float64) Cell {
	return Cell{strconv.Itoa(int(math.Round(share*100))) + "%", share, true}
}

// Sort sorts the rows by a column, and by ID for equal cells: numbers in descending order, text in ascending order,
// reverse the other way round. An unknown column keeps the order.
func (s *Sheet) Sort(key string, reverse bool) {
	at := slices.IndexFunc(s.Columns, func(c Column) bool { return c.Key == key })
	if at < 0 {
		return
	}
	slices.SortStableFunc(s.Rows, func(a, b Row) int {
		x, y := a.Cells[at], b.Cells[at]
		order := cmp.Or(cmp.Compare(y.Value, x.Value), strings.Compare(x.Text, y.Text))
		if reverse {
			order = -order
		}
		return cmp.Or(order, strings.Compare(a.ID, b.ID))
	})
}

// WriteCSV writes the sheet with a line of keys. A text that a spreadsheet would take for a formula gets an apostrophe
// (https://owasp.org/www-community/attacks/CSV_Injection).
func (s *Sheet) WriteCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	line := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		line[i] = c.Key
	}
	if err := w.Write(line); err != nil {
		return err
	}
	for _, row := range s.Rows {
		for i, c := range row.Cells {
			line[i] = c.plain()
		}
		if err := w.Write(line); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func (c Cell) plain() string {
	switch {
	case c.Numeric:
		return strconv.FormatFloat(c.Value, 'f', -1, 64)
	case c.Text != "" && strings.ContainsRune("=+-@\t\r", rune(c.Text[0])):
		return "'" + c.Text
	}
	return c.Text
}

// Markdown returns the sheet as a table of Markdown.
func (s *Sheet) Markdown() string {
	titles, rows := make([]string, len(s.Columns)), make([][]string, len(s.Rows))
	for i, c := range s.Columns {
		titles[i] = c.Title
	}
	for i, row := range s.Rows {
		for _, c := range row.Cells {
			rows[i] = append(rows[i], c.Text)
		}
	}
	return table.Markdown(titles, func(column int) bool { return s.Columns[column].Number }, rows)
}

// Objects returns the rows as objects by the keys of the columns, for JSON.
func (s *Sheet) Objects() []json.RawMessage {
	list := make([]json.RawMessage, 0, len(s.Rows))
	for _, row := range s.Rows {
		var b strings.Builder
		for i, c := range row.Cells {
			b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
			key, _ := json.Marshal(s.Columns[i].Key) // a string has no error
			value, _ := json.Marshal(c.Text)
			if c.Numeric {
				value = strconv.AppendFloat(nil, c.Value, 'f', -1, 64)
			}
			b.Write(key)
			b.WriteByte(':')
			b.Write(value)
		}
		b.WriteByte('}')
		list = append(list, json.RawMessage(b.String()))
	}
	return list
}
