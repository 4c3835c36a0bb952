package picture

import (
	"fmt"
	"strconv"

	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// billKinds are the colors of the kinds of rows, and what they stand for.
var billKinds = map[string]Key{
	bill.Pods:    {Role: Step3, Text: "requested by pods", Count: -1},
	bill.Daemons: {Role: Step1, Text: "requested by DaemonSets and static pods", Count: -1},
	bill.Unused:  {Role: Step0, Pattern: Hatched, Text: "requested by no pod", Count: -1},
}

// Bill draws a bar for each row of a bill: the rows of pods as far as there is space, and all others.
func Bill(b *bill.Bill, width int) *Picture {
	p := &Picture{Width: width, Name: "what the cost is for, in USD a month"}
	rows := view.BillSheet(b).Rows
	most, pods := bill.USD(0), 0
	var shown []int
	for i := range b.Rows {
		most = max(most, b.Rows[i].PerMonth)
		if b.Rows[i].Kind == bill.Pods || b.Rows[i].Kind == bill.Daemons {
			if pods++; pods > mostBars {
				continue
			}
		}
		shown = append(shown, i)
	}
	names := min(width*2/5, 360)
	length := width - names - 90
	for at, i := range shown {
		r, y := &b.Rows[i], at*rulePitch
		text, title := r.PerMonth.Text(2), fmt.Sprintf("%s costs %s USD a month", b.Title(r), r.PerMonth.Text(2))
		if r.Unpriced() {
			text, title = bill.Unknown, "what "+b.Title(r)+" costs is unknown"
		}
		key, known := billKinds[r.Kind]
		if !known {
			key = billKinds[bill.Unused]
		}
		w := bar(r.PerMonth.Float(), most.Float(), length)
		p.Labels = append(p.Labels,
			Label{X: names - 12, Y: y + 16, Text: fit(b.Title(r), names-12, textSize), Size: textSize, Anchor: End, Role: Ink},
			Label{X: names + w + 8, Y: y + 16, Text: text, Size: smallSize, Role: Ink})
		p.Boxes = append(p.Boxes, Box{X: names, Y: y + 5, W: w, H: barHeight, Role: key.Role, Pattern: key.Pattern, Level: 255,
			Row: rows[i].ID, Title: title})
	}
	p.Height = len(shown)*rulePitch + 8
	if more := len(b.Rows) - len(shown); more > 0 {
		p.Labels = append(p.Labels, Label{X: names, Y: p.Height + 8, Text: "and " + strconv.Itoa(more) + " more in the table",
			Size: smallSize, Role: Muted})
		p.Height += rulePitch
	}
	for _, kind := range []string{bill.Pods, bill.Daemons, bill.Unused} {
		p.Legend = append(p.Legend, billKinds[kind])
	}
	return p
}
