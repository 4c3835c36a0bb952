package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
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
	title string
	// order is the name by which Sort sorts by the column.
	order string
	// right means right-aligned, for numbers.
	right bool
	cell  func(*T) string
	// narrow is the cell where the whole one leaves no space for other columns; nil for none.
	narrow func(*T) string
	role   func(*T) role
}

// columns are those of nodes, the most important ones first. The last ones are omitted first if there is not enough
// space.
var columns = []column[Node]{
	{title: "NODE", order: "name", cell: func(n *Node) string { return n.Name }},
	{title: "STATE", order: "state", cell: func(n *Node) string { return n.State }, role: func(n *Node) role { return stateRole(n.State) }},
	{title: "CPU", order: "cpu", cell: func(n *Node) string { return bar(n.CPU) }, narrow: func(n *Node) string { return percent(n.CPU) },
		role: func(n *Node) role { return level(n.CPU) }},
	{title: "MEMORY", order: "memory", cell: func(n *Node) string { return bar(n.Memory) },
		narrow: func(n *Node) string { return percent(n.Memory) }, role: func(n *Node) role { return level(n.Memory) }},
	{title: "USD/H", order: "price", right: true, cell: func(n *Node) string { return price(n.PricePerHour) }},
	{title: "TYPE", order: "type", cell: func(n *Node) string { return n.InstanceType }},
	{title: "POOL", order: "pool", cell: func(n *Node) string { return n.NodePool },
		narrow: func(n *Node) string { return cutMiddle(n.NodePool, narrowPool) }},
	{title: "PODS", order: "pods", right: true, cell: func(n *Node) string { return places(n) }},
	{title: "CAPACITY", cell: func(n *Node) string { return n.CapacityType }},
	{title: "ZONE", order: "zone", cell: func(n *Node) string { return n.Zone }},
	{title: "AGE", order: "age", right: true, cell: func(n *Node) string { return age(n.Age) }},
}

// bar returns a share as ten blocks and a percentage.
func bar(share float64) string {
	blocks := min(10, max(0, int(share*10+0.5)))
	return strings.Repeat("█", blocks) + strings.Repeat("░", 10-blocks) + " " + percent(share)
}

func percent(share float64) string { return fmt.Sprintf("%3.0f%%", share*100) }

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
	case StateNotReady:
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
)

func places(n *Node) string {
	if n.Places == 0 {
		return strconv.Itoa(n.Pods)
	}
	return strconv.Itoa(n.Pods) + "/" + strconv.Itoa(n.Places)
}

func price(usd float64) string {
	if usd == 0 {
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

// layout holds the columns of a table and their widths. The first column holds names, which may be shortened.
type layout[T any] struct {
	columns []column[T]
	widths  []int
}

// longestName is the length to which names are shortened before columns are omitted, and shortestName the length to
// which they are shortened while there are other columns.
const longestName, shortestName = 24, 4

// arrange computes the layout of rows for a width in characters, 0 for unlimited.
func arrange[T any](columns []column[T], rows []T, room int) layout[T] {
	l := layout[T]{columns: slices.Clone(columns)}
	l.measure(rows)
	if room > 0 {
		l.squeeze(rows, room)
	}
	return l
}

// measure sets each width to that of the longest cell.
func (l *layout[T]) measure(rows []T) {
	l.widths = make([]int, len(l.columns))
	for c := range l.columns {
		l.widths[c] = utf8.RuneCountInString(l.columns[c].title)
		for i := range rows {
			l.widths[c] = max(l.widths[c], utf8.RuneCountInString(l.columns[c].cell(&rows[i])))
		}
	}
}

// squeeze shortens names, then narrows columns, then omits some, then shortens names further, until the rest fits.
// Names get what is left.
func (l *layout[T]) squeeze(rows []T, room int) {
	name := l.widths[0]
	shorten := func(least int) bool {
		l.widths[0] = min(name, max(least, room-(l.width()-l.widths[0])))
		return l.width() <= room
	}
	if shorten(longestName) {
		return
	}
	for c := range l.columns {
		if narrow := l.columns[c].narrow; narrow != nil {
			l.columns[c].cell = narrow
		}
	}
	l.measure(rows)
	for !shorten(longestName) && len(l.columns) > most {
		l.drop()
	}
	for !shorten(shortestName) && len(l.columns) > 1 {
		l.drop()
	}
	if len(l.columns) == 1 {
		l.widths[0] = min(l.widths[0], room)
	}
}

// most is the number of columns beside which names are shortened below longestName.
const most = 3

// drop omits the last column.
func (l *layout[T]) drop() {
	last := len(l.columns) - 1
	l.columns, l.widths = l.columns[:last], l.widths[:last]
}

func (l *layout[T]) width() int {
	sum := 2 * (len(l.widths) - 1)
	for _, w := range l.widths {
		sum += w
	}
	return sum
}

// shows reports whether the column by which the order sorts has a place.
func (l *layout[T]) shows(order string) bool {
	return slices.ContainsFunc(l.columns, func(c column[T]) bool { return c.order == order })
}

// header returns the line of titles.
func (l *layout[T]) header(p paint) string {
	var b strings.Builder
	for c := range l.columns {
		l.write(&b, c, l.columns[c].title, title, p)
	}
	return strings.TrimRight(b.String(), " ")
}

// row returns the line of a row.
func (l *layout[T]) row(of *T, p paint) string {
	var b strings.Builder
	for c := range l.columns {
		col, r := &l.columns[c], plain
		if col.role != nil {
			r = col.role(of)
		}
		l.write(&b, c, col.cell(of), r, p)
	}
	return strings.TrimRight(b.String(), " ")
}

func (l *layout[T]) write(b *strings.Builder, c int, text string, r role, p paint) {
	if c > 0 {
		b.WriteString("  ")
	}
	text = cutMiddle(text, l.widths[c])
	blank := strings.Repeat(" ", l.widths[c]-utf8.RuneCountInString(text))
	if l.columns[c].right {
		b.WriteString(blank)
	}
	b.WriteString(p.of(r, text))
	if !l.columns[c].right {
		b.WriteString(blank)
	}
}

// cutMiddle returns a name shortened to the width. Generated names differ at their ends, so the middle is left out.
func cutMiddle(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	if width < 3 {
		return cut(text, width)
	}
	end := width / 2
	return string(runes[:width-end-1]) + "…" + string(runes[len(runes)-end:])
}

// cut returns a text truncated to the width, with a sign that marks the truncation.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	return string([]rune(text)[:width-1]) + "…"
}
