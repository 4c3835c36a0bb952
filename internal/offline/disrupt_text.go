package offline

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// This file prints the answer of --disrupt as text: the steps in their order, the kept nodes by their reasons, and
// the figures.

// WriteText writes the steps as a table, and the nodes and the cost before and after them.
func (a *DisruptAnswer) WriteText(out io.Writer) error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if len(a.Steps) > 0 {
		fmt.Fprintln(w, "STEP\tREASON\tMETHOD\tNODES OUT\tNODES IN\tPODS MOVED\tSAVES USD/HOUR\tSCORE\tCOST AFTER")
	}
	for i := range a.Steps {
		s := &a.Steps[i]
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%d\t%.4f\t%s\t%.4f\n", i+1, s.Reason, cmp.Or(s.Method, "-"), names(s.Remove),
			additions(s.Add), s.Moved, s.Saving,
			scoreText(s.Score), s.After.CostPerHour)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(a.Steps) > 0 {
		b.WriteByte('\n')
	}
	moved, _ := a.moves()
	for i := range a.Steps {
		a.Steps[i].writeMoves(&b, i+1)
	}
	if moved > 0 {
		b.WriteByte('\n')
	}
	a.writeKept(&b)
	a.writeSummary(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func scoreText(score *float64) string {
	if score == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *score)
}

// fewNodes is the maximum number of nodes that a line names.
const fewNodes = 3

func names(nodes []string) string {
	if len(nodes) <= fewNodes {
		return strings.Join(nodes, ",")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(nodes[:fewNodes], ","), len(nodes)-fewNodes)
}

// additions counts the new nodes by type, zone and capacity type.
func additions(list []AddedNode) string {
	var parts []string
	counts := map[string]int{}
	for _, n := range list {
		// A claim may have no value for some of these fields.
		text := strings.Join(strings.Fields(n.InstanceType+" "+n.Zone+" "+n.CapacityType), " ")
		if counts[text]++; counts[text] == 1 {
			parts = append(parts, text)
		}
	}
	for i, text := range parts {
		if counts[text] > 1 {
			parts[i] = fmt.Sprintf("%d x %s", counts[text], text)
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "-")
}

// writeKept lists kept nodes, grouped by their codes.
func (a *DisruptAnswer) writeKept(b *strings.Builder) {
	type line struct {
		first   *KeptNode
		count   int
		reasons [][]KeptReason // of all nodes, by the index in first.Reasons
	}
	lines := map[string]*line{}
	var order []*line
	for i := range a.Kept {
		n := &a.Kept[i]
		var key strings.Builder
		for _, r := range n.Reasons {
			key.WriteString(r.NodePool + "/" + r.Code + " ")
		}
		l := lines[key.String()]
		if l == nil {
			l = &line{first: n, reasons: make([][]KeptReason, len(n.Reasons))}
			lines[key.String()] = l
			order = append(order, l)
		}
		l.count++
		for k, r := range n.Reasons {
			l.reasons[k] = append(l.reasons[k], r)
		}
	}
	slices.SortStableFunc(order, func(x, y *line) int { return cmp.Compare(y.count, x.count) })
	for _, l := range order {
		if l.count == 1 {
			fmt.Fprintf(b, "KEPT %s\n", l.first.Node)
		} else {
			fmt.Fprintf(b, "KEPT %s such as %s\n", plural(l.count, "node"), l.first.Node)
		}
		for k, r := range l.first.Reasons {
			fmt.Fprintf(b, "  %s: %s\n", r.title(), ofAll(l.reasons[k]))
		}
	}
	if len(order) > 0 {
		b.WriteByte('\n')
	}
}

// title returns the code, and the reason for which the node might have been removed.
func (r *KeptReason) title() string {
	if r.For == "" {
		return r.Code
	}
	return r.Code + " (" + r.For + ")"
}

func (a *DisruptAnswer) writeSummary(b *strings.Builder) {
	fmt.Fprintf(b, "%s: %s %s %d, price %.4f USD per hour becomes %.4f, cost %.4f becomes %.4f\n", plural(len(a.Steps), "step"),
		plural(a.Before.Nodes, "node"), become(a.Before.Nodes), a.After.Nodes, a.Before.PricePerHour, a.After.PricePerHour,
		a.Before.CostPerHour, a.After.CostPerHour)
	if a.UnderWay > 0 {
		fmt.Fprintf(b, "%s in commands in progress: no step covers them, and the figures count them unchanged\n", plural(a.UnderWay, "node"))
	}
	moved, saved := a.moves()
	if moved > 0 {
		fmt.Fprintf(b, "%s moved", plural(moved, "pod"))
		if saved > 0 {
			fmt.Fprintf(b, ", %.1f for each USD per hour saved", float64(moved)/saved)
		}
		b.WriteByte('\n')
	}
	if a.LowerBoundCostPerHour > 0 && a.After.CostPerHour > 0 {
		fmt.Fprintf(b, "lower bound %.4f with protected nodes kept: at most %.1f%% more could be saved\n",
			a.LowerBoundCostPerHour, max(0, 100*(1-a.LowerBoundCostPerHour/a.After.CostPerHour)))
	}
	b.WriteString(pricesAre(a.PriceSource))
	b.WriteString(incomplete(a.Incomplete))
}

// moves returns the number of pods that move in all steps, and the savings of these steps in USD per hour.
func (a *DisruptAnswer) moves() (pods int, saved float64) {
	for i := range a.Steps {
		pods += a.Steps[i].Moved
	}
	return pods, a.Before.CostPerHour - a.After.CostPerHour
}

func become(n int) string {
	if n == 1 {
		return "becomes"
	}
	return "become"
}

// Brief returns the answer as one line: steps, nodes, and the cost in USD per hour before and after them.
func (a *DisruptAnswer) Brief() string {
	return fmt.Sprintf("%s, %s %s %d, cost %.4f USD per hour becomes %.4f", plural(len(a.Steps), "step"),
		plural(a.Before.Nodes, "node"), become(a.Before.Nodes), a.After.Nodes,
		a.Before.CostPerHour, a.After.CostPerHour)
}
