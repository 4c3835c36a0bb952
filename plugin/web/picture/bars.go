package picture

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// The measures of bars, in pixels.
const (
	barPitch  = 38
	barHeight = 14
	mostBars  = 20
)

// Savings draws a bar for each blocker: the price of the nodes that it keeps, and in it what the fleet would save
// without it.
func Savings(list []view.Blocker, width int) *Picture {
	p := &Picture{Width: width, Name: "what keeps the fleet from being cheaper, in USD a month"}
	most := 0.0
	for i := range list {
		most = max(most, list[i].Held, list[i].Saving)
	}
	shown := list[:min(len(list), mostBars)]
	names := min(width*2/5, 360)
	length := width - names - 150
	for i := range shown {
		b := &shown[i]
		y := i * barPitch
		row := b.Kind + "|" + b.Name
		title := fmt.Sprintf("%s %s keeps %s for %.2f USD a month", b.Kind, b.Name, plural(len(b.Nodes), "node"), b.Held*view.HoursPerMonth)
		p.Labels = append(p.Labels,
			Label{X: names - 12, Y: y + 12, Text: fit(b.Name, names-12, textSize), Size: textSize, Bold: true, Anchor: End, Role: Ink},
			Label{X: names - 12, Y: y + 25, Text: fit(b.Kind, names-12, smallSize), Size: smallSize, Anchor: End, Role: Muted})
		held := bar(b.Held, most, length)
		p.Boxes = append(p.Boxes, Box{X: names, Y: y + 5, W: held, H: barHeight, Role: Step0, Pattern: Hatched,
			Level: 255, Row: row, Title: title})
		value := "not computed"
		if b.Fixed {
			value = fmt.Sprintf("%.0f", b.Held*view.HoursPerMonth)
		}
		if b.Unpriced > 0 && b.Unpriced == len(b.Nodes) {
			value = bill.Unknown
			title = fmt.Sprintf("%s %s keeps %s", b.Kind, b.Name, plural(len(b.Nodes), "node"))
		}
		if b.Known {
			value = fmt.Sprintf("saves %.0f of %.0f", b.Saving*view.HoursPerMonth, b.Held*view.HoursPerMonth)
			if saved := bar(b.Saving, most, length); b.Saving > 0 {
				held = max(held, saved)
				p.Boxes = append(p.Boxes, Box{X: names, Y: y + 5, W: saved, H: barHeight, Role: Step3, Level: 255, Row: row, Title: title})
			}
		}
		p.Labels = append(p.Labels, Label{X: names + held + 8, Y: y + 16, Text: value, Size: smallSize, Role: Ink})
	}
	if more := len(list) - len(shown); more > 0 {
		p.Labels = append(p.Labels, Label{X: names, Y: len(shown)*barPitch + 14, Text: "and " + strconv.Itoa(more) +
			" more in the table", Size: smallSize, Role: Muted})
	}
	p.Height = (len(shown)+1)*barPitch - 8
	p.Legend = []Key{{Role: Step3, Text: "saved if only this is lifted", Count: -1}, {Role: Step0, Pattern: Hatched,
		Text: "price of the nodes that it keeps", Count: -1}}
	return p
}

// bar returns the length of a bar; an amount above 0 is visible.
func bar(amount, most float64, length int) int {
	if amount <= 0 || most <= 0 {
		return 0
	}
	return max(2, round(amount/most*float64(length)))
}

// The measures of the pending pods, in pixels.
const (
	rulePitch  = 22
	mostGroups = 12
	mostRules  = 6
)

// Pending draws for each set of pods a tree: the pools, in each the rules in their order, as long as the number of
// instance types that remain, and the nearest change.
func Pending(list []view.Pending, width int) *Picture {
	p := &Picture{Width: width, Name: "why pods are pending: for each pool, the instance types that remain after each rule"}
	most := 1
	for i := range list {
		for _, pool := range list[i].Pools {
			for _, r := range pool.Rules {
				most = max(most, r.Before)
			}
		}
	}
	y := 0
	for i := range list[:min(len(list), mostGroups)] {
		y = p.pendingGroup(&list[i], strconv.Itoa(i), y, most)
	}
	if more := len(list) - mostGroups; more > 0 {
		p.Labels = append(p.Labels, Label{Y: y + 12, Text: fmt.Sprintf("and %s more in the table", plural(more, "set")),
			Size: textSize, Role: Muted})
		y += rulePitch
	}
	p.Height = max(y, rulePitch)
	p.Legend = []Key{{Role: Step2, Text: "instance types that remain", Count: -1}, {Role: Bad, Pattern: Hatched,
		Text: "excluded by the rule", Count: -1},
		{Role: Accent, Text: "nearest change", Count: -1}}
	return p
}

func outcomeRole(outcome string) Role {
	switch outcome {
	case "NoPlace":
		return Bad
	case "Ignored":
		return Muted
	}
	return Good
}

// outcomeText returns an outcome in words.
func outcomeText(outcome string) string {
	words := map[string]string{"NoPlace": "no place", "NewNode": "needs a new node", "ExistingNode": "fits on a node that exists",
		"NodeInFlight": "waits for a node that is being launched", "Ignored": "needs no node"}
	return cmp.Or(words[outcome], outcome)
}

func (p *Picture) pendingGroup(g *view.Pending, id string, y, most int) int {
	head := g.Pod
	if g.Count > 1 {
		head += fmt.Sprintf(" and %d like it", g.Count-1)
	}
	outcome := outcomeText(g.Outcome)
	p.Boxes = append(p.Boxes, Box{Y: y + 2, W: 4, H: 16, Role: outcomeRole(g.Outcome), Level: 255, Row: id, Title: head + ": " + outcome})
	p.Labels = append(p.Labels, Label{X: 12, Y: y + 14, Text: fit(head+" · "+outcome, p.Width-12, titleSize),
		Size: titleSize, Bold: true, Role: Ink})
	y += rulePitch + 2
	if len(g.Pools) == 0 {
		p.Labels = append(p.Labels, Label{X: 12, Y: y + 12, Text: fit(g.Why, p.Width-12, textSize), Size: textSize, Role: Muted})
		return y + rulePitch + 8
	}
	for j := range g.Pools {
		y = p.pendingPool(&g.Pools[j], id+"."+strconv.Itoa(j), y, most)
	}
	return y + 8
}

func (p *Picture) pendingPool(pool *view.PoolFilter, id string, y, most int) int {
	names := min(p.Width/5, 200)
	length := min(p.Width/4, 280)
	p.Labels = append(p.Labels, Label{X: 12, Y: y + 14, Text: fit(pool.Pool, names-16, textSize), Size: textSize, Role: Ink})
	rules := pool.Rules
	if len(rules) > mostRules {
		rules = rules[len(rules)-mostRules:]
	}
	x := names + length + 14
	if len(rules) == 0 {
		p.Labels = append(p.Labels, Label{X: names, Y: y + 14, Text: fit(pool.Text, p.Width-names, textSize), Size: textSize, Role: Ink})
		y += rulePitch
	}
	for _, r := range rules {
		before, after := length*r.Before/most, length*r.After/most
		title := fmt.Sprintf("%s: %d of %d instance types remain", r.Rule, r.After, r.Before)
		if before > after {
			p.Boxes = append(p.Boxes, Box{X: names + after, Y: y + 3, W: max(2, before-after), H: barHeight, Role: Bad,
				Pattern: Hatched, Level: 255, Row: id, Title: title})
		}
		if after > 0 {
			p.Boxes = append(p.Boxes, Box{X: names, Y: y + 3, W: after, H: barHeight, Role: Step2, Level: 255, Row: id, Title: title})
		}
		p.Labels = append(p.Labels, Label{X: x, Y: y + 14, Text: fit(fmt.Sprintf("%d of %d left · %s", r.After, r.Before,
			r.Rule), p.Width-x, textSize),
			Size: textSize, Role: Ink})
		y += rulePitch
	}
	if pool.Nearest != "" {
		p.Boxes = append(p.Boxes, Box{X: names, Y: y + 3, W: 3, H: barHeight, Role: Accent, Level: 255, Row: id})
		p.Labels = append(p.Labels, Label{X: names + 9, Y: y + 14, Text: fit(pool.Nearest, p.Width-names-9, textSize),
			Size: textSize, Bold: true, Role: Accent})
		y += rulePitch
	}
	return y + 2
}

// Cost draws the price of the fleet beside that of a fresh one and the lower bound.
func Cost(c *view.Cost, width int) *Picture {
	p := &Picture{Width: width, Height: 3 * rulePitch, Name: "the price of the fleet beside that of a fresh fleet and the lower bound"}
	most := max(c.Price, c.Fresh, c.Bound)
	for i, line := range []struct {
		name  string
		price float64
		role  Role
	}{{"Today", c.Price, Series0}, {"Fresh fleet", c.Fresh, Series1}, {"Lower bound", c.Bound, Neutral}} {
		y := i * rulePitch
		p.Labels = append(p.Labels, Label{X: 0, Y: y + 14, Text: line.name, Size: textSize, Role: Muted})
		length := bar(line.price, most, width-84-150)
		p.Boxes = append(p.Boxes, Box{X: 84, Y: y + 3, W: max(1, length), H: barHeight, Role: line.role, Level: 255})
		p.Labels = append(p.Labels, Label{X: 84 + length + 8, Y: y + 14, Text: fmt.Sprintf("%.2f USD/h", line.price),
			Size: textSize, Bold: i == 0, Role: Ink})
	}
	return p
}
