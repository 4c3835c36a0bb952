package v1

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Selection selects the pools that this controller launches nodes from, and their claims and nodes, where several controllers
// share a cluster (--pool-selector). The zero value selects all. A pool is selected by the labels that its nodes have whatever
// else happens: those of its template and its name. Claims and nodes have the same, also when the pool is gone.
//
// +kubebuilder:object:generate=false
type Selection struct{ labels.Selector }

// Admits reports whether a claim or a node with the labels is selected.
func (s Selection) Admits(of map[string]string) bool {
	return s.Selector == nil || s.Matches(labels.Set(of))
}

// AdmitsPool reports whether the pool is selected.
func (s Selection) AdmitsPool(pool *NodePool) bool {
	if s.Selector == nil {
		return true
	}
	of := maps.Clone(pool.Spec.Template.ObjectMeta.Labels)
	if of == nil {
		of = map[string]string{}
	}
	of[LabelNodePool] = pool.Name
	return s.Admits(of)
}

// Validate returns an error if the selector names a label that the template of a pool cannot fix: its value is chosen
// for each claim, when a node is launched.
func (s Selection) Validate(rules LabelRules) error {
	for _, key := range s.keys() {
		today := rules.Key(key)
		if key != LabelNodePool && (rules.IsWellKnown(today) || rules.Restriction(today) != "") {
			return fmt.Errorf("the label %s is set for each node by karpenter or the provider; want labels of your own, "+
				"which the pools have in spec.template.metadata.labels, or %s", key, LabelNodePool)
		}
	}
	return nil
}

// Names reports whether pools are selected by the label, except for that of their name, which is always the same on
// claims.
func (s Selection) Names(key string) bool {
	return key != LabelNodePool && slices.Contains(s.keys(), key)
}

func (s Selection) keys() []string {
	if s.Selector == nil {
		return nil
	}
	requirements, _ := s.Requirements()
	keys := make([]string, len(requirements))
	for i := range requirements {
		keys[i] = requirements[i].Key()
	}
	return keys
}
