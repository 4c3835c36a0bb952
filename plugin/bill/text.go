package bill

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/plugin/table"
)

// Unknown is what tables have in place of a price.
const Unknown = "unknown"

// Columns returns the columns of the rows, the most important ones first.
func (b *Bill) Columns() []table.Column[Row] {
	priced := func(text func(r *Row) string) func(*Row) string {
		return func(r *Row) string {
			if r.Unpriced() {
				return Unknown
			}
			return text(r)
		}
	}
	share := table.Column[Row]{Title: "SHARE", Right: true,
		Cell: priced(func(r *Row) string { return strconv.FormatFloat(100*b.Share(r), 'f', 1, 64) + "%" })}
	count := table.Column[Row]{Title: "PODS", Right: true, Cell: pods}
	list := []table.Column[Row]{
		{Title: strings.TrimSpace(strings.ToUpper(b.By) + " " + b.Label), Cell: b.Title},
		{Title: "USD/H", Right: true, Cell: priced(func(r *Row) string { return r.PerHour.Text(4) })},
		{Title: "USD/MONTH", Right: true, Cell: priced(func(r *Row) string { return r.PerMonth.Text(2) })},
	}
	if b.Usage != nil && b.Usage.Unknown == "" {
		return append(list, useColumns()...)
	}
	return append(list, share, count,
		table.Column[Row]{Title: "CPU", Right: true, Cell: func(r *Row) string { return Cores(r.CPU) }},
		table.Column[Row]{Title: "MEMORY", Right: true, Cell: func(r *Row) string { return memory(r.Memory) }})
}

func pods(r *Row) string {
	if r.Kind == Unused || r.Kind == Empty {
		return "-"
	}
	return r.PodsText()
}

// Cores returns millicores as CPUs with two decimals.
func Cores(millicores int64) string { return strconv.FormatFloat(float64(millicores)/1000, 'f', 2, 64) }

// memory returns an amount of memory in the largest unit of which there is one.
func memory(n int64) string {
	value := float64(n)
	for _, unit := range []string{"", "Ki", "Mi", "Gi", "Ti"} {
		if value < 1024 || unit == "Ti" {
			if unit == "" || value >= 100 {
				return strconv.FormatFloat(value, 'f', 0, 64) + unit
			}
			return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0") + unit
		}
		value /= 1024
	}
	return ""
}

// Text returns the bill as lines that fit a width in characters, 0 for unlimited.
func (b *Bill) Text(width int) string {
	var out strings.Builder
	if len(b.Rows) > 0 {
		out.WriteString(table.Text(b.Columns(), b.Rows, width))
		out.WriteByte('\n')
	}
	for _, line := range b.Summary() {
		out.WriteString(table.Wrap(line, width, 2) + "\n")
	}
	return out.String()
}

// Summary returns what the rows add up to, and what they leave out.
func (b *Bill) Summary() []string {
	var lines []string
	switch {
	case b.Shown != nil && len(b.Rows) == 0:
		lines = append(lines, fmt.Sprintf("no row contains %q", b.Filtered))
	case b.Shown != nil:
		lines = append(lines, fmt.Sprintf("the rows with %q cost %s of %s USD per hour, %s per month", b.Filtered, b.Shown.Text(4),
			b.PerHour.Text(4), b.Shown.PerMonth().Text(2)))
	default:
		lines = append(lines, fmt.Sprintf("together %s USD per hour, %s per month, for %s", b.PerHour.Text(4), b.PerMonth.Text(2),
			table.Plural(b.Nodes-b.UnknownPrices, "node")))
	}
	pods := 0
	for i := range b.Rows {
		pods += b.Rows[i].UnknownPrices
	}
	if b.UnknownPrices > 0 {
		lines = append(lines, fmt.Sprintf("without %s of unknown price and %s on them",
			table.Plural(b.UnknownPrices, "node"), table.Plural(pods, "pod")))
	}
	if b.Unmanaged > 0 {
		lines = append(lines, fmt.Sprintf("without %s that no NodePool launched, and their pods", table.Plural(b.Unmanaged, "node")))
	}
	return append(lines, b.usageLines()...)
}
