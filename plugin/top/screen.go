package top

import (
	"fmt"
	"strings"

	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/table"
)

// view is what the table of the screen shows. The key tab goes from one to the next.
type view uint8

const (
	nodesView view = iota
	waitingView
	poolsView
	billView
	views
)

func (v view) String() string { return [...]string{"nodes", "waiting", "pools", "cost"}[v] }

// Screen is the visible state: a fleet, and the position in it. The zero value is an empty screen without a size.
// Resize and Show set them. It is not safe for concurrent use.
type Screen struct {
	width, height int
	// all is the fleet as it was passed to Show. fleet is its filtered and sorted part.
	all, fleet *Fleet
	pools      []poolTotal
	layout     layout[Node]
	poolLayout layout[poolTotal]
	billLayout table.Layout[bill.Row]
	// problem is why the fleet is outdated.
	problem string

	order   int
	reverse bool
	filter  string
	// typing means that keys edit the filter.
	typing bool
	view   view
	// cursor is the selected line, and first the first visible line.
	cursor, first int
	// page is shown in place of the table; nil for none.
	page  *page
	paint paint
}

// Request is what a key asks of the program.
type Request struct {
	Quit bool
	// Explain is the row to explain; nil for none.
	Explain *Subject
}

// Resize sets the size of the terminal, in characters.
func (s *Screen) Resize(width, height int) {
	s.width, s.height = width, height
	s.refresh()
	s.fold()
}

// Show sets a new fleet. The selection stays on its node, if the node still exists.
func (s *Screen) Show(f *Fleet) {
	before := ""
	if n := s.chosen(); n != nil {
		before = n.Name
	}
	s.all, s.problem = f, ""
	s.refresh()
	if before == "" {
		return
	}
	for i := range s.fleet.Nodes {
		if s.fleet.Nodes[i].Name == before {
			s.move(i - s.cursor)
			return
		}
	}
}

// Fail sets the reason why there is no newer fleet.
func (s *Screen) Fail(err error) { s.problem = strings.ReplaceAll(err.Error(), "\n", "; ") }

func (s *Screen) chosen() *Node {
	if s.fleet == nil || s.view != nodesView || s.cursor >= len(s.fleet.Nodes) {
		return nil
	}
	return &s.fleet.Nodes[s.cursor]
}

// refresh computes what depends on fleet, filter, order and size.
func (s *Screen) refresh() {
	if s.all == nil {
		return
	}
	s.fleet = s.all.Filter(s.filter)
	Sort(s.fleet.Nodes, orders[s.order].name, s.reverse)
	s.pools = s.fleet.totals()
	s.layout, s.poolLayout = arrange(columns, s.fleet.Nodes, s.width), arrange(poolColumns, s.pools, s.width)
	if b := s.fleet.Bill; b != nil {
		s.billLayout = table.Arrange(b.Columns(), b.Rows, s.width)
	}
	s.move(0)
}

// lines returns the number of lines, and page how many of them fit on the screen.
func (s *Screen) lines() int {
	switch {
	case s.fleet == nil:
		return 0
	case s.view == waitingView:
		return len(s.fleet.Waiting)
	case s.view == poolsView:
		return len(s.pools)
	case s.view == billView:
		return len(s.fleet.Bill.Rows)
	}
	return len(s.fleet.Nodes)
}

// chrome is the number of fixed lines: one empty, the header, one for keys. The summary is above them.
const chrome = 3

// head returns the lines above the table, which count what its rows do.
func (s *Screen) head() []string {
	if s.view == billView {
		return summary(s.fleet.billed(), nil)
	}
	return summary(s.fleet, nil)
}

func (s *Screen) rows() int {
	lines := chrome
	if s.fleet != nil {
		lines += len(s.head())
	}
	return max(1, s.height-lines)
}

// move moves the selection, and scrolls if necessary.
func (s *Screen) move(by int) {
	s.cursor = max(0, min(s.cursor+by, s.lines()-1))
	s.first = max(0, min(s.first, s.lines()-s.rows()))
	s.first = max(min(s.first, s.cursor), s.cursor-s.rows()+1)
}

// Press handles a key, and returns what the program has to do.
func (s *Screen) Press(key string) Request {
	switch {
	case s.typing:
		s.write(key)
		return Request{Quit: key == "ctrl+c"}
	case s.page != nil:
		return s.pressOnPage(key)
	}
	switch key {
	case "q", "ctrl+c":
		return Request{Quit: true}
	case "enter":
		return s.request()
	case "?":
		s.open(page{title: "Help", text: helpText})
	case "esc":
		s.filter = ""
		s.refresh()
	case "/":
		s.typing = true
	case "s":
		s.order = s.nextOrder()
		s.refresh()
	case "r":
		s.reverse = !s.reverse
		s.refresh()
	case "tab":
		s.turn()
	default:
		s.move(s.steps(key, s.rows(), s.lines()))
	}
	return Request{}
}

// turn goes to the next table, which has a bill only if the fleet has.
func (s *Screen) turn() {
	s.view, s.cursor, s.first = (s.view+1)%views, 0, 0
	if s.view == billView && (s.fleet == nil || s.fleet.Bill == nil) {
		s.view = nodesView
	}
}

// request opens the page of the selected row, and asks for its text.
func (s *Screen) request() Request {
	of, ok := s.subject()
	if !ok {
		return Request{}
	}
	s.open(page{title: of.String(), subject: of, text: "reading the cluster ..."})
	return Request{Explain: &of}
}

// nextOrder returns the next order whose column is displayed.
func (s *Screen) nextOrder() int {
	for i := 1; i < len(orders); i++ {
		if next := (s.order + i) % len(orders); s.layout.shows(orders[next].name) {
			return next
		}
	}
	return s.order
}

// steps returns how far a key moves in a list of lines, of which the rows are visible.
func (s *Screen) steps(key string, rows, lines int) int {
	switch key {
	case "up", "k":
		return -1
	case "down", "j":
		return 1
	case "pgup", "ctrl+b":
		return -rows
	case "pgdown", "space", " ", "ctrl+f":
		return rows
	case "home", "g":
		return -lines
	case "end", "G":
		return lines
	}
	return 0
}

// write edits the filter.
func (s *Screen) write(key string) {
	switch {
	case key == "enter":
		s.typing = false
	case key == "esc":
		s.typing, s.filter = false, ""
	case key == "backspace":
		if runes := []rune(s.filter); len(runes) > 0 {
			s.filter = string(runes[:len(runes)-1])
		}
	case key == "space":
		s.filter += " "
	case len([]rune(key)) == 1:
		s.filter += key
	}
	s.refresh()
}

// Render returns the screen as lines that fit its width and height. If only few lines fit, they are the last ones,
// which show the position.
func (s *Screen) Render() string {
	if s.page != nil {
		return s.renderPage()
	}
	if s.fleet == nil {
		if s.problem != "" {
			return table.Cut(s.problem, max(s.width, 1))
		}
		return table.Cut("reading the cluster ...", max(s.width, 1))
	}
	var lines []string
	for _, line := range s.head() {
		lines = append(lines, table.Cut(line, s.width))
	}
	lines = append(lines, "", s.header())
	if none := s.fleet.none(); none != "" && s.lines() == 0 {
		lines = append(lines, table.Cut(none, s.width))
	}
	for i := s.first; i < min(s.first+s.rows(), s.lines()); i++ {
		lines = append(lines, s.line(i))
	}
	lines = append(lines, s.below(s.height-1-len(lines))...)
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, s.footer())
	return strings.Join(lines[max(0, len(lines)-max(s.height, 1)):], "\n")
}

// header returns the titles of the table.
func (s *Screen) header() string {
	switch s.view {
	case waitingView:
		return s.paint.of(title, table.Cut(waitingHeader(s.width, nil), s.width))
	case poolsView:
		return s.poolLayout.header(s.paint)
	case billView:
		return s.paint.of(title, s.billLayout.Header(nil))
	}
	return s.layout.header(s.paint)
}

// line returns one line of the table.
func (s *Screen) line(i int) string {
	if i == s.cursor { // colors cannot be nested
		return s.paint.of(chosen, s.row(i, nil))
	}
	return s.row(i, s.paint)
}

func (s *Screen) row(i int, p paint) string {
	switch s.view {
	case waitingView:
		return waitingRow(&s.fleet.Waiting[i], s.width, p)
	case poolsView:
		return s.poolLayout.row(&s.pools[i], p)
	case billView:
		return s.billLayout.Row(&s.fleet.Bill.Rows[i], nil)
	}
	return s.layout.row(&s.fleet.Nodes[i], p)
}

// footer returns the position and the help for keys.
func (s *Screen) footer() string {
	switch {
	case s.problem != "":
		return s.paint.of(bad, table.Cut("not fresh: "+s.problem, s.width))
	case s.typing:
		return table.Cut("filter: "+s.filter+"▏ enter keeps it, esc drops it", s.width)
	}
	arrow := "↑"
	if s.reverse {
		arrow = "↓"
	}
	text := fmt.Sprintf("%s %d-%d of %d", s.view, min(s.first+1, s.lines()), min(s.first+s.rows(), s.lines()), s.lines())
	if s.view == nodesView {
		text += "  by " + orders[s.order].name + " " + arrow
	}
	if s.filter != "" {
		text += "  filter " + s.filter
	}
	return s.paint.of(faint, table.Cut(text+"  enter explain  tab view  s sort  / filter  ? help  q quit", s.width))
}
