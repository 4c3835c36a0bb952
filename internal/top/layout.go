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

// column is a column of the table of nodes.
type column struct {
	title string
	// right means right-aligned, for numbers.
	right bool
	// rank determines which column is omitted first if there is not enough space: the one with the highest rank.
	// Those with rank 0 are only omitted if they do not fit next to names of shortestName.
	rank int
	cell func(*Node) string
	role func(*Node) role
}

var columns = []column{
	{title: "NODE", cell: func(n *Node) string { return n.Name }},
	{title: "POOL", rank: 5, cell: func(n *Node) string { return n.NodePool }},
	{title: "TYPE", rank: 2, cell: func(n *Node) string { return n.InstanceType }},
	{title: "ZONE", rank: 6, cell: func(n *Node) string { return n.Zone }},
	{title: "CAPACITY", rank: 7, cell: func(n *Node) string { return n.CapacityType }},
	{title: "CPU", cell: func(n *Node) string { return bar(n.CPU) }, role: func(n *Node) role { return level(n.CPU) }},
	{title: "MEMORY", rank: 1, cell: func(n *Node) string { return bar(n.Memory) }, role: func(n *Node) role { return level(n.Memory) }},
	{title: "PODS", right: true, rank: 4, cell: func(n *Node) string { return places(n) }},
	{title: "USD/H", right: true, rank: 3, cell: func(n *Node) string { return price(n.PricePerHour) }},
	{title: "AGE", right: true, rank: 8, cell: func(n *Node) string { return age(n.Age) }},
	{title: "STATE", cell: func(n *Node) string { return n.State }, role: func(n *Node) role { return stateRole(n.State) }},
}

// bar returns a share as ten blocks and a percentage.
func bar(share float64) string {
	blocks := min(10, max(0, int(share*10+0.5)))
	return fmt.Sprintf("%s%s %3.0f%%", strings.Repeat("█", blocks), strings.Repeat("░", 10-blocks), share*100)
}

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

// layout holds the columns and their widths.
type layout struct {
	columns []column
	widths  []int
}

// longestName is the length to which names of nodes are truncated on a narrow screen.
const longestName = 24

// arrange computes the layout of nodes for a width in characters, 0 for unlimited.
func arrange(nodes []Node, room int) layout {
	l := layout{columns: slices.Clone(columns)}
	l.widths = make([]int, len(l.columns))
	for c := range l.columns {
		l.widths[c] = utf8.RuneCountInString(l.columns[c].title)
		for i := range nodes {
			l.widths[c] = max(l.widths[c], utf8.RuneCountInString(l.columns[c].cell(&nodes[i])))
		}
	}
	if room > 0 {
		l.squeeze(room)
	}
	return l
}

// shortestName is the minimum length of truncated names while there are other columns.
const shortestName = 4

// squeeze shortens names, then omits columns, until the rest fits. Finally it shortens names further.
func (l *layout) squeeze(room int) {
	if beyond := l.width() - room; beyond > 0 {
		l.widths[0] = min(l.widths[0], max(longestName, l.widths[0]-beyond))
	}
	for l.width() > room {
		worst := 0
		for c := range l.columns {
			if l.columns[c].rank > l.columns[worst].rank {
				worst = c
			}
		}
		if worst == 0 {
			break
		}
		l.columns, l.widths = slices.Delete(l.columns, worst, worst+1), slices.Delete(l.widths, worst, worst+1)
	}
	for name := l.widths[0]; ; l.columns, l.widths = slices.Delete(l.columns, 1, 2), slices.Delete(l.widths, 1, 2) {
		l.widths[0] = min(name, max(shortestName, room-(l.width()-l.widths[0])))
		if len(l.columns) == 1 {
			l.widths[0] = min(l.widths[0], room)
		}
		if l.width() <= room {
			return
		}
	}
}

func (l *layout) width() int {
	sum := 2 * (len(l.widths) - 1)
	for _, w := range l.widths {
		sum += w
	}
	return sum
}

// header returns the line of titles.
func (l *layout) header(p paint) string {
	var b strings.Builder
	for c, col := range l.columns {
		l.write(&b, c, col.title, title, p)
	}
	return strings.TrimRight(b.String(), " ")
}

// row returns the line of a node.
func (l *layout) row(n *Node, p paint) string {
	var b strings.Builder
	for c, col := range l.columns {
		r := plain
		if col.role != nil {
			r = col.role(n)
		}
		l.write(&b, c, col.cell(n), r, p)
	}
	return strings.TrimRight(b.String(), " ")
}

func (l *layout) write(b *strings.Builder, c int, text string, r role, p paint) {
	if c > 0 {
		b.WriteString("  ")
	}
	text = cut(text, l.widths[c])
	blank := strings.Repeat(" ", l.widths[c]-utf8.RuneCountInString(text))
	if l.columns[c].right {
		b.WriteString(blank)
	}
	b.WriteString(p.of(r, text))
	if !l.columns[c].right {
		b.WriteString(blank)
	}
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
