package top

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/karpenter-go/karpenter/plugin/table"
)

// Subject is a row that can be explained.
type Subject struct {
	// Kind is node (or a claim without a node), pod or pool.
	Kind string
	// Name is NAMESPACE/NAME for pods.
	Name string
}

func (s Subject) String() string { return s.Kind + " " + s.Name }

// page is a text in place of the table, with the lines from first on. A page of a subject has no text until its
// explanation arrives.
type page struct {
	title   string
	subject Subject
	text    string
	lines   []string
	first   int
}

// helpText describes the keys.
const helpText = `Keys of the table

  up, down, j, k         move by a row
  page up, page down     move by a page (also space)
  home, end, g, G        move to the first or the last row
  enter                  explain the row: a node, a pending pod or a pool
  tab                    switch between nodes, pending pods, pools and cost
  s                      sort by the next column
  r                      reverse the order
  /                      show only rows that contain a text; enter keeps the filter
  esc                    remove the filter
  ?                      show this page
  q                      quit

Keys of this page and of explanations: the same keys move; enter, esc and q return to the table.`

// Explain sets the text of the page about a subject, unless the user has left the page.
func (s *Screen) Explain(of Subject, text string) {
	if s.page == nil || s.page.subject != of {
		return
	}
	s.page.text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return ' '
		}
		return r
	}, text)
	s.fold()
}

// open shows a page.
func (s *Screen) open(p page) {
	s.page = &p
	s.fold()
}

// fold breaks the text of the page into lines that fit.
func (s *Screen) fold() {
	if s.page == nil {
		return
	}
	s.page.lines = strings.Split(strings.TrimRight(table.Wrap(s.page.text, s.width, 2), "\n"), "\n")
	s.scroll(0)
}

// subject returns the selected row.
func (s *Screen) subject() (Subject, bool) {
	switch {
	case s.cursor >= s.lines():
		return Subject{}, false
	case s.view == waitingView:
		return Subject{"pod", s.fleet.Waiting[s.cursor].Pod}, true
	case s.view == poolsView:
		name := s.pools[s.cursor].name
		return Subject{"pool", name}, name != ""
	case s.view == billView:
		return Subject{}, false
	}
	return Subject{"node", s.fleet.Nodes[s.cursor].Name}, true
}

// pressOnPage handles a key while a page is open.
func (s *Screen) pressOnPage(key string) Request {
	switch key {
	case "ctrl+c":
		return Request{Quit: true}
	case "q", "esc", "enter", "backspace", "left":
		s.page = nil
	default:
		s.scroll(s.steps(key, s.pageRows(), len(s.page.lines)))
	}
	return Request{}
}

// scroll moves the visible part of the page.
func (s *Screen) scroll(by int) {
	s.page.first = max(0, min(s.page.first+by, len(s.page.lines)-s.pageRows()))
}

// pageRows is the number of lines of the page that fit on the screen, between a title, an empty line and the keys.
func (s *Screen) pageRows() int { return max(1, s.height-chrome) }

func (s *Screen) renderPage() string {
	p := s.page
	lines := []string{s.paint.of(title, table.Cut(p.title, s.width)), ""}
	last := min(p.first+s.pageRows(), len(p.lines))
	for _, line := range p.lines[p.first:last] {
		lines = append(lines, table.Cut(line, s.width))
	}
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	keys := fmt.Sprintf("lines %d-%d of %d  enter, esc or q: back", p.first+1, last, len(p.lines))
	lines = append(lines, s.paint.of(faint, table.Cut(keys, s.width)))
	return strings.Join(lines[max(0, len(lines)-max(s.height, 1)):], "\n")
}
