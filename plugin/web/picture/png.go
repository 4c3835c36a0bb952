package picture

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// pngScale is how many pixels of the image a pixel of the picture has: text stays legible on dense screens.
const pngScale = 2

// mostPixels is the maximum number of pixels of an image, which takes four bytes of memory for each: 256 MiB.
const mostPixels = 1 << 26

// ErrTooLarge means that a picture has more pixels than an image may have.
var ErrTooLarge = errors.New("the picture is too large for a PNG")

// fonts are parsed once. The embedded files are valid.
var fonts = sync.OnceValues(func() ([2]*opentype.Font, error) {
	var list [2]*opentype.Font
	for i, data := range [][]byte{goregular.TTF, gobold.TTF} {
		f, err := opentype.Parse(data)
		if err != nil {
			return list, fmt.Errorf("reading a font: %w", err)
		}
		list[i] = f
	}
	return list, nil
})

// WritePNG writes the picture as a document, see Options, without links. Its height has no bound, and that of an image
// has one: beyond mostPixels, nothing is written and the error is ErrTooLarge.
func (p *Picture) WritePNG(out io.Writer, o Options) error {
	palette := o.Palette
	if palette == nil {
		palette = &Light
	}
	if o.Document {
		p = p.framed()
	}
	width, height := p.Width*pngScale, p.Height*pngScale
	if most := mostPixels / max(1, width); height > most {
		return fmt.Errorf("%w: it is %d pixels high, and at this width an image has at most %d; SVG has no limit", ErrTooLarge, height, most)
	}
	c := &canvas{image: image.NewRGBA(image.Rect(0, 0, width, height)), palette: palette, faces: map[face]font.Face{}}
	c.rect(0, 0, p.Width, p.Height, Surface)
	for i := range p.Boxes {
		c.box(p, &p.Boxes[i])
	}
	for i := range p.Labels {
		if err := c.label(&p.Labels[i]); err != nil {
			return err
		}
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	return encoder.Encode(out, c.image)
}

// canvas paints on an image.
type canvas struct {
	image   *image.RGBA
	palette *Palette
	faces   map[face]font.Face
}

// face is a size and weight of text.
type face struct {
	size int
	bold bool
}

func (c Color) rgba() color.RGBA { return color.RGBA{c.R, c.G, c.B, 255} }

func (c *canvas) rect(x, y, w, h int, r Role) {
	area := image.Rect(x*pngScale, y*pngScale, (x+w)*pngScale, (y+h)*pngScale)
	draw.Draw(c.image, area, image.NewUniform(c.palette[r].rgba()), image.Point{}, draw.Src)
}

func (c *canvas) box(p *Picture, b *Box) {
	y, height := b.filled()
	if b.Level < 255 {
		c.rect(b.X, b.Y, b.W, b.H, Empty)
	}
	c.rect(b.X, y, b.W, height, b.Role)
	if b.W >= partsSide {
		for _, s := range b.strips() {
			switch {
			case p.ByGroup:
				c.rect(b.X, s.y, b.W, max(1, s.height-1), p.Groups[s.group].Role)
			case s.height > 2:
				c.rect(b.X, s.y, b.W, 1, Empty)
			}
		}
	}
	c.pattern(b.X, y, b.W, height, b.Pattern)
	if b.Outline {
		for _, side := range [][4]int{{b.X, b.Y, b.W, 2}, {b.X, b.Y + b.H - 2, b.W, 2}, {b.X, b.Y, 2, b.H}, {b.X + b.W - 2, b.Y, 2, b.H}} {
			c.rect(side[0], side[1], side[2], side[3], b.Edge)
		}
	}
}

// pattern lightens the pixels of a pattern.
func (c *canvas) pattern(x, y, w, h int, kind Pattern) {
	if kind == Solid {
		return
	}
	const period = 5 * pngScale
	area := image.Rect(x*pngScale, y*pngScale, (x+w)*pngScale, (y+h)*pngScale).Intersect(c.image.Rect)
	for py := area.Min.Y; py < area.Max.Y; py++ {
		for px := area.Min.X; px < area.Max.X; px++ {
			up, down := (px+py)%period < pngScale, (px-py+period*100000)%period < pngScale
			dot := px%period < 2*pngScale && py%period < 2*pngScale
			if kind == Hatched && !up || kind == Dotted && !dot || kind == Crossed && !up && !down {
				continue
			}
			at := c.image.RGBAAt(px, py)
			lighter := func(v uint8) uint8 { return uint8((int(v)*2 + 255*3) / 5) }
			c.image.SetRGBA(px, py, color.RGBA{lighter(at.R), lighter(at.G), lighter(at.B), 255})
		}
	}
}

func (c *canvas) label(l *Label) error {
	drawn, err := c.face(face{l.Size, l.Bold})
	if err != nil {
		return err
	}
	ink := c.palette[l.Role]
	if l.On {
		ink = c.palette.On(l.Role)
	}
	d := font.Drawer{Dst: c.image, Src: image.NewUniform(ink.rgba()), Face: drawn}
	at := fixed.I(l.X * pngScale)
	switch l.Anchor {
	case Middle:
		at -= d.MeasureString(l.Text) / 2
	case End:
		at -= d.MeasureString(l.Text)
	}
	d.Dot = fixed.Point26_6{X: at, Y: fixed.I(l.Y * pngScale)}
	d.DrawString(l.Text)
	return nil
}

func (c *canvas) face(of face) (font.Face, error) {
	if known := c.faces[of]; known != nil {
		return known, nil
	}
	list, err := fonts()
	if err != nil {
		return nil, err
	}
	source := list[0]
	if of.bold {
		source = list[1]
	}
	fresh, err := opentype.NewFace(source, &opentype.FaceOptions{Size: float64(of.size * pngScale), DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, fmt.Errorf("reading a font: %w", err)
	}
	c.faces[of] = fresh
	return fresh, nil
}
