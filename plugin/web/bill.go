package web

import (
	"strings"

	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/web/picture"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// groupingOf reads a grouping from the parameter by, in which a label is written as label:KEY.
func groupingOf(text string) (g bill.Grouping, known bool) {
	if key, label := strings.CutPrefix(text, bill.ByLabel+":"); label && key != "" {
		return bill.Grouping{By: bill.ByLabel, Label: key}, true
	}
	return bill.Grouping{By: text}, text == bill.ByNamespace || text == bill.ByWorkload
}

// groupingText is the inverse of groupingOf.
func groupingText(g bill.Grouping) string {
	if g.By == bill.ByLabel {
		return g.By + ":" + g.Label
	}
	return g.By
}

// groupings returns the choices of a grouping: the labels that pods have are among them, and the one that is shown.
func (r *request) groupings(shown bill.Grouping) []option {
	list := []option{{bill.ByNamespace, "namespace"}, {bill.ByWorkload, "workload"}}
	keys := r.reading.CostLabels()
	if shown.By == bill.ByLabel {
		keys = append([]string{shown.Label}, keys...)
	}
	for i, key := range keys {
		if i == 0 || key != keys[0] {
			list = append(list, option{bill.ByLabel + ":" + key, "label " + key})
		}
	}
	return list
}

// rightSized adds what requests that fit the usage of pods would save, which is planned in the background.
func (v *shown) rightSized(r *request, b *bill.Bill) error {
	if b.Usage == nil || b.Usage.Unknown != "" {
		return nil
	}
	sized, err, ready := r.reading.rightSized.ask(r.ctx, r.patience)
	switch {
	case err != nil:
		return err
	case !ready:
		v.Waiting = "planning with requests that fit the usage"
		return nil
	}
	usage := *b.Usage // of this answer only
	usage.RightSized, b.Usage = sized, &usage
	return nil
}

func showBill(r *request) (*shown, error) {
	g, known := groupingOf(r.query.Get("by"))
	if !known {
		g = r.reading.CostBy
	}
	whole := r.reading.Bill(g)
	b := whole.Filter(strings.TrimSpace(r.query.Get("q")))
	verb := "top --once --by " + g.By
	if g.By == bill.ByLabel {
		verb = "top --once --cost-label " + quote(g.Label)
	}
	if b.Usage != nil {
		verb += " --usage"
	}
	v := &shown{Command: r.command(verb), Sheet: view.BillSheet(b), Picture: picture.Bill(b, r.width), Narrow: picture.Bill(b, narrowWidth)}
	v.Controls = []control{{Name: "by", Label: "By", Value: groupingText(g), Options: r.groupings(g)},
		{Name: "q", Label: "Filter", Value: r.query.Get("q"), Hint: "namespace, workload"}}
	if err := v.rightSized(r, b); err != nil {
		return nil, err
	}
	v.Lead = "The price of each node, shared among its pods by what they request: " + strings.Join(b.Summary(), "; ") + "."
	v.Extra = map[string]any{"bill": b}
	switch {
	case len(whole.Rows) == 0:
		v.Empty = "There is no node whose price is known."
	case len(b.Rows) == 0:
		v.Empty = "No row matches the filter."
	}
	return v, nil
}
