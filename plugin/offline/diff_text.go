package offline

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/plugin/review"
	"github.com/karpenter-go/karpenter/plugin/table"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// diffRow is a figure on both sides.
type diffRow struct{ name, old, now, change string }

// diffTitles are those of the figures.
var diffTitles = []string{"", "Without", "With", "Change"}

// rows returns the figures as text: the price from today to rest, and what it takes to get there.
func (a *DiffAnswer) rows() []diffRow {
	count := func(name string, old, now int) diffRow {
		return diffRow{name, fmt.Sprint(old), fmt.Sprint(now), fmt.Sprintf("%+d", now-old)}
	}
	price := func(name string, old, now float64) diffRow {
		return diffRow{name, month("%.2f", old), month("%.2f", now), month("%+.2f", now-old)}
	}
	wait := func(r *AtRest) string { return duration.HumanDuration(time.Duration(r.WaitSeconds) * time.Second) }
	rows := []diffRow{price("USD a month today", a.Today.Price, a.Today.Price)}
	for _, w := range ways {
		old, now := w.of(a.Old.ByReason), w.of(a.New.ByReason)
		if old != nil || now != nil {
			before, after := sumOf(old), sumOf(now)
			rows = append(rows, diffRow{"+ " + w.name, month("%+.2f", before), month("%+.2f", after), month("%+.2f", after-before)})
		}
	}
	rows = append(rows, price("USD a month at rest", a.Old.PricePerHour, a.New.PricePerHour))
	if a.Old.FreshWithout+a.New.FreshWithout == 0 {
		rows = append(rows, price("USD a month of a fresh fleet", a.Old.FreshPerHour, a.New.FreshPerHour))
	} else {
		rows = append(rows, count("pods without a place in a fresh fleet", a.Old.FreshWithout, a.New.FreshWithout))
	}
	return append(rows,
		count("nodes at rest", a.Old.Nodes, a.New.Nodes),
		count("nodes replaced (drift)", a.Old.NodesReplaced, a.New.NodesReplaced),
		count("drifted nodes that are kept", a.Old.StillDrifted, a.New.StillDrifted),
		count("pods moved", a.Old.PodsMoved, a.New.PodsMoved),
		count("unschedulable pods", len(a.Old.Unschedulable), len(a.New.Unschedulable)),
		diffRow{"time until the last step", wait(&a.Old), wait(&a.New), ""},
	)
}

// month returns a price per hour as one of a month. What rounds to nothing has no sign of its own.
func month(format string, perHour float64) string {
	text := fmt.Sprintf(format, perHour*view.HoursPerMonth)
	if strings.Trim(text, "+-0.") == "" {
		text = strings.Replace(text, "-", strings.TrimSuffix(format[1:2], "."), 1)
	}
	return text
}

// way is a part of the way from today to rest, in words.
type way struct {
	name    string
	reasons []string
}

// ways are the parts in the order in which they are shown.
var ways = []way{
	{"nodes deleted with their NodePool", []string{poolDeleted}},
	{"launches for pending pods", []string{provisioning}},
	{"replacement of drifted nodes", []string{string(plan.Drifted)}},
	{"consolidation", []string{string(plan.Empty), string(plan.Underutilized)}},
	{"expiry", []string{string(plan.Expired)}},
	{"nodes above replicas", []string{string(disruption.Surplus)}},
	{"other steps", nil},
}

// of returns the prices of the reasons; nil if no step has one of them.
func (w *way) of(list []ReasonPrice) []ReasonPrice {
	var part []ReasonPrice
	for _, r := range list {
		known := slices.ContainsFunc(ways, func(o way) bool { return slices.Contains(o.reasons, r.Reason) })
		if slices.Contains(w.reasons, r.Reason) || w.reasons == nil && !known {
			part = append(part, r)
		}
	}
	return part
}

func sumOf(list []ReasonPrice) float64 {
	sum := 0.0
	for _, r := range list {
		sum += r.PricePerHour
	}
	return sum
}

// fleets names what is compared.
func (a *DiffAnswer) fleets() string {
	return fmt.Sprintf("Today: %s as read. Without, with: the fleets at rest, after all steps that are worthwhile, without and with "+
		"the change. What differs between these two is due to the change; the way from today to rest without it is not.",
		plural(a.Today.Nodes, "node"))
}

// effects are sentences about single nodes.
func (a *DiffAnswer) effects() []string {
	var list []string
	nodes, order := map[string][]string{}, []string{}
	for _, n := range a.Drifted {
		key := fmt.Sprintf("of pool %s drift, %s", n.NodePool, n.Reason)
		if len(nodes[key]) == 0 {
			order = append(order, key)
		}
		nodes[key] = append(nodes[key], n.Node)
	}
	for _, key := range order {
		list = append(list, fmt.Sprintf("%s %s: %s", plural(len(nodes[key]), "node"), key, names(nodes[key], ", ")))
	}
	if n := len(a.Removed); n > 0 {
		list = append(list, fmt.Sprintf("%s deleted with a NodePool: %s", plural(n, "node"), names(a.Removed, ", ")))
	}
	return list
}

// head returns the first lines: pools that can launch nothing, the verdict, what is not allowed, and what is not known.
func (a *DiffAnswer) head() []string {
	lines := append(slices.Clone(a.Warnings[:a.uselessWarnings]), a.Verdict)
	for _, v := range a.Violations {
		lines = append(lines, "Not allowed: "+v.Message)
	}
	return append(lines, a.Warnings[a.uselessWarnings:]...)
}

// changed returns the fields that changed as a table for each object, and whole objects as one. What is too wide for
// a table has lines of its own, so that no value is cut.
func (a *DiffAnswer) changed(width int) string {
	var b strings.Builder
	for rest := a.Changes; len(rest) > 0; {
		n := 1
		for n < len(rest) && headOf(&rest[n]) == headOf(&rest[0]) {
			n++
		}
		columns := []table.Column[review.Change]{
			{Title: headOf(&rest[0]), Cell: fieldOf},
			{Title: "OLD", Cell: func(c *review.Change) string { return c.Old }},
			{Title: "NEW", Cell: func(c *review.Change) string { return c.New }},
		}
		text := table.Text(columns, rest[:n], 0)
		for line := range strings.Lines(text) {
			if width > 0 && utf8.RuneCountInString(line) > width {
				text = stacked(rest[:n])
				break
			}
		}
		b.WriteString(text + "\n")
		rest = rest[n:]
	}
	return b.String()
}

// stacked returns the changes of an object as lines.
func stacked(changes []review.Change) string {
	var b strings.Builder
	b.WriteString(headOf(&changes[0]) + "\n")
	for i := range changes {
		c := &changes[i]
		fmt.Fprintf(&b, "  %s\n    OLD %s\n    NEW %s\n", fieldOf(c), c.Old, c.New)
	}
	return b.String()
}

// headOf is the title of the table in which a change is.
func headOf(c *review.Change) string {
	if c.Field == "" {
		return "OBJECT"
	}
	return c.Kind + " " + c.Name
}

// fieldOf returns the path of a change, or the name of a whole object.
func fieldOf(c *review.Change) string {
	if c.Field == "" {
		return c.Kind + " " + c.Name
	}
	return c.Field
}

// Text returns the verdict, the fields that changed, the figures as a table, and what happens to single nodes and pods.
func (a *DiffAnswer) Text(width int) string {
	var b strings.Builder
	for _, line := range a.head() {
		b.WriteString(line + "\n")
	}
	b.WriteString("\n" + a.changed(width))
	b.WriteString(table.Text([]table.Column[diffRow]{
		{Title: strings.ToUpper(diffTitles[0]), Cell: func(r *diffRow) string { return r.name }},
		{Title: strings.ToUpper(diffTitles[1]), Right: true, Cell: func(r *diffRow) string { return r.old }},
		{Title: strings.ToUpper(diffTitles[2]), Right: true, Cell: func(r *diffRow) string { return r.now }},
		{Title: strings.ToUpper(diffTitles[3]), Right: true, Cell: func(r *diffRow) string { return r.change }},
	}, a.rows(), width) + "\n")
	for _, text := range append(a.effects(), a.fleets()) {
		b.WriteString(text + "\n")
	}
	fresh := LaunchAnswer{Unschedulable: a.NewlyUnschedulable()}
	if len(fresh.Unschedulable) > 0 {
		b.WriteString("\nwith the change only:\n")
		fresh.writeUnschedulable(&b)
	}
	b.WriteString(pricesAre(a.PriceSource) + incomplete(a.Incomplete))
	return b.String()
}

// mostLines is the maximum number of fields, of pods and of steps in Markdown, and mostText the length in bytes after
// which no further pod is named: a comment on GitHub has at most 65,536 characters.
const mostLines, mostText = 50, 40_000

// WriteMarkdown writes the answer as a comment for a change under review, after a line that is not shown, by which the
// comment is found again. No name in it is markup.
func (a *DiffAnswer) WriteMarkdown(out io.Writer, marker string) error {
	var b strings.Builder
	b.WriteString(marker + "\n")
	for i, text := range a.head() {
		text = table.Escape(text)
		if i <= a.uselessWarnings+len(a.Violations) {
			text = "**" + text + "**"
		}
		b.WriteString(text + "\n\n")
	}
	a.markdownTables(&b)
	lines := a.effects()
	for _, u := range a.NewlyUnschedulable() {
		text := "unschedulable: " + u.Pod
		for _, reason := range u.Reasons {
			text += "; " + strings.TrimPrefix(reason.NodePool+": ", ": ") + reason.Message
		}
		lines = append(lines, text)
	}
	for i, text := range lines {
		if i == mostLines || b.Len() > mostText {
			fmt.Fprintf(&b, "* and %d more, see -o json\n", len(lines)-i)
			break
		}
		b.WriteString("* " + table.Escape(text) + "\n")
	}
	b.WriteString("\n" + table.Escape(strings.TrimSpace(a.fleets()+" "+pricesAre(a.PriceSource)+incomplete(a.Incomplete))) + "\n")
	if rows := a.steps.Rows; len(rows) > 0 && b.Len() <= mostText {
		shown := view.Sheet{Columns: a.steps.Columns, Rows: rows[:min(len(rows), mostLines)]}
		fmt.Fprintf(&b, "\n<details><summary>%s with the change</summary>\n\n%s\n</details>\n",
			plural(len(rows), "step"), shown.Markdown())
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// markdownTables writes the fields that changed, and the figures.
func (a *DiffAnswer) markdownTables(b *strings.Builder) {
	rows := [][]string{}
	for i, c := range a.Changes {
		if i == mostLines {
			rows = append(rows, []string{fmt.Sprintf("and %d more, see -o json", len(a.Changes)-mostLines), "", "", ""})
			break
		}
		rows = append(rows, []string{c.Kind + " " + c.Name, cmp.Or(c.Field, "(the object)"),
			table.CutMiddle(c.Old, longestCell), table.CutMiddle(c.New, longestCell)})
	}
	if len(rows) > 0 {
		b.WriteString(table.Markdown([]string{"Object", "Field", "Old", "New"}, func(int) bool { return false }, rows) + "\n")
	}
	rows = nil
	for _, r := range a.rows() {
		rows = append(rows, []string{r.name, r.old, r.now, r.change})
	}
	b.WriteString(table.Markdown(diffTitles, func(column int) bool { return column > 0 }, rows) + "\n")
}

// longestCell is the maximum length of a value in Markdown, in characters.
const longestCell = 300
