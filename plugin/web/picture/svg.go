package picture

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Options selects what a writer adds to a picture.
type Options struct {
	// Palette is that of the colors; nil means Light. A page whose style sheet has the rules of CSS overrides it.
	Palette *Palette
	// Document adds a surface, a margin, the name and the legend: a file that stands alone.
	Document bool
	// Link returns the address of a row; nil for pictures without links.
	Link func(row string) string
}

// partsSide is the side of a box in pixels from which on its parts are drawn.
const partsSide = 24

const (
	margin       = 16
	legendHeight = 20
)

// WriteSVG writes the picture. Names are escaped. Part of a page, it is hidden from screen readers, which have the
// table.
func (p *Picture) WriteSVG(out io.Writer, o Options) error {
	w := &svg{out: bufio.NewWriter(out), palette: o.Palette, link: o.Link}
	if w.palette == nil {
		w.palette = &Light
	}
	if o.Document {
		p = p.framed()
		w.text(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
		w.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%s" `,
			p.Width, p.Height, clean(p.Name))
	} else {
		w.printf(`<svg viewBox="0 0 %d %d" aria-hidden="true" focusable="false" class="picture" `, p.Width, p.Height)
	}
	w.text(`font-family="system-ui, sans-serif">` + "\n")
	if o.Document {
		w.text(patterns + "\n")
	}
	for i := range p.Boxes {
		w.box(p, &p.Boxes[i])
	}
	for i := range p.Labels {
		w.label(&p.Labels[i])
	}
	w.text("</svg>\n")
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}

// framed returns the picture with a surface, its name above and its legend below.
func (p *Picture) framed() *Picture {
	framed := *p
	legend := p.legendRows(p.Width)
	framed.Width, framed.Height = p.Width+2*margin, p.Height+3*margin+titleSize+len(legend)*legendHeight
	framed.Boxes = []Box{{W: framed.Width, H: framed.Height, Role: Surface, Level: 255}}
	top := 2*margin + titleSize
	for _, b := range p.Boxes {
		b.X, b.Y = b.X+margin, b.Y+top
		framed.Boxes = append(framed.Boxes, b)
	}
	framed.Labels = []Label{{X: margin, Y: margin + titleSize - 2, Text: fit(p.Name, p.Width, titleSize), Size: titleSize,
		Bold: true, Role: Ink}}
	for _, l := range p.Labels {
		l.X, l.Y = l.X+margin, l.Y+top
		framed.Labels = append(framed.Labels, l)
	}
	for i, row := range legend {
		for _, e := range row {
			y := top + p.Height + margin/2 + i*legendHeight
			framed.Boxes = append(framed.Boxes, Box{X: margin + e.x, Y: y, W: 12, H: 12, Role: e.Role, Pattern: e.Pattern, Level: 255})
			framed.Labels = append(framed.Labels, Label{X: margin + e.x + 18, Y: y + 10, Text: e.text, Size: smallSize, Role: Ink})
		}
	}
	return &framed
}

// entry is an entry of the legend at its place.
type entry struct {
	Key
	x    int
	text string
}

// legendRows breaks the legend into rows of a width.
func (p *Picture) legendRows(width int) [][]entry {
	var rows [][]entry
	x := width
	for _, k := range p.Legend {
		text := k.Text
		if k.Count >= 0 {
			text += fmt.Sprintf(" (%d)", k.Count)
		}
		text = fit(text, width-20, smallSize)
		need := 18 + textWidth(text, smallSize) + 16
		if x+need > width {
			rows, x = append(rows, nil), 0
		}
		last := len(rows) - 1
		rows[last] = append(rows[last], entry{k, x, text})
		x += need
	}
	return rows
}

// svg writes elements. It keeps the first error.
type svg struct {
	out     *bufio.Writer
	palette *Palette
	link    func(string) string
	err     error
}

func (w *svg) text(text string) {
	if w.err == nil {
		_, w.err = w.out.WriteString(text)
	}
}

func (w *svg) printf(format string, arguments ...any) { w.text(fmt.Sprintf(format, arguments...)) }

// Patterns returns an element with the definitions of what is drawn over colors, for a page with pictures that are no
// documents.
func Patterns() string {
	return `<svg class="unseen" width="1" height="1" aria-hidden="true" focusable="false">` + patterns + "</svg>"
}

// patterns are the definitions of what is drawn over colors.
const patterns = `<defs><pattern id="p1" width="5" height="5" patternUnits="userSpaceOnUse"><path d="M-1 6L6 -1M-1 1L1 -1M4 6L6 4" stroke="#fff" stroke-opacity=".6"/></pattern>` +
	`<pattern id="p2" width="5" height="5" patternUnits="userSpaceOnUse"><circle cx="2.5" cy="2.5" r="1" fill="#fff" fill-opacity=".7"/></pattern>` +
	`<pattern id="p3" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 0L6 6M6 0L0 6" stroke="#fff" stroke-opacity=".6"/></pattern></defs>`

// filled is the part of the box that has its color.
func (b *Box) filled() (y, height int) {
	height = (b.H*int(b.Level) + 127) / 255
	if b.Level > 0 {
		height = max(1, height)
	}
	return b.Y + b.H - height, height
}

func (w *svg) box(p *Picture, b *Box) {
	close := ""
	if b.Row != "" && w.link != nil {
		w.printf(`<a href="%s" tabindex="-1">`, clean(w.link(b.Row)))
		close = "</a>"
	} else if b.Title != "" {
		w.text("<g>")
		close = "</g>"
	}
	if b.Title != "" {
		w.printf("<title>%s</title>", clean(b.Title))
	}
	y, height := b.filled()
	if b.Level < 255 {
		w.rect(b.X, b.Y, b.W, b.H, Empty)
	}
	if height > 0 {
		w.rect(b.X, y, b.W, height, b.Role)
		w.parts(p, b)
		if b.Pattern != Solid {
			w.printf(`<rect x="%d" y="%d" width="%d" height="%d" fill="url(#p%d)"/>`, b.X, y, b.W, height, b.Pattern)
		}
	}
	if b.Outline {
		w.printf(`<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="%v" class="s-%v" stroke-width="2"/>`, b.X+1, b.Y+1,
			max(1, b.W-2), max(1, b.H-2), w.palette[b.Edge], b.Edge)
	}
	w.text(close + "\n")
}

// parts writes the pods of a box that is large enough.
func (w *svg) parts(p *Picture, b *Box) {
	if b.W < partsSide {
		return
	}
	for _, s := range b.strips() {
		switch {
		case p.ByGroup:
			w.rect(b.X, s.y, b.W, max(1, s.height-1), p.Groups[s.group].Role)
		case s.height > 2:
			w.rect(b.X, s.y, b.W, 1, Empty)
		}
	}
}

// strip is a part of a box at its place.
type strip struct{ y, height, group int }

// strips returns the parts from below, without those that are outside of the box.
func (b *Box) strips() []strip {
	var list []strip
	sum := 0
	for _, part := range b.Parts {
		from := b.Y + b.H - sum*b.H/255
		sum += int(part.Share)
		to := max(b.Y, b.Y+b.H-sum*b.H/255)
		if to < from {
			list = append(list, strip{to, from - to, part.Group})
		}
	}
	return list
}

func (w *svg) rect(x, y, width, height int, r Role) {
	w.printf(`<rect x="%d" y="%d" width="%d" height="%d" fill="%v" class="f-%v"/>`, x, y, width, height, w.palette[r], r)
}

func (w *svg) label(l *Label) {
	color, class := w.palette[l.Role], "t-"
	if l.On {
		color, class = w.palette.On(l.Role), "o-"
	}
	w.printf(`<text x="%d" y="%d" font-size="%d" fill="%v" class="%s%v"`, l.X, l.Y, l.Size, color, class, l.Role)
	if l.Bold {
		w.text(` font-weight="600"`)
	}
	switch l.Anchor {
	case Middle:
		w.text(` text-anchor="middle"`)
	case End:
		w.text(` text-anchor="end"`)
	}
	w.text(">" + clean(l.Text) + "</text>\n")
}

// clean returns the text as XML has it in elements and attributes. Characters that XML does not have are replaced
// (https://www.w3.org/TR/xml/#charsets).
func clean(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&quot;")
		case r == '\'':
			b.WriteString("&#39;")
		case r < ' ' || r == 0xFFFE || r == 0xFFFF || r >= 0xD800 && r <= 0xDFFF:
			b.WriteRune('\uFFFD')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
