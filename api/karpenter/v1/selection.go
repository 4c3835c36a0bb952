package v1

import (
	"maps"

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
