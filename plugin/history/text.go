package history

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/table"
)

// Times of tables and sentences are UTC.
const (
	minute = "01-02 15:04"
	second = "2006-01-02 15:04:05"
)

// span says what was read.
func (h *Head) span() string {
	if h.From == nil {
		return "no line of a log was read\n"
	}
	return fmt.Sprintf("%s to %s UTC, %s about nodes\n", h.From.Format(second), h.Until.Format(second), table.Plural(h.Lines.Events, "line"))
}

// unknown is what text says in place of what the log does not have.
const unknown = "-"

func orUnknown(text string) string {
	if text == "" {
		return unknown
	}
	return text
}

// price returns an amount with four decimals, as prices are listed.
func price(u *bill.USD) string {
	if u == nil {
		return unknown
	}
	return u.Text(4)
}

// sum returns an amount in words.
func sum(u *bill.USD) string {
	if u == nil {
		return "unknown"
	}
	return u.Text(4) + " USD"
}

func (n *Node) paidFor() string {
	if n.PaidSeconds == nil {
		return unknown
	}
	return duration.HumanDuration(time.Duration(*n.PaidSeconds) * time.Second)
}

// left says in a word why the node left.
func (n *Node) left() string {
	switch {
	case n.Deleted != nil || n.failed:
		return orUnknown(n.Reason)
	case n.gone != nil || n.Leaving != nil || n.Draining != nil:
		return "leaving"
	}
	return ""
}

func (n *Node) launched() string {
	if at := n.first(); !at.IsZero() {
		return at.Format(minute)
	}
	return "before"
}

// text returns the first name and how many more there are.
func (p *Pods) text() string {
	switch {
	case p == nil:
		return ""
	case len(p.Names) == 0:
		return strconv.Itoa(p.Count)
	case p.Count == 1:
		return p.Names[0]
	}
	return fmt.Sprintf("%s +%d", p.Names[0], p.Count-1)
}

var nodeColumns = []table.Column[*Node]{
	{Title: "NODE", Least: 14, Cell: func(n **Node) string { return (*n).Name() }},
	{Title: "LAUNCHED", Cell: func(n **Node) string { return (*n).launched() }},
	{Title: "FOR", Right: true, Cell: func(n **Node) string { return (*n).paidFor() }},
	{Title: "USD/H", Right: true, Cell: func(n **Node) string { return price((*n).PricePerHour) }},
	{Title: "USD", Right: true, Cell: func(n **Node) string { return price((*n).Cost) }},
	{Title: "LEFT", Cell: func(n **Node) string { return (*n).left() }},
	{Title: "TYPE", Cell: func(n **Node) string { return orUnknown((*n).InstanceType) }},
	{Title: "CAPACITY", Cell: func(n **Node) string { return orUnknown((*n).CapacityType) }},
	{Title: "ZONE", Cell: func(n **Node) string { return orUnknown((*n).Zone) }},
	{Title: "PODS", Cell: func(n **Node) string { return (*n).Pods.text() }},
	{Title: "POOL", Cell: func(n **Node) string { return orUnknown((*n).NodePool) }},
	{Title: "COMMAND", Cell: func(n **Node) string { return (*n).RemovedBy }},
}

// Text returns the answer as a sentence and a table that fit a width in characters, 0 for unlimited.
func (a *Nodes) Text(width int) string {
	t := a.Total
	text := a.span() + fmt.Sprintf("%s launched, %d removed, %d not launched: %s\n",
		table.Plural(t.Launched, "node"), t.Removed, t.Failed, sum(t.Cost))
	if t.BeforeLog > 0 {
		text += table.Plural(t.BeforeLog, "node") + " launched before the log begins; nodes that no line names are missing\n"
	}
	if t.Unpriced > 0 {
		text += "not in the sum: " + table.Plural(t.Unpriced, "node") + " whose price or time the log does not have\n"
	}
	if len(a.Nodes) == 0 {
		return text
	}
	return table.Wrap(text, width, 2) + "\n" + table.Text(nodeColumns, a.Nodes, width)
}

// Names returns the nodes as kubectl names them.
func (a *Nodes) Names() []string { return namesOf(a.Nodes) }

func namesOf(nodes []*Node) []string {
	var names []string
	for _, n := range nodes {
		if n.Node != "" {
			names = append(names, "node/"+n.Node)
		} else {
			names = append(names, "nodeclaim.karpenter.sh/"+n.NodeClaim)
		}
	}
	return names
}

var commandColumns = []table.Column[*Command]{
	{Title: "TIME", Cell: func(c **Command) string { return (*c).Time.Format(minute) }},
	{Title: "REASON", Cell: func(c **Command) string { return (*c).Reason }},
	{Title: "NODES", Least: 14, Cell: func(c **Command) string { return (*c).nodes() }},
	{Title: "PODS", Right: true, Cell: func(c **Command) string { return strconv.Itoa((*c).Pods) }},
	{Title: "NEW", Right: true, Cell: func(c **Command) string { return strconv.Itoa(max((*c).new, len((*c).Replacements))) }},
	{Title: "SAVES USD/H", Right: true, Cell: func(c **Command) string { return price((*c).SavingPerHour) }},
	{Title: "SAVED USD", Right: true, Cell: func(c **Command) string { return price((*c).Saved) }},
	{Title: "COMMAND", Cell: func(c **Command) string { return orUnknown((*c).ID) }},
	{Title: "ROLLED BACK", Cell: func(c **Command) string { return (*c).Abandoned }},
}

func (c *Command) nodes() string {
	names := c.Nodes
	if len(names) == 0 {
		names = c.NodeClaims
	}
	if len(names) == 0 {
		return unknown
	}
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%s +%d", names[0], len(names)-1)
}

// Text returns the answer as a sentence and a table that fit a width in characters, 0 for unlimited.
func (a *Commands) Text(width int) string {
	back := 0
	for _, c := range a.Commands {
		if c.Abandoned != "" {
			back++
		}
	}
	text := a.span() + fmt.Sprintf("%s, %d rolled back; saved by these until the end: %s\n",
		table.Plural(len(a.Commands), "command"), back, sum(a.Saved))
	if len(a.Commands) == 0 {
		return text
	}
	return table.Wrap(text, width, 2) + "\n" + table.Text(commandColumns, a.Commands, width)
}

// Names returns the IDs of the commands.
func (a *Commands) Names() []string {
	var names []string
	for _, c := range a.Commands {
		names = append(names, "command/"+c.ID)
	}
	return names
}

// columns are those of a table of hours, or of days.
func (a *Hours) columns() []table.Column[*Hour] {
	return []table.Column[*Hour]{
		{Title: "FROM (UTC)", Cell: func(h **Hour) string {
			if *h == &a.Total {
				return "sum"
			}
			return (*h).From.Format("2006-01-02 15:04")
		}},
		{Title: "NODES", Right: true, Cell: func(h **Hour) string { return (*h).mean() }},
		{Title: "NODE HOURS", Right: true, Cell: func(h **Hour) string { return fmt.Sprintf("%.2f", (*h).NodeHours) }},
		{Title: "USD", Right: true, Cell: func(h **Hour) string { return (*h).cost() }},
		{Title: "SAVED USD", Right: true, Cell: func(h **Hour) string { return (*h).Saved.Text(4) }},
		{Title: "LAUNCHED", Right: true, Cell: func(h **Hour) string { return strconv.Itoa((*h).Launched) }},
		{Title: "REMOVED", Right: true, Cell: func(h **Hour) string { return strconv.Itoa((*h).Removed) }},
	}
}

func (h *Hour) cost() string {
	if h.Cost == 0 && h.Unpriced > 0 {
		return unknown
	}
	return h.Cost.Text(4)
}

// mean is the number of nodes, averaged over the part of the time that is in the span.
func (h *Hour) mean() string {
	if h.length <= 0 {
		return "0.0"
	}
	return fmt.Sprintf("%.1f", h.nodes.Seconds()/h.length.Seconds())
}

// Text returns the answer as a sentence and a table that fit a width in characters, 0 for unlimited.
func (a *Hours) Text(width int) string {
	text := a.span()
	if a.Total.Unpriced > 0 {
		text += "nodes whose price the log does not have count as nodes, and cost nothing here\n"
	}
	if len(a.Hours) == 0 {
		return text
	}
	return table.Wrap(text, width, 2) + "\n" + table.Text(a.columns(), append(slices.Clone(a.Hours), &a.Total), width)
}

// Names returns the hours.
func (a *Hours) Names() []string {
	var names []string
	for _, h := range a.Hours {
		names = append(names, h.From.Format(time.RFC3339))
	}
	return names
}
