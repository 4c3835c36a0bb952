package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/plugin/web/view"
)

const mapHeight = 520

// Map draws the cost of the fleet as areas: pools, in them zones, in them instance types by capacity type. A box is
// filled to the part of its price that pods request.
func Map(places []view.Place, width int) *Picture {
	p := &Picture{Width: width, Height: mapHeight, Name: "the cost of the fleet by pool, zone and instance type: area is USD per hour"}
	total := 0.0
	for i := range places {
		total += places[i].Price
	}
	if total <= 0 {
		p.Height = headHeight
		p.Labels = []Label{{Y: 14, Text: "No node has a known price.", Size: textSize, Role: Muted}}
		return p
	}
	p.level(places, area{0, 0, float64(width), mapHeight}, 0)
	p.Legend = capacityKeys(places)
	return p
}

// capacityRole returns the role and pattern of a capacity type.
func capacityRole(kind string) (Role, Pattern) {
	switch kind {
	case "spot":
		return Series2, Hatched
	case "reserved":
		return Series1, Dotted
	}
	return Series0, Solid
}

func capacityKeys(places []view.Place) []Key {
	var keys []Key
	for _, kind := range []string{"on-demand", "spot", "reserved"} {
		nodes := 0
		for i := range places {
			if places[i].CapacityType == kind {
				nodes += places[i].Nodes
			}
		}
		if nodes > 0 {
			role, pattern := capacityRole(kind)
			keys = append(keys, Key{Role: role, Pattern: pattern, Text: kind, Count: nodes})
		}
	}
	return append(keys, Key{Role: Empty, Text: "not requested by pods", Count: -1})
}

// area is a rectangle.
type area struct{ x, y, w, h float64 }

// levels are the words by which places are grouped, the outermost first.
var levels = []func(*view.Place) string{
	func(p *view.Place) string { return cmp.Or(p.Pool, "no pool") },
	func(p *view.Place) string { return cmp.Or(p.Zone, "unknown zone") },
	func(p *view.Place) string { return cmp.Or(p.Type, "unknown type") + "\x00" + p.CapacityType },
}

// bunch is the places with the same words.
type bunch struct {
	name   string
	price  float64
	places []view.Place
}

// level divides an area between the groups of a level, the most expensive first.
func (p *Picture) level(places []view.Place, in area, depth int) {
	var list []bunch
	at := map[string]int{}
	for _, place := range places {
		if place.Price <= 0 {
			continue
		}
		name := levels[depth](&place)
		i, known := at[name]
		if !known {
			i = len(list)
			at[name], list = i, append(list, bunch{name: name})
		}
		list[i].price += place.Price
		list[i].places = append(list[i].places, place)
	}
	slices.SortFunc(list, func(a, b bunch) int { return cmp.Or(cmp.Compare(b.price, a.price), cmp.Compare(a.name, b.name)) })
	prices := make([]float64, len(list))
	for i := range list {
		prices[i] = list[i].price
	}
	for i, inner := range squarify(prices, in) {
		if depth == len(levels)-1 {
			p.place(&list[i].places[0], inner)
			continue
		}
		head := 0.0
		if text := fit(list[i].name, int(inner.w)-6, smallSize); inner.h > 40 && text != "" {
			head = 17
			p.Labels = append(p.Labels, Label{X: round(inner.x) + 2, Y: round(inner.y) + 13, Text: p.priced(text, list[i].price, inner.w),
				Size: smallSize, Bold: depth == 0, Role: Ink})
		}
		p.level(list[i].places, area{inner.x + 2, inner.y + head, max(0, inner.w-4), max(0, inner.h-head-2)}, depth+1)
	}
}

// priced adds the price to a text if there is room.
func (p *Picture) priced(text string, price, width float64) string {
	long := fmt.Sprintf("%s · %.2f USD/h", text, price)
	if textWidth(long, smallSize) > int(width)-6 {
		return text
	}
	return long
}

// place draws the box of a place.
func (p *Picture) place(at *view.Place, in area) {
	role, pattern := capacityRole(at.CapacityType)
	x, y := round(in.x), round(in.y)
	b := Box{X: x, Y: y, W: max(1, round(in.x+in.w)-x-1), H: max(1, round(in.y+in.h)-y-1), Role: role, Pattern: pattern,
		Level: level(1 - at.Waste/at.Price), Row: at.Pool + "|" + at.Zone + "|" + at.Type + "|" + at.CapacityType}
	b.Title = fmt.Sprintf("%s · %s · %s · %s · %s · %.4f USD/h · %.0f%% requested", at.Pool, at.Zone, at.Type, at.CapacityType,
		plural(at.Nodes, "node"), at.Price, 100*(1-at.Waste/at.Price))
	p.Boxes = append(p.Boxes, b)
	if text := fit(at.Type, b.W-8, smallSize); text != "" && b.H > 18 {
		// The text is on a plate, since the box behind it is filled in part, and may have a pattern.
		p.Boxes = append(p.Boxes, Box{X: x + 2, Y: y + 2, W: min(b.W-4, textWidth(text, smallSize)+5), H: 14, Role: Surface, Level: 255})
		p.Labels = append(p.Labels, Label{X: x + 4, Y: y + 13, Text: text, Size: smallSize, Role: Ink})
	}
}

func round(v float64) int { return int(math.Round(v)) }

// squarify divides an area by amounts in descending order into rectangles as square as possible (Bruls, Huizing and van
// Wijk 2000).
func squarify(amounts []float64, in area) []area {
	total := 0.0
	for _, v := range amounts {
		total += v
	}
	var list []area
	for from := 0; from < len(amounts); {
		scale := in.w * in.h / total
		side, to, sum := min(in.w, in.h), from, 0.0
		for to < len(amounts) && (to == from || worst(amounts[from:to+1], (sum+amounts[to])*scale, side, scale) <=
			worst(amounts[from:to], sum*scale, side, scale)) {
			sum += amounts[to]
			to++
		}
		thick := 0.0
		if side > 0 {
			thick = sum * scale / side
		}
		at := 0.0
		for _, v := range amounts[from:to] {
			length := v / sum * side
			if in.w >= in.h {
				list = append(list, area{in.x, in.y + at, thick, length})
			} else {
				list = append(list, area{in.x + at, in.y, length, thick})
			}
			at += length
		}
		if in.w >= in.h {
			in.x, in.w = in.x+thick, in.w-thick
		} else {
			in.y, in.h = in.y+thick, in.h-thick
		}
		total -= sum
		from = to
	}
	return list
}

// worst returns the largest ratio of sides in a row of rectangles.
func worst(amounts []float64, sum, side, scale float64) float64 {
	ratio := 0.0
	for _, v := range amounts {
		v *= scale
		ratio = max(ratio, side*side*v/(sum*sum), sum*sum/(side*side*v))
	}
	return ratio
}
