package picture

import (
	"fmt"
	"strconv"

	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// mostPools is the number of pools that are drawn; the table has all.
const mostPools = 40

// Pools draws for each pool its state, and a bar for each of its limits and quotas: what is used of it.
func Pools(list []view.Pool, width int) *Picture {
	p := &Picture{Width: width, Name: "the pools, with what is used of their limits and quotas"}
	y := 0
	for i := range list[:min(len(list), mostPools)] {
		y = p.pool(&list[i], y)
	}
	if more := len(list) - mostPools; more > 0 {
		p.Labels = append(p.Labels, Label{Y: y + 12, Text: "and " + strconv.Itoa(more) + " more in the table", Size: textSize, Role: Muted})
		y += rulePitch
	}
	p.Height = max(y, rulePitch)
	p.Legend = []Key{{Role: Step3, Text: "in use", Count: -1}, {Role: Bad, Pattern: Hatched, Text: "no further node fits", Count: -1},
		{Role: Empty, Text: "left", Count: -1}}
	return p
}

// poolRole is the color of the state of a pool.
func poolRole(state string) Role {
	switch state {
	case "ready", "static":
		return Good
	case "at its limit":
		return Warn
	}
	return Bad
}

// lines joins the parts to lines of a width.
func lines(parts []string, width, size int) []string {
	var list []string
	for _, part := range parts {
		if last := len(list) - 1; last >= 0 && textWidth(list[last]+" · "+part, size) <= width {
			list[last] += " · " + part
			continue
		}
		list = append(list, fit(part, width, size))
	}
	return list
}

func (p *Picture) pool(pool *view.Pool, y int) int {
	title := pool.Name + ": " + pool.Told()
	p.Boxes = append(p.Boxes, Box{Y: y + 2, W: 4, H: 16, Role: poolRole(pool.State), Level: 255, Row: pool.Name, Title: title})
	p.Labels = append(p.Labels, Label{X: 12, Y: y + 14, Text: fit(pool.Name+" · "+pool.Told(), p.Width-12, titleSize), Size: titleSize,
		Bold: true, Role: Ink})
	y += 30
	for _, text := range lines(pool.Summary(), p.Width-12, smallSize) {
		p.Labels = append(p.Labels, Label{X: 12, Y: y, Text: text, Size: smallSize, Role: Muted})
		y += 15
	}
	y -= 7
	names := min(p.Width*2/5, 260)
	length := p.Width - names - 190
	if p.Width < 560 {
		length = p.Width - names - 130
	}
	for i := range pool.Gauges {
		g := &pool.Gauges[i]
		row, text := fmt.Sprintf("%s: %s %s", pool.Name, g.Name(), g.Text()), g.Text()
		used, role, pattern := min(length, bar(g.Share, 1, length)), Step3, Solid
		if g.Reached {
			role, pattern = Bad, Hatched
		}
		p.Labels = append(p.Labels, Label{X: names - 12, Y: y + 14, Text: fit(g.Name(), names-24, textSize), Size: textSize,
			Anchor: End, Role: Ink},
			Label{X: names + length + 8, Y: y + 14, Text: fit(text, p.Width-names-length-8, smallSize), Size: smallSize, Role: Ink})
		p.Boxes = append(p.Boxes, Box{X: names, Y: y + 3, W: length, H: barHeight, Role: Empty, Level: 255, Row: pool.Name, Title: row})
		if used > 0 {
			p.Boxes = append(p.Boxes, Box{X: names, Y: y + 3, W: used, H: barHeight, Role: role, Pattern: pattern, Level: 255,
				Row: pool.Name, Title: row})
		}
		y += rulePitch
	}
	return y + 14
}
