package top

import (
	"fmt"
	"strings"
)

// Text returns the whole fleet as plain text, without colors, for scripts, documents and dumb terminals.
func Text(f *Fleet) string {
	var b strings.Builder
	for _, line := range summary(f, nil) {
		fmt.Fprintln(&b, line)
	}
	l := arrange(f.Nodes, 0)
	fmt.Fprintf(&b, "\n%s\n", l.header(nil))
	for i := range f.Nodes {
		fmt.Fprintln(&b, l.row(&f.Nodes[i], nil))
	}
	if len(f.Waiting) > 0 {
		fmt.Fprintf(&b, "\n%s\n", waitingHeader(nil))
		for i := range f.Waiting {
			fmt.Fprintln(&b, waitingRow(&f.Waiting[i], 0, nil))
		}
	}
	return b.String()
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
		nodes, pods = fmt.Sprintf("%d of %s", len(f.Nodes), counted(f.Of.Nodes, "node")), fmt.Sprintf("%d of %s", f.Pods, counted(f.Of.Pods, "pod"))
	}
	first := fmt.Sprintf("%s  %s, %s", f.At.UTC().Format("2006-01-02 15:04:05"), nodes, pods)
	if waiting > 0 {
		first += fmt.Sprintf("; %s waiting", counted(waiting, "pod"))
	}
	if hopeless > 0 {
		first += ", " + p.of(bad, fmt.Sprintf("%d without a place", hopeless))
	}
	lines := []string{
		first,
		"cpu " + p.of(level(f.CPU), bar(f.CPU)) + "   memory " + p.of(level(f.Memory), bar(f.Memory)),
		cost(f),
	}
	if f.PriceSource != "" {
		lines = append(lines, "prices: "+f.PriceSource)
	}
	return lines
}

// cost formats the price and the lower bound, as the share that is known to be necessary.
func cost(f *Fleet) string {
	text := fmt.Sprintf("%.4f USD per hour", f.PricePerHour)
	if f.Of != nil {
		text = fmt.Sprintf("%.4f of %.4f USD per hour", f.PricePerHour, f.Of.PricePerHour)
	}
	if f.PricePerHour <= 0 || f.LowerBoundPerHour <= 0 {
		return text
	}
	return text + fmt.Sprintf("; no plan for these pods costs less than %.4f, which is %.0f%% of it", f.LowerBoundPerHour, 100*f.LowerBoundPerHour/f.PricePerHour)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// noPlace is the outcome of unschedulable pods.
const noPlace = "NoPlace"

const waitingFormat = "%-40s  %5s  %-12s  %s"

func waitingHeader(p paint) string {
	return p.of(title, fmt.Sprintf(waitingFormat, "WAITING POD", "COUNT", "OUTCOME", "WHY"))
}

// waitingRow returns the line of pending pods, truncated to the width, 0 for unlimited.
func waitingRow(w *Waiting, room int, p paint) string {
	line := fmt.Sprintf(waitingFormat, cut(w.Pod, 40), fmt.Sprint(w.Count), w.Outcome, strings.Join(strings.Fields(w.Why), " "))
	if room > 0 {
		line = cut(line, room)
	}
	if w.Outcome == noPlace {
		return p.of(bad, line)
	}
	return line
}
