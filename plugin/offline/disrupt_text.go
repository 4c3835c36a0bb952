package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/karpenter-go/karpenter/plugin/table"
	"github.com/karpenter-go/karpenter/plugin/top"
)

// This file prints the answer of --disrupt as text: the steps in their order, the kept nodes by their reasons, and
// the figures.

// Text returns the steps as a table, and the nodes and the cost before and after them. The table fits a width in
// characters, 0 for unlimited; other lines have any width.
func (a *DisruptAnswer) Text(width int) string {
	var b strings.Builder
	if len(a.Steps) > 0 {
		rows := make([]stepRow, len(a.Steps))
		for i := range a.Steps {
			rows[i] = stepRow{&a.Steps[i], i + 1}
		}
		columns := stepColumns
		if len(a.Waits) == 0 {
			columns = slices.DeleteFunc(slices.Clone(columns), func(c table.Column[stepRow]) bool { return c.Title == waitTitle })
		}
		b.WriteString(table.Text(columns, rows, width) + "\n")
	}
	moved, _ := a.moves()
	for i := range a.Steps {
		a.Steps[i].writeMoves(&b, i+1, separator(width))
	}
	if moved > 0 {
		b.WriteByte('\n')
	}
	a.writeKept(&b)
	a.writeSummary(&b)
	return b.String()
}

// separator returns what separates names in lines of a width. A terminal's line is broken after a blank.
func separator(width int) string {
	if width > 0 {
		return ", "
	}
	return ","
}

// stepRow is a step with its number.
type stepRow struct {
	*Step
	number int
}

// waitTitle is the title of the column that says how long steps wait; it is left out if none waits.
const waitTitle = "AFTER"

// stepColumns are those of steps. On a narrow terminal, lines below the table still name nodes and pods.
var stepColumns = []table.Column[stepRow]{
	{Title: "STEP", Cell: func(s *stepRow) string { return strconv.Itoa(s.number) }},
	{Title: waitTitle, Cell: func(s *stepRow) string { return duration.HumanDuration(time.Duration(s.WaitSeconds) * time.Second) }},
	{Title: "REASON", Cell: func(s *stepRow) string { return s.Reason }},
	{Title: "METHOD", Cell: func(s *stepRow) string { return cmp.Or(s.Method, "-") }},
	{Title: "NODES OUT", Least: 16, Cell: func(s *stepRow) string { return names(s.Remove, ",") },
		Narrow: func(s *stepRow) string { return firstOf(s.Remove) }},
	{Title: "NODES IN", Cell: func(s *stepRow) string { return additions(s.Add) },
		Narrow: func(s *stepRow) string { return table.CutMiddle(typesOf(s.Add), narrowTypes) }},
	{Title: "PODS MOVED", NarrowTitle: "PODS", Cell: func(s *stepRow) string { return strconv.Itoa(s.Moved) }},
	{Title: "SAVES USD/HOUR", NarrowTitle: "SAVES", Cell: func(s *stepRow) string { return s.Saving.String() }},
	{Title: "SCORE", Cell: func(s *stepRow) string { return scoreText(s.Score) }},
	{Title: "COST AFTER", NarrowTitle: "COST", Cell: func(s *stepRow) string { return s.After.CostPerHour.String() }},
}

// narrowTypes is the length to which the types of new nodes are shortened on a narrow terminal.
const narrowTypes = 16

// firstOf returns the first name and the number of others.
func firstOf(nodes []string) string {
	if len(nodes) < 2 {
		return strings.Join(nodes, "")
	}
	return fmt.Sprintf("%s +%d", nodes[0], len(nodes)-1)
}

// typesOf returns the additions without zones and capacity types.
func typesOf(list []AddedNode) string {
	short := make([]AddedNode, len(list))
	for i := range list {
		short[i].InstanceType = list[i].InstanceType
	}
	return additions(short)
}

func scoreText(score *float64) string {
	if score == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *score)
}

// fewNodes is the maximum number of nodes that a line names.
const fewNodes = 3

// names returns the first names, and the number of others.
func names(nodes []string, separator string) string {
	if len(nodes) <= fewNodes {
		return strings.Join(nodes, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(nodes[:fewNodes], separator), len(nodes)-fewNodes)
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
	fmt.Fprintf(b, "%s: %s %s %d, ", plural(len(a.Steps), "step"), plural(a.Before.Nodes, "node"), become(a.Before.Nodes), a.After.Nodes)
	if a.unpriced() {
		b.WriteString("of unknown price\n")
	} else {
		fmt.Fprintf(b, "price %s, cost %v becomes %v\n", perHourBecomes(a.Before.PricePerHour, a.After.PricePerHour),
			a.Before.CostPerHour, a.After.CostPerHour)
	}
	if n := a.Before.UnknownPrices; n > 0 && !a.unpriced() {
		fmt.Fprintf(b, "%s of unknown price: the figures do not contain them\n", plural(n, "node"))
	}
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
	if len(a.Waits) > 0 {
		last := a.Steps[len(a.Steps)-1].WaitSeconds
		fmt.Fprintf(b, "the last step begins after %s, when these end: %s\n", duration.HumanDuration(time.Duration(last)*time.Second),
			strings.Join(a.waitCodes(), ", "))
	}
	if a.LowerBoundCostPerHour > 0 && a.After.CostPerHour > 0 {
		fmt.Fprintf(b, "lower bound %.4f with protected nodes kept: at most %.1f%% more could be saved\n",
			a.LowerBoundCostPerHour, max(0, 100*(1-a.LowerBoundCostPerHour/float64(a.After.CostPerHour))))
	}
	b.WriteString(pricesAre(a.PriceSource))
	b.WriteString(incomplete(a.Incomplete))
}

// waitCodes returns the codes that steps wait for, in the order in which they first end.
func (a *DisruptAnswer) waitCodes() []string {
	var codes []string
	for _, w := range a.Waits {
		for _, code := range w.Codes {
			if !slices.Contains(codes, code) {
				codes = append(codes, code)
			}
		}
	}
	return codes
}

// unpriced reports whether no price is known, before or after the steps.
func (a *DisruptAnswer) unpriced() bool {
	return a.Before.PricePerHour.IsZero() && a.After.PricePerHour.IsZero()
}

func perHourBecomes(before, after top.Sum) string {
	if before.IsZero() {
		return fmt.Sprintf("unknown becomes %v USD per hour", after)
	}
	return fmt.Sprintf("%v USD per hour becomes %v", before, after)
}

// moves returns the number of pods that move in all steps, and the savings of these steps in USD per hour.
func (a *DisruptAnswer) moves() (pods int, saved float64) {
	for i := range a.Steps {
		pods += a.Steps[i].Moved
	}
	return pods, float64(a.Before.CostPerHour - a.After.CostPerHour)
}

func become(n int) string {
	if n == 1 {
		return "becomes"
	}
	return "become"
}

// Brief returns the answer as one line: steps, nodes, and the cost in USD per hour before and after them.
func (a *DisruptAnswer) Brief() string {
	text := fmt.Sprintf("%s, %s %s %d, ", plural(len(a.Steps), "step"), plural(a.Before.Nodes, "node"), become(a.Before.Nodes), a.After.Nodes)
	if a.unpriced() {
		return text + "of unknown price"
	}
	return text + "cost " + perHourBecomes(a.Before.CostPerHour, a.After.CostPerHour)
}
