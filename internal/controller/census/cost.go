package census

import (
	"github.com/karpenter-go/karpenter/internal/engine/allocation"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// mostPayers is the number of namespaces, or of values of a label, that have a series of each kind. The others are one.
const mostPayers = 100

// These are the name of no namespace, and no value of a label: of all others, and of pods without the label.
const (
	others    = "(other)"
	unlabeled = "(none)"
)

// bill sends the cost of the fleet by namespace and by the values of a label.
func (s sending) bill(snap *model.Snapshot, label string) {
	for _, r := range allocation.Of(snap, allocation.ByNamespace).Largest(mostPayers) {
		s.send(s.NamespaceCost, usd(r.Price), r.Kind.String(), payer(&r, r.Key.Namespace))
	}
	if label == "" {
		return
	}
	for _, r := range allocation.Of(snap, allocation.ByLabel(label)).Largest(mostPayers) {
		name := r.Key.Name
		if (r.Kind == allocation.Pods || r.Kind == allocation.Daemons) && r.Key.Kind != allocation.KindLabel {
			name = unlabeled
		}
		s.send(s.LabelCost, usd(r.Price), r.Kind.String(), payer(&r, name))
	}
}

func payer(r *allocation.Row, name string) string {
	if r.Key.Kind == allocation.KindOther {
		return others
	}
	return name
}

func usd(nano int64) float64 { return float64(nano) / model.Nano }
