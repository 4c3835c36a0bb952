package capture

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karpenter-go/karpenter/cloud"
)

// PriceList lists the available offerings.
type PriceList struct {
	Declared cloud.Declared `json:"declared"`
	// NodeClasses are the provider's kinds; none means that all kinds are accepted.
	NodeClasses []schema.GroupKind `json:"nodeClasses,omitempty"`
	Catalogs    []PriceListEntry   `json:"catalogues"`
	// Source is the source and the date of types and prices of a real cloud; empty for invented ones.
	Source string `json:"source,omitempty"`
}

// PriceListEntry lists what some pools can launch, or why they can launch nothing. The pools are the named ones, those of
// the class, or all others if it names neither.
type PriceListEntry struct {
	Pools []string `json:"pools,omitempty"`
	// Class is the name of an EC2NodeClass.
	Class  string               `json:"class,omitempty"`
	Types  []cloud.InstanceType `json:"types,omitempty"`
	Reason string               `json:"reason,omitempty"`
	// Declared are the labels of its provider, if there are pools of several providers; else those of the sale apply.
	Declared *cloud.Declared `json:"declared,omitempty"`
}

// AddClass adds a kind of node class, once.
func (s *PriceList) AddClass(kind schema.GroupKind) {
	if !slices.Contains(s.NodeClasses, kind) {
		s.NodeClasses = append(s.NodeClasses, kind)
	}
}

// With returns the combined offerings of two providers; s may be nil. Each catalog keeps the labels of its own
// provider.
func (s *PriceList) With(other *PriceList) *PriceList {
	if s == nil {
		return other
	}
	together := &PriceList{Declared: s.Declared.With(other.Declared), Source: cmp.Or(s.Source, other.Source)}
	for _, part := range []*PriceList{s, other} {
		for _, kind := range part.NodeClasses {
			together.AddClass(kind)
		}
		for _, c := range part.Catalogs {
			c.Declared = &part.Declared
			together.Catalogs = append(together.Catalogs, c)
		}
	}
	return together
}
