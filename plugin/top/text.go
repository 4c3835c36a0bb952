package top

import (
	"fmt"
	"strings"

	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/table"
)

// Text returns the whole fleet as plain text, without colors, for scripts, documents and dumb terminals. Tables fit a
// width in characters, 0 for unlimited. Reasons of pods are not shortened. If the fleet has a bill, that is the text.
func Text(f *Fleet, width int) string {
	var b strings.Builder
	head := f
	if f.Bill != nil {
		head = f.billed()
	}
	for _, line := range summary(head, nil) {
		fmt.Fprintln(&b, line)
	}
	if f.Bill != nil {
		fmt.Fprint(&b, "\n"+f.Bill.Text(width))
		writeIncomplete(&b, f)
		return b.String()
	}
	if none := f.none(); none != "" {
		fmt.Fprintf(&b, "\n%s\n", none)
	}
	if list := f.totals(); len(list) > 0 {
		fmt.Fprintln(&b)
		writeTable(&b, poolColumns, list, width)
	}
	if len(f.Nodes) > 0 {
		fmt.Fprintln(&b)
		writeTable(&b, columns, f.Nodes, width)
	}
	writeProblems(&b, f)
	if len(f.Waiting) > 0 {
		fmt.Fprintf(&b, "\n%s\n", waitingHeader(width, nil))
		for i := range f.Waiting {
			fmt.Fprintln(&b, waitingLine(&f.Waiting[i], width))
		}
	}
	writeIncomplete(&b, f)
	return b.String()
}

func writeIncomplete(b *strings.Builder, f *Fleet) {
	if len(f.Incomplete) > 0 {
		fmt.Fprintln(b)
	}
	for _, d := range f.Incomplete {
		fmt.Fprintf(b, "incomplete without %s: %s\n", d.Resource, d.Effect)
	}
}

// none explains a fleet without rows, and a fleet without nodes; "" if there are nodes.
func (f *Fleet) none() string {
	switch {
	case len(f.Nodes) > 0:
		return ""
	case f.Filtered != "" && len(f.totals())+len(f.Waiting) == 0:
		return fmt.Sprintf("no node, pool or pending pod contains %q", f.Filtered)
	case f.Filtered != "":
		return fmt.Sprintf("no node contains %q", f.Filtered)
	case len(f.Pools) == 0:
		return "there are no nodes, and no NodePool from which some could be launched: create one, or select another cluster with --context"
	}
	return "there are no nodes: they are launched for pods that kube-scheduler reports as unschedulable"
}

// writeProblems prints why pools launch no nodes, and what blocks the drain of nodes.
func writeProblems(b *strings.Builder, f *Fleet) {
	title := "\nPROBLEMS\n"
	line := func(format string, arguments ...any) {
		fmt.Fprintf(b, title+format+"\n", arguments...)
		title = ""
	}
	for i := range f.Pools {
		p := &f.Pools[i]
		if !p.Ready {
			line("pool %s launches no nodes: %s", p.Name, p.NotReady)
		}
		if p.AtLimit != "" {
			line("pool %s is at its limit: %s", p.Name, p.AtLimit)
		}
	}
	for i := range f.Nodes {
		if n := &f.Nodes[i]; n.Drain != "" {
			line("node %s, leaving for %s: %s", n.Name, age(n.Leaving), n.Drain)
		}
	}
}

func writeTable[T any](b *strings.Builder, columns []column[T], rows []T, width int) {
	l := arrange(columns, rows, width)
	fmt.Fprintln(b, l.header(nil))
	for i := range rows {
		fmt.Fprintln(b, l.row(&rows[i], nil))
	}
}

// summary returns the lines about all nodes.
func summary(f *Fleet, p paint) []string {
	waiting, hopeless := 0, 0
	for _, w := range f.Waiting {
		waiting += w.Count
		if w.Outcome == noPlace {
			hopeless += w.Count
		}
	}
	nodes, pods := counted(len(f.Nodes), "node"), counted(f.Pods, "pod")
	if f.Of != nil {
		if len(f.Nodes) < f.Of.Nodes {
			nodes = fmt.Sprintf("%d of %s", len(f.Nodes), counted(f.Of.Nodes, "node"))
		}
		pods = fmt.Sprintf("%d of %s", f.Pods, counted(f.Of.Pods, "pod"))
	}
	first := fmt.Sprintf("%s  %s, %s", f.At.UTC().Format("2006-01-02 15:04:05"), nodes, pods)
	if waiting > 0 {
		first += fmt.Sprintf("; %s waiting", counted(waiting, "pod"))
	}
	if hopeless > 0 {
		first += ", " + p.of(bad, fmt.Sprintf("%d unschedulable", hopeless))
	}
	if problems := problems(f); problems != "" {
		first += "; " + p.of(bad, problems)
	}
	lines := []string{
		first,
		"cpu " + p.of(level(f.CPU), table.Bar(f.CPU)) + "   memory " + p.of(level(f.Memory), table.Bar(f.Memory)),
		cost(f),
	}
	for _, c := range f.Commitments {
		lines = append(lines, "commitment "+c)
	}
	if f.PriceSource != "" {
		lines = append(lines, "prices: "+f.PriceSource)
	}
	if len(f.Incomplete) > 0 {
		var resources []string
		for _, d := range f.Incomplete {
			resources = append(resources, d.Resource)
		}
		lines = append(lines, p.of(bad, "incomplete without "+strings.Join(resources, ", ")))
	}
	return lines
}

// problems counts the pools that launch no nodes and the blocked drains; "" for none.
func problems(f *Fleet) string {
	notReady, full, blocked := 0, 0, 0
	for i := range f.Pools {
		if !f.Pools[i].Ready {
			notReady++
		} else if f.Pools[i].AtLimit != "" {
			full++
		}
	}
	for i := range f.Nodes {
		if f.Nodes[i].Drain != "" {
			blocked++
		}
	}
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{notReady, "%s not ready"}, {full, "%s at the limit"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf(part.what, counted(part.n, "pool")))
		}
	}
	if blocked > 0 {
		parts = append(parts, counted(blocked, "blocked drain"))
	}
	return strings.Join(parts, ", ")
}

// cost formats the price, and the lower bound with its share of the price.
func cost(f *Fleet) string {
	text := "price unknown"
	usd := float64(f.PricePerHour)
	switch {
	case f.PricePerHour.IsZero():
	case f.Of != nil:
		text = fmt.Sprintf("%v of %v USD per hour, %.2f per month", f.PricePerHour, f.Of.PricePerHour, usd*bill.HoursPerMonth)
	default:
		text = fmt.Sprintf("%v USD per hour, %.2f per month", f.PricePerHour, usd*bill.HoursPerMonth)
	}
	if f.Unpriced > 0 && !f.PricePerHour.IsZero() {
		text += ", without " + counted(f.Unpriced, "node") + " of unknown price"
	}
	if !(usd > 0) || f.LowerBoundPerHour <= 0 {
		return text
	}
	return text + fmt.Sprintf("; lower bound %.4f (%.0f%%)", f.LowerBoundPerHour, 100*f.LowerBoundPerHour/usd)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// noPlace is the outcome of unschedulable pods.
const noPlace = "NoPlace"

// podColumn is the width of the names of pods on a screen of a width, 0 for unlimited.
func podColumn(width int) int {
	if width == 0 || width > 100 {
		return 40
	}
	return max(11, width*3/10)
}

// waitingColumns joins the columns of pending pods.
func waitingColumns(width int, pod, count, outcome, why string) string {
	n := podColumn(width)
	return fmt.Sprintf("%-*s  %5s  %-12s  %s", n, table.CutMiddle(pod, n), count, outcome, why)
}

func waitingHeader(width int, p paint) string {
	return p.of(title, waitingColumns(width, "WAITING POD", "COUNT", "OUTCOME", "WHY"))
}

// waitingLine returns the whole line of pending pods.
func waitingLine(w *Waiting, width int) string {
	return waitingColumns(width, w.Pod, fmt.Sprint(w.Count), w.Outcome, strings.Join(strings.Fields(w.Why), " "))
}

// waitingRow returns the line of pending pods, cut to the width.
func waitingRow(w *Waiting, width int, p paint) string {
	line := table.Cut(waitingLine(w, width), width)
	if w.Outcome == noPlace {
		return p.of(bad, line)
	}
	return line
}
