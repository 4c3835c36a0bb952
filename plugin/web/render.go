package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/karpenter-go/karpenter/plugin/web/markup"
	"github.com/karpenter-go/karpenter/plugin/web/picture"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

var templates = parsed()

// parsed reads the templates, whose functions draw what package picture has escaped.
func parsed() *markup.Templates {
	t, err := markup.Parse(assets, "assets/*.html", map[string]any{
		"patterns": func() markup.HTML { return markup.HTML(picture.Patterns()) },
		"picture": func(p *picture.Picture) (markup.HTML, error) {
			var out bytes.Buffer
			err := p.WriteSVG(&out, picture.Options{})
			return markup.HTML(out.String()), err
		},
		"entries": func(p *picture.Picture) []entry { return legendOf("", nil, p) },
		"style": func() (markup.CSS, error) {
			text, err := assets.ReadFile("assets/page.css")
			return markup.CSS(picture.CSS() + string(text)), err
		},
	})
	if err != nil {
		panic(err) // a fault of the files that are part of the program
	}
	return t
}

// render writes a page. A template that fails has written nothing.
func render(w http.ResponseWriter, name string, data any) {
	var out bytes.Buffer
	if err := templates.Execute(&out, name, data); err != nil {
		http.Error(w, "writing the page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	out.WriteTo(w)
}

// pageRows is the number of rows of a table in a page.
const pageRows = 100

// inlineBoxes is the maximum number of boxes of a picture in a page for readers without the script.
const inlineBoxes = 600

// page is the data of the template.
type page struct {
	Name, Source, At, PriceSource string
	// Stale says since when the reading is not fresh, FollowURL turns following on or off.
	Stale, FollowURL     string
	CostNames            []string
	Number               int
	Live                 bool
	Nav                  []link
	Cost                 []fact
	Incomplete, Problems []string
	*shown
	Inline          markup.HTML
	InlineNarrow    markup.HTML
	Legend          []entry
	ViewURL         string
	Exports         []link
	Table           *tablePage
	Refresh, Follow bool
	Hidden          []field
}

// link is a link with its text.
type link struct {
	Text, URL string
	Current   bool
}

// field is a hidden field of a form: the rest of the state.
type field struct{ Name, Value string }

// tablePage is a page of the rows of a sheet.
type tablePage struct {
	Columns        []head
	Rows           []line
	From, To, Of   int
	Previous, Next string
}

type head struct {
	Title, URL, Sorted string
	Number             bool
}

type line struct {
	ID, URL  string
	Selected bool
	First    bool
	Cells    []cell
}

type cell struct {
	// Title is that of the column, which narrow screens show beside the text.
	Text, Title string
	// Long texts are broken into lines.
	Number, Long bool
}

// longText is the number of bytes from which on a text of a table is broken into lines.
const longText = 36

// with returns the address of the view with other values of parameters; "" removes one.
func with(name string, q url.Values, pairs ...string) string {
	next := url.Values{}
	for key, values := range q {
		if key != "format" && key != "w" && key != "download" {
			next[key] = values
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if next.Del(pairs[i]); pairs[i+1] != "" {
			next.Set(pairs[i], pairs[i+1])
		}
	}
	if len(next) == 0 {
		return "/" + name
	}
	return "/" + name + "?" + next.Encode()
}

// page writes a view as a page.
func (s *Server) page(w http.ResponseWriter, r *http.Request, name string, at *reading, v *shown) {
	q := r.URL.Query()
	p := &page{Name: name, Source: s.options.Source, Live: s.options.Live, shown: v, Refresh: v.Waiting != "",
		Follow: s.options.Live && q.Get("follow") != "0"}
	if name != "" && v.Problem == "" || at != nil {
		p.CostNames = costNames()
	}
	p.FollowURL = with(name, q, "follow", map[bool]string{true: "0"}[p.Follow])
	s.mu.Lock()
	p.Stale = s.stale()
	s.mu.Unlock()
	for _, other := range order {
		p.Nav = append(p.Nav, link{views[other].title, with(other, url.Values{}, "follow", q.Get("follow")), other == name})
	}
	if at != nil {
		p.fromReading(r.Context(), at, 100*time.Millisecond)
	}
	for key := range q {
		known := key == "format" || key == "page"
		for _, c := range v.Controls {
			known = known || c.Name == key || c.Resets == key
		}
		if !known {
			p.Hidden = append(p.Hidden, field{key, q.Get(key)})
		}
	}
	if v.Sheet != nil {
		p.Table = tableOf(name, q, v)
		for _, format := range formats {
			p.Exports = append(p.Exports, link{Text: format, URL: with(name, q, "format", format, "page", "")})
		}
		if err := p.inline(name, q, v); err != nil {
			http.Error(w, "drawing the view: "+err.Error(), http.StatusInternalServerError)
			return
		}
	}
	render(w, "page", p)
}

// costNames are the names of the figures of the cost, for a page that does not have them yet.
func costNames() []string {
	var names []string
	for _, f := range costFacts(&view.Cost{}) {
		names = append(names, f.Name)
	}
	return names
}

// entry is an entry of the legend. URL filters by it, or ends that if it is Current; empty for an entry that cannot.
type entry struct {
	picture.Key
	URL     string
	Current bool
}

// legendOf returns the legend of a picture, with links for a view of the name.
func legendOf(name string, q url.Values, p *picture.Picture) []entry {
	var list []entry
	for _, key := range p.Legend {
		e := entry{Key: key}
		switch {
		case name != "fleet":
		case key.Workload != "":
			e.Current = q.Get("q") == key.Workload
			e.URL = with(name, q, "q", map[bool]string{false: key.Workload}[e.Current], "page", "")
		case key.Class != "":
			e.Current = q.Get("class") == key.Class
			e.URL = with(name, q, "class", map[bool]string{false: key.Class}[e.Current], "page", "")
		}
		list = append(list, e)
	}
	return list
}

// fromReading sets what a page says of its reading. A page does not wait for the cost, which the script asks for.
func (p *page) fromReading(ctx context.Context, at *reading, patience time.Duration) {
	p.Number, p.PriceSource = at.number, at.PriceSource()
	if now := at.At(); now.Unix() > 0 {
		p.At = now.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	if cost, err, ready := at.cost.ask(ctx, patience); ready && err == nil {
		p.Cost = costFacts(&cost)
	}
	p.Incomplete = at.Incomplete()
	for i, err := range at.Problems() {
		if i == 5 {
			p.Problems = append(p.Problems, fmt.Sprintf("and %d more", len(at.Problems())-i))
			break
		}
		p.Problems = append(p.Problems, err.Error())
	}
}

// inline draws the picture in the page, unless the script paints it from its own address and it is large.
func (p *page) inline(name string, q url.Values, v *shown) error {
	if v.Picture == nil {
		return nil
	}
	p.Legend = legendOf(name, q, v.Picture)
	if v.Canvas {
		p.ViewURL = with(name, q, "format", "view", "page", "")
	}
	if v.Canvas && len(v.Picture.Boxes) > inlineBoxes {
		return nil
	}
	options := picture.Options{}
	if v.Link == "node" || v.Link == "pool" {
		options.Link = func(row string) string { return with(name, q, v.Link, row, "pod", "") }
	}
	for _, of := range []struct {
		picture *picture.Picture
		to      *markup.HTML
	}{{v.Picture, &p.Inline}, {v.Narrow, &p.InlineNarrow}} {
		if of.picture == nil {
			continue
		}
		var out bytes.Buffer
		if err := of.picture.WriteSVG(&out, options); err != nil {
			return err
		}
		*of.to = markup.HTML(out.String()) // package picture escapes every name
	}
	return nil
}

// tableOf returns the page of the table that the query names.
func tableOf(name string, q url.Values, v *shown) *tablePage {
	s := v.Sheet
	at, _ := strconv.Atoi(q.Get("page"))
	pages := max(1, (len(s.Rows)+pageRows-1)/pageRows)
	at = min(max(at, 1), pages)
	from := (at - 1) * pageRows
	t := &tablePage{From: min(from+1, len(s.Rows)), To: min(from+pageRows, len(s.Rows)), Of: len(s.Rows)}
	if at > 1 {
		t.Previous = with(name, q, "page", strconv.Itoa(at-1))
	}
	if at < pages {
		t.Next = with(name, q, "page", strconv.Itoa(at+1))
	}
	for _, c := range s.Columns {
		t.Columns = append(t.Columns, headOf(name, q, c))
	}
	for i, row := range s.Rows[from:t.To] {
		l := lineOf(s, row)
		l.First, l.Selected = i == 0, v.Link != "" && (q.Get(v.Link) == row.ID || v.Chosen == row.ID)
		if v.Link != "" {
			l.URL = with(name, q, v.Link, row.ID, "pod", "")
		}
		t.Rows = append(t.Rows, l)
	}
	return t
}

// lineOf returns a row as a page has it, without a link.
func lineOf(s *view.Sheet, row view.Row) line {
	l := line{ID: row.ID}
	for j, c := range row.Cells {
		l.Cells = append(l.Cells, cell{c.Text, s.Columns[j].Title, s.Columns[j].Number, len(c.Text) > longText})
	}
	return l
}

// insetOf returns a sheet as a table beside that of the view. The first cell of a row leads to url of its ID.
func insetOf(title string, s *view.Sheet, url func(id string) string) *inset {
	t := &inset{Title: title, Columns: s.Columns}
	for _, row := range s.Rows {
		l := lineOf(s, row)
		l.URL = url(row.ID)
		t.Rows = append(t.Rows, l)
	}
	return t
}

// headOf returns the head of a column, whose link sorts by it, or the other way round.
func headOf(name string, q url.Values, c view.Column) head {
	h := head{Title: c.Title, Number: c.Number}
	reverse := ""
	if q.Get("sort") == c.Key {
		h.Sorted = map[bool]string{true: "descending", false: "ascending"}[c.Number != (q.Get("desc") == "1")]
		if q.Get("desc") != "1" {
			reverse = "1"
		}
	}
	h.URL = with(name, q, "sort", c.Key, "desc", reverse, "page", "")
	return h
}
