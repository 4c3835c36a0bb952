package view

import (
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/plugin/bill"
)

// BillSheet returns the rows of a bill as a table.
func BillSheet(b *bill.Bill) *Sheet {
	title := map[string]string{bill.ByNamespace: "Namespace", bill.ByWorkload: "Workload", bill.ByLabel: "Label " + b.Label}[b.By]
	s := &Sheet{Columns: []Column{{Key: "for", Title: title}, {"price", "USD/h", true}, {"month", "USD/month", true},
		{"share", "Share of cost", true}, {"pods", "Pods", true}, {"cpu", "CPU", true}, {"memory", "Memory, GiB", true}}}
	known := b.Usage != nil && b.Usage.Unknown == ""
	if known {
		s.Columns = append(s.Columns, Column{"cpuUsed", "CPU used", true}, Column{"cpuShare", "of requests", true},
			Column{"memoryUsed", "Memory used, GiB", true}, Column{"memoryShare", "of requests", true})
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		pods := Cell{r.PodsText(), float64(r.Pods), true}
		prices := []Cell{Money(r.PerHour.Float(), 4), Money(r.PerMonth.Float(), 2), Percent(b.Share(r))}
		if r.Unpriced() {
			prices = []Cell{Words(bill.Unknown), Words(bill.Unknown), Words(bill.Unknown)}
		}
		if r.Kind == bill.Unused || r.Kind == bill.Empty {
			pods = Words("–")
		}
		gib := float64(r.Memory) / (1 << 30)
		s.Rows = append(s.Rows, Row{billID(r), slices.Concat([]Cell{Words(b.Title(r))}, prices, []Cell{pods,
			{bill.Cores(r.CPU), float64(r.CPU) / 1000, true}, {strconv.FormatFloat(gib, 'f', 1, 64), gib, true}})})
		if row := &s.Rows[i]; known {
			row.Cells = append(row.Cells, useCells(r.Use)...)
		}
	}
	return s
}

// useCells are the cells of what the pods of a row use.
func useCells(u *bill.Use) []Cell {
	if u == nil {
		return []Cell{Words("–"), Words("–"), Words("–"), Words("–")}
	}
	gib := float64(u.Memory) / (1 << 30)
	return []Cell{{bill.Cores(u.CPU), float64(u.CPU) / 1000, true}, Percent(u.CPUShare), {strconv.FormatFloat(gib, 'f', 1, 64), gib, true},
		Percent(u.MemoryShare)}
}

// billID returns the name of a row, unique in its bill.
func billID(r *bill.Row) string {
	value := "-"
	if r.Label != nil {
		value = "=" + *r.Label
	}
	return strings.Join([]string{r.Kind, r.Namespace, r.Workload, r.Name, value}, "|")
}
