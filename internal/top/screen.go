package top

import (
	"fmt"
	"strings"
)

// Screen is what one looks at: a fleet, and where one is in it. The zero value is an empty screen of no size; Resize
// and Show give it some. It is not safe for concurrent use.
type Screen struct {
	width, height int
	// all is the fleet as it was shown, fleet what the filter leaves of it, sorted.
	all, fleet *Fleet
	layout     layout
	// problem is why the fleet is not fresh.
	problem string

	order   int
	reverse bool
	filter  string
	// typing: keys go to the filter.
	typing bool
	// waiting: the pods are looked at, not the nodes.
	waiting bool
	// cursor is the chosen line, first the first that is shown.
	cursor, first int
	paint         paint
}

// Resize tells how large the terminal is, in characters.
func (s *Screen) Resize(width, height int) {
	s.width, s.height = width, height
	s.refresh()
}

// Show takes a fleet that was just read. The chosen line stays on its node, if that is still there.
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

// Fail says why there is no newer fleet.
func (s *Screen) Fail(err error) { s.problem = strings.ReplaceAll(err.Error(), "\n", "; ") }

func (s *Screen) chosen() *Node {
	if s.fleet == nil || s.waiting || s.cursor >= len(s.fleet.Nodes) {
		return nil
	}
	return &s.fleet.Nodes[s.cursor]
}

// refresh works out what depends on fleet, filter, order and size.
func (s *Screen) refresh() {
	if s.all == nil {
		return
	}
	s.fleet = s.all.Filter(s.filter)
	Sort(s.fleet.Nodes, orders[s.order].name, s.reverse)
	s.layout = arrange(s.fleet.Nodes, s.width)
	s.move(0)
}

// lines is how many there are to go through, page how many of them fit.
func (s *Screen) lines() int {
	switch {
	case s.fleet == nil:
		return 0
	case s.waiting:
		return len(s.fleet.Waiting)
	}
	return len(s.fleet.Nodes)
}

// chrome is the lines that are always there: three of summary, one empty, the header, one of keys. Where prices have a
// source, the summary has a line more.
const chrome = 6

func (s *Screen) page() int {
	lines := chrome
	if s.all != nil && s.all.PriceSource != "" {
		lines++
	}
	return max(1, s.height-lines)
}

// move moves the chosen line, and what is shown with it.
func (s *Screen) move(by int) {
	s.cursor = max(0, min(s.cursor+by, s.lines()-1))
	s.first = max(0, min(s.first, s.lines()-s.page()))
	s.first = max(min(s.first, s.cursor), s.cursor-s.page()+1)
}

// Press does what a key means. It reports whether one wants to leave.
func (s *Screen) Press(key string) (quit bool) {
	if s.typing {
		s.write(key)
		return key == "ctrl+c"
	}
	switch key {
	case "q", "ctrl+c":
		return true
	case "esc":
		s.filter = ""
		s.refresh()
	case "/":
		s.typing = true
	case "s":
		s.order = (s.order + 1) % len(orders)
		s.refresh()
	case "r":
		s.reverse = !s.reverse
		s.refresh()
	case "tab":
		s.waiting, s.cursor, s.first = !s.waiting, 0, 0
	default:
		s.move(s.steps(key))
	}
	return false
}

// steps is how far a key moves the chosen line.
func (s *Screen) steps(key string) int {
	switch key {
	case "up", "k":
		return -1
	case "down", "j":
		return 1
	case "pgup", "ctrl+b":
		return -s.page()
	case "pgdown", "space", " ", "ctrl+f":
		return s.page()
	case "home", "g":
		return -s.lines()
	case "end", "G":
		return s.lines()
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

// Render is the screen as lines, none wider and no more than there is room for: where there is room for few, the last ones,
// which say where one is.
func (s *Screen) Render() string {
	if s.fleet == nil {
		if s.problem != "" {
			return cut(s.problem, max(s.width, 1))
		}
		return cut("reading the cluster ...", max(s.width, 1))
	}
	var lines []string
	for _, line := range summary(s.all, nil) {
		lines = append(lines, cut(line, s.width))
	}
	lines = append(lines, "")
	if s.waiting {
		lines = append(lines, s.paint.of(title, cut(waitingHeader(nil), s.width)))
	} else {
		lines = append(lines, s.layout.header(s.paint))
	}
	for i := s.first; i < min(s.first+s.page(), s.lines()); i++ {
		lines = append(lines, s.line(i))
	}
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, s.footer())
	return strings.Join(lines[max(0, len(lines)-max(s.height, 1)):], "\n")
}

// line is one line of the table.
func (s *Screen) line(i int) string {
	if i == s.cursor { // colours in colours do not nest
		if s.waiting {
			return s.paint.of(chosen, waitingRow(&s.fleet.Waiting[i], s.width, nil))
		}
		return s.paint.of(chosen, s.layout.row(&s.fleet.Nodes[i], nil))
	}
	if s.waiting {
		return waitingRow(&s.fleet.Waiting[i], s.width, s.paint)
	}
	return s.layout.row(&s.fleet.Nodes[i], s.paint)
}

// footer says where one is, and what keys do.
func (s *Screen) footer() string {
	switch {
	case s.problem != "":
		return s.paint.of(bad, cut("not fresh: "+s.problem, s.width))
	case s.typing:
		return cut("filter: "+s.filter+"▏ enter keeps it, esc drops it", s.width)
	}
	what, arrow := "nodes", "↑"
	if s.waiting {
		what = "waiting"
	}
	if s.reverse {
		arrow = "↓"
	}
	text := fmt.Sprintf("%s %d-%d of %d  by %s %s", what, min(s.first+1, s.lines()), min(s.first+s.page(), s.lines()), s.lines(), orders[s.order].name, arrow)
	if s.filter != "" {
		text += "  filter " + s.filter
	}
	return s.paint.of(faint, cut(text+"   tab pods/nodes  s sort  r reverse  / filter  q quit", s.width))
}
