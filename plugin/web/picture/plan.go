package picture

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/karpenter-go/karpenter/plugin/web/view"
)

const (
	planGap    = 28
	planNarrow = 700 // narrower pictures have the fleets one above the other
)

// Plan draws the fleet of today, and beside it the one after a number of steps. A node has the same place in both: a
// removed one is an empty outline, an added one has an outline of its own.
func Plan(plan *view.Plan, step, width int) *Picture {
	half := (width - planGap) / 2
	stacked := width < planNarrow
	if stacked {
		half = width
	}
	all := sectionsOf(plan.Fleet)
	addedLast(plan, all)
	measure := &Picture{Width: half}
	unit := measure.unit(all, fleetHeight-80)
	p := &Picture{Width: width, Name: fmt.Sprintf("the fleet of today, and after %d of %s", step, plural(len(plan.Steps), "step"))}
	today, after := byName(plan.At(0)), byName(plan.At(step))
	draw := func(x, y int, title string, nodes map[string]*view.Node) int {
		p.Labels = append(p.Labels, Label{X: x, Y: y + 14, Text: fit(title, half, titleSize), Size: titleSize, Bold: true, Role: Ink})
		y += headHeight
		for _, s := range all {
			there := 0
			for _, n := range s.nodes {
				if now := nodes[n.Name]; now != nil && now.Change != view.Removed {
					there++
				}
			}
			p.Labels = append(p.Labels, Label{X: x, Y: y + 14, Text: fit(s.pool+" · "+plural(there, "node"), half, smallSize), Size: smallSize,
				Role: Muted})
			y = flow(s, half, y, unit, func(n *view.Node, dx, dy, side int) {
				b := Box{X: x + dx, Y: dy, W: side, H: side, Role: Surface, Level: 255, Outline: true, Edge: Line,
					Title: "a later step adds a node here"}
				if now := nodes[n.Name]; now != nil {
					b = planned(now, x+dx, dy, side)
				}
				p.Boxes = append(p.Boxes, b)
			})
		}
		return y
	}
	before, target := plan.Before, planFigures(plan, step)
	y := draw(0, 0, "Today · "+figures(before), today)
	title := fmt.Sprintf("After step %d of %d · %s", step, len(plan.Steps), figures(target))
	if stacked {
		y = draw(0, y, title, after)
	} else {
		y = max(y, draw(half+planGap, 0, title, after))
	}
	p.Height = y
	p.Legend = []Key{{Role: Step2, Text: "stays", Count: -1}, {Role: Good, Text: "added", Count: -1}, {Role: Empty,
		Text: "removed", Count: -1}, {Role: Line, Text: "frame: a later step adds a node", Count: -1}}
	p.groups(plan.Fleet)
	return p
}

// addedLast puts the nodes that steps add behind the others of their pool, in the order of the steps: the frame of one that
// does not exist yet is not between others.
func addedLast(plan *view.Plan, sections []section) {
	added := map[string]int{}
	for i := range plan.Steps {
		for _, name := range plan.Steps[i].Add {
			added[name] = i + 1
		}
	}
	for _, s := range sections {
		slices.SortStableFunc(s.nodes, func(a, b *view.Node) int { return cmp.Compare(added[a.Name], added[b.Name]) })
	}
}

func planFigures(plan *view.Plan, step int) view.Figures {
	f := plan.Before
	for i := range plan.Steps[:min(step, len(plan.Steps))] {
		f.Nodes += len(plan.Steps[i].Add) - len(plan.Steps[i].Remove)
		f.Price = plan.Steps[i].Price
	}
	return f
}

func figures(f view.Figures) string {
	return fmt.Sprintf("%s, %.2f USD/h", plural(f.Nodes, "node"), f.Price)
}

func byName(f *view.Fleet) map[string]*view.Node {
	at := make(map[string]*view.Node, len(f.Nodes))
	for i := range f.Nodes {
		at[f.Nodes[i].Name] = &f.Nodes[i]
	}
	return at
}

// planned returns the box of a node of a plan.
func planned(n *view.Node, x, y, side int) Box {
	b := Box{X: x, Y: y, W: side, H: side, Role: Step2, Level: level(n.Share()), Row: n.Name, Title: n.Change.String() + " · " + titleOf(n)}
	switch n.Change {
	case view.Added:
		b.Role, b.Outline, b.Edge = Good, true, Good
	case view.Removed:
		b.Level, b.Outline, b.Edge = 0, true, Neutral
	}
	return b
}
