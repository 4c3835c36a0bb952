package top

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/karpenter-go/karpenter/plugin/table"
)

// recentSeconds is how old a change of the fleet may be to be listed below the nodes.
const recentSeconds = 3600

// change is a node that was launched recently, or that is being removed.
type change struct {
	node    *Node
	seconds float64
	what    string
}

// changes returns the recent changes of the fleet, the latest ones first.
func (f *Fleet) changes() []change {
	var list []change
	for i := range f.Nodes {
		n := &f.Nodes[i]
		switch {
		case n.Leaving > 0:
			list = append(list, change{n, n.Leaving, "being removed"})
		case n.NodePool != "" && n.Age <= recentSeconds:
			list = append(list, change{n, n.Age, "launched"})
		}
	}
	slices.SortStableFunc(list, func(a, b change) int { return cmp.Compare(a.seconds, b.seconds) })
	return list
}

// changeLine returns the line of a change.
func changeLine(ago, what, node, kind, pool, usd string) string {
	return fmt.Sprintf("%7s  %-13s  %-40s  %-16s  %-16s  %s", ago, what, table.CutMiddle(node, 40), kind, table.CutMiddle(pool, 16), usd)
}

// block is a table below the nodes: its title, and the lines of its rows.
type block struct {
	title string
	rows  int
	row   func(i int) string
}

// below returns the tables that fill the rows of a tall terminal which the nodes leave free: pending pods, pools, recent
// changes. Each one that does not fit says how many rows are missing; one that has no place for a row is omitted.
func (s *Screen) below(free int) []string {
	if s.view != nodesView || s.fleet == nil {
		return nil
	}
	changes := s.fleet.changes()
	var lines []string
	for _, b := range []block{
		{table.Cut(waitingHeader(s.width, nil), s.width), len(s.fleet.Waiting),
			func(i int) string { return waitingRow(&s.fleet.Waiting[i], s.width, s.paint) }},
		{s.poolLayout.header(nil), len(s.pools), func(i int) string { return s.poolLayout.row(&s.pools[i], s.paint) }},
		{table.Cut(changeLine("AGO", "CHANGE", "NODE", "TYPE", "POOL", "USD/H"), s.width), len(changes), func(i int) string {
			n := changes[i].node
			return table.Cut(changeLine(age(changes[i].seconds), changes[i].what, n.Name, n.InstanceType, n.NodePool,
				price(n.PricePerHour, n.Unpriced)), s.width)
		}},
	} {
		place := free - len(lines) - 2 // an empty line and the title
		if b.rows == 0 || place < min(b.rows, 2) {
			continue
		}
		lines = append(lines, "", s.paint.of(title, b.title))
		shown := b.rows
		if shown > place {
			shown = place - 1
		}
		for i := range shown {
			lines = append(lines, b.row(i))
		}
		if shown < b.rows {
			lines = append(lines, s.paint.of(faint, table.Cut(fmt.Sprintf("and %d more", b.rows-shown), s.width)))
		}
	}
	return lines
}
