package census

import (
	"github.com/karpenter-go/karpenter/internal/engine/allocation"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// mostCostKeys is the number of namespaces, or of values of a label, that have a series of each kind. The others are one.
const mostCostKeys = 100

// These are the name of no namespace, and no value of a label: of all others, and of pods without the label.
const (
	others    = "(other)"
	unlabeled = "(none)"
)

// bill sends the cost of the fleet by namespace and by the values of a label.
func (s sending) bill(snap *model.Snapshot, label string) {
	for _, r := range allocation.Of(snap, allocation.ByNamespace).Largest(mostCostKeys) {
		s.send(s.NamespaceCost, explain.USD(r.Price), r.Kind.String(), costKey(&r, r.Key.Namespace))
	}
	if label == "" {
		return
	}
	for _, r := range allocation.Of(snap, allocation.ByLabel(label)).Largest(mostCostKeys) {
		name := r.Key.Name
		if (r.Kind == allocation.Pods || r.Kind == allocation.Daemons) && r.Key.Kind != allocation.KindLabel {
			name = unlabeled
		}
		s.send(s.LabelCost, explain.USD(r.Price), r.Kind.String(), costKey(&r, name))
	}
}

// costKey returns the name of a row in a series.
func costKey(r *allocation.Row, name string) string {
	if r.Key.Kind == allocation.KindOther {
		return others
	}
	return name
}
