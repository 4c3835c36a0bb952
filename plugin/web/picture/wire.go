package picture

import (
	"encoding/binary"
	"encoding/json"
	"io"
)

// wireHead is what a wire picture has besides the columns of its boxes.
type wireHead struct {
	Name    string      `json:"name"`
	Width   int         `json:"width"`
	Height  int         `json:"height"`
	Boxes   int         `json:"boxes"`
	Parts   int         `json:"parts"`
	ByGroup bool        `json:"byGroup"`
	Labels  []wireLabel `json:"labels"`
	Legend  []Key       `json:"legend"`
	Groups  []Group     `json:"groups"`
	Roles   []string    `json:"roles"`
	Rows    []string    `json:"rows"`
	Titles  []string    `json:"titles"`
}

type wireLabel struct {
	X      int    `json:"x"`
	Y      int    `json:"y"`
	Text   string `json:"text"`
	Size   int    `json:"size"`
	Bold   bool   `json:"bold"`
	Anchor Anchor `json:"anchor"`
	Role   Role   `json:"role"`
	On     bool   `json:"on"`
}

// WriteWire writes the picture for the page's script: the length of the head (4 bytes), the head as JSON, then columns
// with an entry for each box: x, y, width and height (2 bytes each), role, pattern, level, and the role of the outline
// plus one or 0 (1 byte each), the number of parts (2 bytes); then for each part its share (1 byte) and its group (2
// bytes). Numbers are little-endian. Columns compress several times better than rows.
func (p *Picture) WriteWire(out io.Writer) error {
	head := wireHead{Name: p.Name, Width: p.Width, Height: p.Height, Boxes: len(p.Boxes), ByGroup: p.ByGroup,
		Legend: p.Legend, Groups: p.Groups,
		Labels: []wireLabel{}, Roles: names[:], Rows: []string{}, Titles: []string{}}
	for _, l := range p.Labels {
		head.Labels = append(head.Labels, wireLabel(l))
	}
	var x, y, w, h, counts, role, pattern, level, edge, shares, groups []byte
	two := func(column []byte, v int) []byte { return binary.LittleEndian.AppendUint16(column, uint16(v)) }
	for i := range p.Boxes {
		b := &p.Boxes[i]
		head.Rows, head.Titles = append(head.Rows, b.Row), append(head.Titles, b.Title)
		head.Parts += len(b.Parts)
		x, y, w, h, counts = two(x, b.X), two(y, b.Y), two(w, b.W), two(h, b.H), two(counts, len(b.Parts))
		role, pattern, level = append(role, byte(b.Role)), append(pattern, byte(b.Pattern)), append(level, b.Level)
		outline := byte(0)
		if b.Outline {
			outline = byte(b.Edge) + 1
		}
		edge = append(edge, outline)
		for _, part := range b.Parts {
			shares, groups = append(shares, part.Share), two(groups, part.Group)
		}
	}
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text, x, y, w, h, role,
		pattern, level, edge, counts,
		shares, groups} {
		if _, err := out.Write(part); err != nil {
			return err
		}
	}
	return nil
}
