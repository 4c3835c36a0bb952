package offline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/plugin/table"
)

// This file prints the answer as text. Equal nodes share a line, pods with the same reasons a paragraph.

// usage is the requested share of a node's CPU and memory, 0 to 1.
type usage struct{ cpu, memory float64 }

func usageOf(requests, allocatable []quantity.Amount) usage {
	share := func(name string) float64 {
		has := amountOf(allocatable, name)
		if has <= 0 {
			return 0
		}
		return float64(amountOf(requests, name)) / float64(has)
	}
	return usage{share("cpu"), share("memory")}
}

func amountOf(list []quantity.Amount, name string) int64 {
	for _, a := range list {
		if a.Name == name {
			return a.Value
		}
	}
	return 0
}

// singleNodes is the maximum number of new nodes that are printed on a line each.
const singleNodes = 40

// nodeLine is a group of new nodes that share a line.
type nodeLine struct {
	NewNode
	count, pods, flexible int
}

func (l *nodeLine) title() string {
	if l.count > 1 {
		return fmt.Sprintf("%d nodes", l.count)
	}
	return l.Name
}

// mean returns the mean of a sum over the nodes of the line.
func (l *nodeLine) mean(sum float64) float64 { return sum / float64(l.count) }

func (a *LaunchAnswer) lines() []nodeLine {
	var lines []nodeLine
	for _, n := range a.Nodes {
		at := -1
		if len(a.Nodes) > singleNodes {
			at = slices.IndexFunc(lines, func(l nodeLine) bool {
				return l.NodePool == n.NodePool && l.InstanceType == n.InstanceType && l.Zone == n.Zone && l.CapacityType == n.CapacityType &&
					maps.Equal(l.Labels, n.Labels)
			})
		}
		if at < 0 {
			at = len(lines)
			lines = append(lines, nodeLine{NewNode: n, flexible: len(n.InstanceTypes)})
			lines[at].used = usage{}
		}
		l := &lines[at]
		l.count++
		l.pods += len(n.Pods)
		l.used.cpu += n.used.cpu
		l.used.memory += n.used.memory
		l.flexible = min(l.flexible, len(n.InstanceTypes))
	}
	return lines
}

// Text returns the new nodes as a table, and the pods that no node takes with their reasons. Tables fit a width in
// characters, 0 for unlimited; other lines have any width.
func (a *LaunchAnswer) Text(width int) string {
	var b strings.Builder
	if len(a.Nodes) > 0 {
		b.WriteString(table.Text(a.nodeColumns(), a.lines(), width) + "\n")
	}
	if len(a.ExistingNodes) > 0 {
		b.WriteString(table.Text(existingColumns, a.ExistingNodes, width) + "\n")
	}
	a.writeUnschedulable(&b)
	a.writeRoom(&b, width)
	a.writeSummary(&b)
	return b.String()
}

type nodeColumn = table.Column[nodeLine]

// newColumns are those of new nodes, the most important ones first.
var newColumns = []nodeColumn{
	{Title: "NEW NODE", Least: 16, Cell: (*nodeLine).title},
	{Title: "POOL", Cell: func(l *nodeLine) string { return l.NodePool },
		Narrow: func(l *nodeLine) string { return table.CutMiddle(l.NodePool, narrowPool) }},
	{Title: "TYPE", Cell: func(l *nodeLine) string { return l.InstanceType }},
	{Title: "ZONE", Cell: func(l *nodeLine) string { return l.Zone }},
	{Title: "CAPACITY", Cell: func(l *nodeLine) string { return l.CapacityType }},
	{Title: "USD/HOUR", NarrowTitle: "USD/H", Cell: func(l *nodeLine) string { return fmt.Sprintf("%.4f", l.PricePerHour) }},
	{Title: "PODS", Cell: func(l *nodeLine) string { return strconv.Itoa(l.pods) }},
	{Title: "CPU", Cell: func(l *nodeLine) string { return table.Bar(l.mean(l.used.cpu)) },
		Narrow: func(l *nodeLine) string { return table.Percent(l.mean(l.used.cpu)) }},
	{Title: "MEMORY", Cell: func(l *nodeLine) string { return table.Bar(l.mean(l.used.memory)) },
		Narrow: func(l *nodeLine) string { return table.Percent(l.mean(l.used.memory)) }},
	{Title: "OTHER TYPES", NarrowTitle: "OTHER", Cell: func(l *nodeLine) string { return strconv.Itoa(l.flexible - 1) }},
}

// narrowPool is the length to which names of pools are shortened on a narrow terminal. Names of new nodes contain them.
const narrowPool = 10

// nodeColumns returns the columns of new nodes. Labels have one only if some were chosen.
func (a *LaunchAnswer) nodeColumns() []nodeColumn {
	if !slices.ContainsFunc(a.Nodes, func(n NewNode) bool { return len(n.Labels) > 0 }) {
		return newColumns
	}
	labels := nodeColumn{Title: "LABELS CHOSEN", Cell: func(l *nodeLine) string { return chosen(l.Labels) }}
	return append(slices.Clone(newColumns), labels)
}

var existingColumns = []table.Column[ExistingNode]{
	{Title: "NODE", Cell: func(n *ExistingNode) string { return n.Name }},
	{Title: "PODS", Cell: func(n *ExistingNode) string { return strconv.Itoa(len(n.Pods)) + onItsWay(n.InFlight) }},
}

// writeUnschedulable lists pods, grouped by their reasons.
func (a *LaunchAnswer) writeUnschedulable(b *strings.Builder) {
	for i := 0; i < len(a.Unschedulable); {
		n := 1
		for i+n < len(a.Unschedulable) && slices.Equal(a.Unschedulable[i+n].Reasons, a.Unschedulable[i].Reasons) {
			n++
		}
		name := a.Unschedulable[i].Pod
		if n > 1 {
			name = fmt.Sprintf("%s and %d more", name, n-1)
		}
		fmt.Fprintf(b, "UNSCHEDULABLE %s\n", name)
		for _, reason := range a.Unschedulable[i].Reasons {
			if reason.NodePool != "" {
				fmt.Fprintf(b, "  pool %s: %s\n", reason.NodePool, reason.Message)
			} else {
				fmt.Fprintf(b, "  %s\n", reason.Message)
			}
		}
		i += n
	}
	if len(a.Unschedulable) > 0 {
		b.WriteByte('\n')
	}
}

func (a *LaunchAnswer) writeSummary(b *strings.Builder) {
	flying := ""
	if a.Pods.InFlight > 0 {
		flying = fmt.Sprintf(" %d on nodes that are being launched,", a.Pods.InFlight)
	}
	fmt.Fprintf(b, "%s: %d on %s, %d on existing nodes,%s %d unschedulable\n",
		plural(a.Pods.Total, "pod"), a.Pods.New, plural(len(a.Nodes), "new node"), a.Pods.Existing-a.Pods.InFlight, flying, a.Pods.Unschedulable)
	defer func() {
		a.writeBuffers(b)
		a.writeOverlays(b)
		a.writePriceRules(b)
		a.writeQuotas(b)
		b.WriteString(pricesAre(a.PriceSource) + incomplete(a.Incomplete))
	}()
	if len(a.Nodes) == 0 {
		return
	}
	var flexible []int
	for i := range a.Nodes {
		flexible = append(flexible, len(a.Nodes[i].InstanceTypes))
	}
	slices.Sort(flexible)
	fmt.Fprintf(b, "price %.4f USD per hour, cost %.4f including per-node overhead; %s to choose from per node (median)\n",
		a.PricePerHour, a.CostPerHour, plural(flexible[len(flexible)/2], "type"))
	switch gap := 100 * (1 - a.LowerBoundCostPerHour/a.CostPerHour); {
	case a.LowerBoundCostPerHour <= 0:
	case gap < 0.05:
		fmt.Fprintf(b, "no plan costs less\n")
	default:
		fmt.Fprintf(b, "lower bound %.4f: at most %.1f%% could be saved\n", a.LowerBoundCostPerHour, gap)
	}
	for _, s := range a.SpotShares {
		fmt.Fprintf(b, "of the spot capacity of pool %s, %s in %s has %d%%; the pool allows %d%% (max-spot-share)\n",
			s.NodePool, s.InstanceType, s.Zone, s.Percent, s.MaxPercent)
	}
	if a.Preferences != nil {
		fmt.Fprintf(b, "preferences of pods cost %s more, %.4f USD per hour (--preference-policy=Ignore)\n",
			plural(a.Preferences.Nodes, "node"), a.Preferences.CostPerHour)
	}
}

// pricesAre returns the line about the source of prices; empty for invented prices.
func pricesAre(source string) string {
	if source == "" {
		return ""
	}
	return "prices: " + source + "\n"
}

func onItsWay(inFlight bool) string {
	if inFlight {
		return " (being launched)"
	}
	return ""
}

// chosen lists labels as kubectl does, - for none.
func chosen(labels map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, key+"="+labels[key])
	}
	return cmp.Or(strings.Join(list, ","), "-")
}

// plural returns a number of things: "1 node", "2 nodes".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// didYouMean completes an error about a name that is similar to a known one.
func didYouMean(name string, known []string) string {
	if meant := explain.Nearest(name, known); meant != "" {
		return "; did you mean " + meant + "?"
	}
	return ""
}
