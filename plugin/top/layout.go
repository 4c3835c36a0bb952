package top

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/karpenter-go/karpenter/plugin/table"
)

// role is the meaning of a piece of text, which determines its color.
type role uint8

const (
	plain role = iota
	title
	good
	busy
	full
	bad
	faint
	chosen
)

// paint colors a text. Nil does not change it.
type paint func(role, string) string

func (p paint) of(r role, text string) string {
	if p == nil || r == plain {
		return text
	}
	return p(r, text)
}

// column is a column of a table of rows of type T.
type column[T any] struct {
	table.Column[T]
	// order is the name by which Sort sorts by the column.
	order string
	role  func(*T) role
}

// columns are those of nodes, the most important ones first. The last ones are omitted first if there is not enough
// space.
var columns = []column[Node]{
	{Column: nodeColumn{Title: "NODE", Cell: func(n *Node) string { return n.Name }}, order: "name"},
	{Column: nodeColumn{Title: "STATE", Cell: func(n *Node) string { return n.State }}, order: "state",
		role: func(n *Node) role { return stateRole(n.State) }},
	{Column: nodeColumn{Title: "CPU", Cell: func(n *Node) string { return table.Bar(n.CPU) },
		Narrow: func(n *Node) string { return table.Percent(n.CPU) }}, order: "cpu", role: func(n *Node) role { return level(n.CPU) }},
	{Column: nodeColumn{Title: "MEMORY", Cell: func(n *Node) string { return table.Bar(n.Memory) },
		Narrow: func(n *Node) string { return table.Percent(n.Memory) }}, order: "memory", role: func(n *Node) role { return level(n.Memory) }},
	{Column: nodeColumn{Title: "USD/H", Right: true, Cell: func(n *Node) string { return price(n.PricePerHour, n.Unpriced) }}, order: "price"},
	{Column: nodeColumn{Title: "TYPE", Cell: func(n *Node) string { return n.InstanceType }}, order: "type"},
	{Column: nodeColumn{Title: "POOL", Cell: func(n *Node) string { return n.NodePool },
		Narrow: func(n *Node) string { return table.CutMiddle(n.NodePool, narrowPool) }}, order: "pool"},
	{Column: nodeColumn{Title: "PODS", Right: true, Cell: places}, order: "pods"},
	{Column: nodeColumn{Title: "CAPACITY", Cell: func(n *Node) string { return n.CapacityType }}},
	{Column: nodeColumn{Title: "ZONE", Cell: func(n *Node) string { return n.Zone }}, order: "zone"},
	{Column: nodeColumn{Title: "AGE", Right: true, Cell: func(n *Node) string { return age(n.Age) }}, order: "age"},
}

type nodeColumn = table.Column[Node]

// level returns the role of a share: low use, good use, nearly full, or overcommitted.
func level(share float64) role {
	switch {
	case share > 1:
		return bad
	case share >= 0.9:
		return full
	case share >= 0.5:
		return good
	}
	return busy
}

func stateRole(state string) role {
	switch state {
	case StateReady:
		return plain
	case StateNotReady, StateBlocked:
		return bad
	}
	return busy
}

// These are the states of nodes.
const (
	StateLaunching = "launching"
	StateLaunched  = "launched"
	StateReady     = "ready"
	StateNotReady  = "not ready"
	StateCordoned  = "cordoned"
	StateDisrupted = "disrupted"
	StateLeaving   = "leaving"
	StateBlocked   = "blocked"
)

func places(n *Node) string {
	if n.Places == 0 {
		return strconv.Itoa(n.Pods)
	}
	return strconv.Itoa(n.Pods) + "/" + strconv.Itoa(n.Places)
}

// price formats a price, or that none is known.
func price(usd float64, unpriced bool) string {
	switch {
	case usd == 0 && unpriced:
		return unknown
	case usd == 0:
		return "-"
	}
	return strconv.FormatFloat(usd, 'f', 4, 64)
}

// age formats a duration in its two most significant units, as kubectl does.
func age(seconds float64) string {
	d := time.Duration(seconds) * time.Second
	days, hours, minutes := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60
	switch {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, hours)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", hours, minutes)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", minutes, int(d.Seconds())%60)
	}
	return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
}

// narrowPool is the length to which names of pools are shortened in the table of nodes.
const narrowPool = 16

// layout is that of a table with colors.
type layout[T any] struct {
	table.Layout[T]
	columns []column[T]
}

// arrange computes the layout of rows for a width in characters, 0 for unlimited.
func arrange[T any](columns []column[T], rows []T, width int) layout[T] {
	plain := make([]table.Column[T], len(columns))
	for i := range columns {
		plain[i] = columns[i].Column
	}
	return layout[T]{table.Arrange(plain, rows, width), columns}
}

// shows reports whether the column by which the order sorts has a place.
func (l *layout[T]) shows(order string) bool {
	return slices.ContainsFunc(l.columns[:l.Columns()], func(c column[T]) bool { return c.order == order })
}

// header returns the line of titles.
func (l *layout[T]) header(p paint) string {
	return l.Header(func(_ int, text string) string { return p.of(title, text) })
}

// row returns the line of a row.
func (l *layout[T]) row(of *T, p paint) string {
	return l.Row(of, func(c int, text string) string {
		if l.columns[c].role == nil {
			return text
		}
		return p.of(l.columns[c].role(of), text)
	})
}
