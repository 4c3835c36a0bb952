package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// The measures of a fleet, in pixels.
const (
	headHeight  = 22
	sectionGap  = 10
	leastSide   = 5
	mostSide    = 84
	tightSide   = 12 // boxes smaller than this are a pixel apart
	fleetHeight = 560
)

// Fleet draws each node as a square whose area is its allocatable cpu, in sections by pool, filled from below to the
// larger share that pods request of cpu and memory. The fleet is in the order of view.Fleet.Normalize.
func Fleet(f *view.Fleet, mode Mode, width int) *Picture {
	p := &Picture{Width: width, Name: fmt.Sprintf("%s, each as large as its cpu and filled to what pods request, colored by %s",
		plural(len(f.Nodes), "node"), mode.Title())}
	look := lookOf(f, mode)
	sections := sectionsOf(f)
	unit := p.unit(sections, fleetHeight)
	y := 0
	for _, s := range sections {
		y = p.section(s, y, unit, func(n *view.Node, side int) Box { return look.box(n, side) })
	}
	p.Height = max(y-sectionGap, headHeight)
	p.Legend, p.ByGroup = look.legend(), mode == Workload
	p.groups(f)
	return p
}

// coloredGroups is how many workloads have a color of their own, those with most pods.
const coloredGroups = series - 1

// groups names the workloads that parts of boxes belong to. The legend of a picture by group lists those with a color.
func (p *Picture) groups(f *view.Fleet) {
	ranks := make([]int, len(f.Workloads))
	for i := range ranks {
		ranks[i] = i
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(f.Workloads[b].Pods, f.Workloads[a].Pods) })
	p.Groups = make([]Group, len(f.Workloads))
	others := 0
	for rank, i := range ranks {
		w := &f.Workloads[i]
		if p.Groups[i] = (Group{w.Key(), Neutral}); rank >= coloredGroups {
			others += w.Pods
			continue
		}
		p.Groups[i].Role = Series0 + Role(rank)
		if p.ByGroup {
			p.Legend = append(p.Legend, Key{Role: p.Groups[i].Role, Text: w.Key(), Count: w.Pods, Workload: w.Key()})
		}
	}
	if p.ByGroup && others > 0 {
		p.Legend = append(p.Legend, Key{Role: Neutral, Text: "pods of other workloads", Count: others})
	}
}

// section is the nodes of a pool: the largest first, and of one size the fullest.
type section struct {
	pool, title string
	nodes       []*view.Node
}

func sectionsOf(f *view.Fleet) []section {
	var list []section
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if i == 0 || f.Nodes[i-1].Pool != n.Pool {
			list = append(list, section{pool: cmp.Or(n.Pool, "no pool")})
		}
		s := &list[len(list)-1]
		s.nodes = append(s.nodes, n)
	}
	for i := range list {
		s := &list[i]
		price, month := 0.0, ""
		for _, n := range s.nodes {
			price += n.Price
		}
		if price > 0 {
			month = fmt.Sprintf(" · %.2f USD/h", price)
		}
		s.title = s.pool + " · " + plural(len(s.nodes), "node") + month
		slices.SortStableFunc(s.nodes, func(a, b *view.Node) int {
			return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(b.Share(), a.Share()))
		})
	}
	return list
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// size returns the size of a node in cores; that of a small one if it is unknown.
func size(n *view.Node) float64 {
	if n.CPU <= 0 {
		return 2
	}
	return float64(n.CPU) / 1000
}

func side(n *view.Node, unit float64) int {
	return min(max(int(unit*math.Sqrt(size(n))), leastSide), mostSide)
}

// unit returns the side of a node with one core: the largest with which all sections fit the height.
func (p *Picture) unit(sections []section, height int) float64 {
	low, high, largest := 0.5, 48.0, 1.0
	for _, s := range sections {
		for _, n := range s.nodes {
			largest = max(largest, size(n))
		}
	}
	high = min(high, mostSide/math.Sqrt(largest))
	for range 24 {
		unit, y := (low+high)/2, 0
		for _, s := range sections {
			y = flow(s, p.Width, y, unit, func(*view.Node, int, int, int) {})
		}
		if y > height {
			high = unit
		} else {
			low = unit
		}
	}
	return low
}

// flow places the nodes of a section in lines below its head, and returns where the next section begins.
func flow(s section, width, y int, unit float64, place func(n *view.Node, x, y, side int)) int {
	x, tall := 0, 0
	y += headHeight
	for _, n := range s.nodes {
		side := side(n, unit)
		gap := 3
		if side < tightSide {
			gap = 1
		}
		if x > 0 && x+side > width {
			x, y, tall = 0, y+tall, 0
		}
		place(n, x, y, side)
		x, tall = x+side+gap, max(tall, side+gap)
	}
	return y + tall + sectionGap
}

// section draws a section, and returns where the next one begins.
func (p *Picture) section(s section, y int, unit float64, box func(*view.Node, int) Box) int {
	p.Labels = append(p.Labels, Label{X: 0, Y: y + 14, Text: fit(s.title, p.Width, textSize), Size: textSize, Bold: true, Role: Ink})
	return flow(s, p.Width, y, unit, func(n *view.Node, x, y, side int) {
		b := box(n, side)
		b.X, b.Y, b.W, b.H = x, y, side, side
		p.Boxes = append(p.Boxes, b)
	})
}

// box returns the box of a node without its place.
func (l *look) box(n *view.Node, _ int) Box {
	if n.Other {
		return Box{Row: n.Name, Title: titleOf(n)}
	}
	c := l.class(n)
	b := Box{Role: l.keys[c].Role, Pattern: l.keys[c].Pattern, Level: level(n.Share()), Row: n.Name, Title: titleOf(n)}
	if n.State == "not ready" || n.State == "blocked" || n.Share() > 1 {
		b.Outline, b.Edge = true, Bad
	}
	for _, pod := range n.Pods {
		b.Parts = append(b.Parts, Part{pod.Workload, uint8(min(255, math.Round(pod.Share*255)))})
	}
	return b
}

// level returns a share in 255ths; the least of a share above 0 is visible.
func level(share float64) uint8 {
	if share <= 0 {
		return 0
	}
	return uint8(min(255, max(6, math.Round(share*255))))
}

// titleOf returns what is known of a node, in a line.
func titleOf(n *view.Node) string {
	words := []string{n.Name}
	for _, word := range []string{n.Pool, n.Type, n.Zone, n.CapacityType} {
		if word != "" {
			words = append(words, word)
		}
	}
	if n.State != "ready" && n.State != "" {
		words = append(words, n.State)
	}
	words = append(words, fmt.Sprintf("cpu %.0f%%", n.CPUShare*100), fmt.Sprintf("memory %.0f%%", n.MemoryShare*100),
		plural(len(n.Pods), "pod"))
	if n.Price > 0 {
		words = append(words, fmt.Sprintf("%.4f USD/h", n.Price))
	}
	if n.Code != notManaged {
		words = append(words, reasonOf(n.Code).text)
	}
	return strings.Join(words, " · ")
}
