package picture

import (
	"math"
	"testing"
)

// TestContrast checks each palette against WCAG 2.2: 4.5 for text (1.4.3), and 3 for what must be told from its
// surroundings (1.4.11).
func TestContrast(t *testing.T) {
	for name, p := range map[string]*Palette{"light": &Light, "dark": &Dark} {
		for _, r := range []Role{Ink, Muted, Accent, Good, Warn, Bad} {
			for _, on := range []Role{Surface, Panel} {
				if c := Contrast(p[r], p[on]); c < 4.5 {
					t.Errorf("%s: %v on %v has contrast %.2f, want 4.5", name, r, on, c)
				}
			}
		}
		for r := Good; r < Roles; r++ {
			if c := Contrast(p[r], p[Surface]); c < 3 {
				t.Errorf("%s: %v (%v) on the surface has contrast %.2f, want 3", name, r, p[r], c)
			}
			if c := Contrast(p.On(r), p[r]); c < 4.5 {
				t.Logf("%s: text on %v has contrast %.2f: it needs a plate", name, r, c)
			}
		}
		for r := Step0; r < Step4; r++ {
			if d := Distance(p[r], p[r+1]); d < 7 {
				t.Errorf("%s: %v and the next step differ by %.1f, want 7", name, r, d)
			}
		}
	}
}

// TestColorBlindness checks that all series, and the marks good and bad, differ for readers of each kind.
func TestColorBlindness(t *testing.T) {
	kinds := map[string]*Blindness{"protanopia": &Protanopia, "deuteranopia": &Deuteranopia, "tritanopia": &Tritanopia, "none": nil}
	for name, p := range map[string]*Palette{"light": &Light, "dark": &Dark} {
		for kind, blindness := range kinds {
			see := func(r Role) Color {
				if blindness == nil {
					return p[r]
				}
				return blindness.See(p[r])
			}
			for a := Series0; a <= Series7; a++ {
				for b := Series0; b < a; b++ {
					if d := Distance(see(a), see(b)); d < 12 {
						t.Errorf("%s, %s: %v and %v differ by %.1f, want 12", name, kind, a, b, d)
					}
				}
			}
		}
	}
}

// TestDistance checks the ends of the scale, and that the order does not matter.
func TestDistance(t *testing.T) {
	white, black := Color{255, 255, 255}, Color{}
	if d := Distance(white, black); math.Abs(d-100) > 0.5 {
		t.Errorf("black and white differ by %.2f, want 100", d)
	}
	if d := Distance(Light[Accent], Light[Accent]); d != 0 {
		t.Errorf("a color differs from itself by %v", d)
	}
	if a, b := Distance(Light[Bad], Light[Good]), Distance(Light[Good], Light[Bad]); math.Abs(a-b) > 1e-9 {
		t.Errorf("the distance depends on the order: %v and %v", a, b)
	}
	if c := Contrast(white, black); math.Abs(c-21) > 0.01 {
		t.Errorf("black and white have contrast %.2f, want 21", c)
	}
}
