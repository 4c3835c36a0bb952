package picture

import "fmt"

// Role is the meaning of a color.
type Role uint8

// The roles. Series are for things without an order, Steps for amounts.
const (
	Surface Role = iota
	Panel
	Empty
	Line
	Ink
	Muted
	Accent
	Good
	Warn
	Bad
	Neutral
	Series0
	Series1
	Series2
	Series3
	Series4
	Series5
	Series6
	Series7
	Step0
	Step1
	Step2
	Step3
	Step4
	Roles
)

// series is the number of roles for things without an order, steps of those for amounts.
const (
	series = 8
	steps  = 5
)

// Color is a color in sRGB.
type Color struct{ R, G, B uint8 }

// String returns the color as CSS has it.
func (c Color) String() string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// Palette is a color for each role.
type Palette [Roles]Color

// names are those of the roles in style sheets.
var names = [Roles]string{"surface", "panel", "empty", "line", "ink", "muted", "accent", "good", "warn", "bad", "neutral",
	"series0", "series1", "series2", "series3", "series4", "series5", "series6", "series7", "step0", "step1", "step2", "step3", "step4"}

// String returns the name of the role in style sheets.
func (r Role) String() string { return names[r] }

// Light and Dark are the palettes. The test of the palettes has what they must hold: contrasts, and the distance of the
// series for readers with each kind of color blindness.
var (
	Light = paletteOf("ffffff", "f6f7f9", "e8ebf0", "d5dae2", "1a2230", "566072", "2459c4", "25762f", "a85800", "bf2630", "8791a1",
		"3862c4", "5ca132", "c07280", "a280ef", "482c00", "052482", "774e6d", "586335",
		"6a93d6", "4d7bc9", "3563b0", "234b8c", "13325f")
	Dark = paletteOf("14181f", "1b212a", "252d39", "364152", "e7ebf1", "a3adbc", "82aaff", "7fce86", "f0a848", "ff8078", "7f8a9b",
		"1f73b6", "b4e09f", "fa7ba7", "8d90ff", "efbd24", "7ee2fb", "a95c76", "6b8a3e",
		"4f7dc2", "6b99dc", "8eb5ec", "b1cff6", "d6e6fc")
)

// paletteOf reads a palette from hexadecimal colors in the order of the roles.
func paletteOf(colors ...string) Palette {
	var p Palette
	for i, text := range colors {
		fmt.Sscanf(text, "%02x%02x%02x", &p[i].R, &p[i].G, &p[i].B)
	}
	return p
}

// On returns the color of text on the role: the one of the palette's ink and surface that has more contrast.
func (p *Palette) On(r Role) Color {
	ink, surface := p[Ink], p[Surface]
	if Contrast(ink, p[r]) >= Contrast(surface, p[r]) {
		return ink
	}
	return surface
}

// CSS returns the rules for the roles: --ROLE for the color, .f-ROLE to fill with it, .s-ROLE for an edge, .t-ROLE for
// text and .o-ROLE for text on it. Dark colors apply where the reader prefers them.
func CSS() string {
	variables := func(p *Palette) string {
		text := ""
		for r := range Roles {
			text += fmt.Sprintf("--%v:%v;--on-%v:%v;", r, p[r], r, p.On(r))
		}
		return text
	}
	css := ":root{color-scheme:light dark;" + variables(&Light) + "}\n" +
		"@media (prefers-color-scheme:dark){:root{" + variables(&Dark) + "}}\n"
	for r := range Roles {
		css += fmt.Sprintf(".f-%[1]v{fill:var(--%[1]v)}.s-%[1]v{stroke:var(--%[1]v)}.t-%[1]v{fill:var(--%[1]v)}.o-%[1]v{fill:var(--on-%[1]v)}\n", r)
	}
	return css
}
