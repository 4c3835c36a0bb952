package picture

import "math"

// Contrast returns the ratio of the luminances of two colors, 1 to 21 (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio).
func Contrast(a, b Color) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func (c Color) luminance() float64 {
	l := c.linear()
	return 0.2126*l[0] + 0.7152*l[1] + 0.0722*l[2]
}

// linear returns the parts of the color in linear light, 0 to 1 (IEC 61966-2-1).
func (c Color) linear() [3]float64 {
	var l [3]float64
	for i, v := range [3]uint8{c.R, c.G, c.B} {
		x := float64(v) / 255
		if l[i] = x / 12.92; x > 0.04045 {
			l[i] = math.Pow((x+0.055)/1.055, 2.4)
		}
	}
	return l
}

// lab returns the color in CIE L*a*b* for the white point D65.
func (c Color) lab() (l, a, b float64) {
	rgb := c.linear()
	f := func(t float64) float64 {
		if t > 216.0/24389 {
			return math.Cbrt(t)
		}
		return (24389.0/27*t + 16) / 116
	}
	x := f((0.4124564*rgb[0] + 0.3575761*rgb[1] + 0.1804375*rgb[2]) / 0.95047)
	y := f(0.2126729*rgb[0] + 0.7151522*rgb[1] + 0.0721750*rgb[2])
	z := f((0.0193339*rgb[0] + 0.1191920*rgb[1] + 0.9503041*rgb[2]) / 1.08883)
	return 116*y - 16, 500 * (x - y), 200 * (y - z)
}

// Blindness is a kind of color vision. Its rows are the parts of red, green and blue in linear light (Machado, Oliveira
// and Fernandes 2009, severity 1).
type Blindness [3][3]float64

// The kinds of color vision.
var (
	Protanopia   = Blindness{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}
	Deuteranopia = Blindness{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}
	Tritanopia   = Blindness{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}
)

// See returns the color as a reader with this vision sees it.
func (b Blindness) See(c Color) Color {
	l := c.linear()
	var seen [3]uint8
	for i, row := range b {
		v := min(1, max(0, row[0]*l[0]+row[1]*l[1]+row[2]*l[2]))
		if v <= 0.0031308 {
			v *= 12.92
		} else {
			v = 1.055*math.Pow(v, 1/2.4) - 0.055
		}
		seen[i] = uint8(math.Round(255 * v))
	}
	return Color{seen[0], seen[1], seen[2]}
}

// Distance returns the difference of two colors by CIEDE2000; about 2.3 can just be noticed. The variables are named as
// in Sharma, Wu and Dalal 2005.
func Distance(x, y Color) float64 {
	l1, a1, b1 := x.lab()
	l2, a2, b2 := y.lab()
	cm := math.Pow((math.Hypot(a1, b1)+math.Hypot(a2, b2))/2, 7)
	g := 0.5 * (1 - math.Sqrt(cm/(cm+math.Pow(25, 7))))
	a1, a2 = a1*(1+g), a2*(1+g)
	c1, c2 := math.Hypot(a1, b1), math.Hypot(a2, b2)
	h1, h2 := hue(a1, b1), hue(a2, b2)
	dh, hm := h2-h1, h1+h2
	if c1*c2 == 0 {
		dh = 0
	} else {
		switch {
		case math.Abs(dh) <= 180:
			hm /= 2
		case hm < 360:
			dh, hm = dh-math.Copysign(360, dh), (hm+360)/2
		default:
			dh, hm = dh-math.Copysign(360, dh), (hm-360)/2
		}
	}
	lm, c := (l1+l2)/2, (c1+c2)/2
	cos := func(degrees float64) float64 { return math.Cos(degrees * math.Pi / 180) }
	t := 1 - 0.17*cos(hm-30) + 0.24*cos(2*hm) + 0.32*cos(3*hm+6) - 0.20*cos(4*hm-63)
	sl := 1 + 0.015*(lm-50)*(lm-50)/math.Sqrt(20+(lm-50)*(lm-50))
	sc, sh := 1+0.045*c, 1+0.015*c*t
	c7 := math.Pow(c, 7)
	rt := -2 * math.Sqrt(c7/(c7+math.Pow(25, 7))) * math.Sin(60*math.Exp(-math.Pow((hm-275)/25, 2))*math.Pi/180)
	dl, dc, dH := (l2-l1)/sl, (c2-c1)/sc, 2*math.Sqrt(c1*c2)*math.Sin(dh/2*math.Pi/180)/sh
	return math.Sqrt(dl*dl + dc*dc + dH*dH + rt*dc*dH)
}

// hue returns the angle of a color in degrees, 0 to 360.
func hue(a, b float64) float64 {
	h := math.Atan2(b, a) * 180 / math.Pi
	if h < 0 {
		h += 360
	}
	return h
}
