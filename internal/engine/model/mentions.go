package model

import (
	"maps"

	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// What nodes and instance types mention, and the catalogs.

// mentionNode mentions the requirements, the label keys and the domains of a node.
func (in *interner) mentionNode(spec *NodeSpec) {
	in.offer(spec.Requirements)
	for key := range spec.Labels {
		in.mentions.Carry(key)
	}
	for key := range in.topology {
		in.mentionDomain(key, spec.Labels)
	}
}

// offer mentions requirements that nodes will satisfy.
func (in *interner) offer(reqs []label.Requirement) {
	for _, r := range reqs {
		in.mentions.Carry(r.Key)
		in.mentions.Requirement(r)
	}
}

func (in *interner) mentionDomain(key string, labels map[string]string) {
	if value, has := labels[key]; has {
		in.mentions.Value(key, value)
	}
}

func (in *interner) mentionTypes(key string, c *Catalog) {
	if c == nil {
		return
	}
	for i := range c.Types {
		for _, r := range c.Types[i].Requirements {
			if r.Key == key && r.Operator == label.In {
				for _, v := range r.Values {
					in.mentions.Value(key, v)
				}
			}
		}
	}
}

// mentionCatalog gives every zone, capacity type and reservation in the catalog its own atom: bins are pinned to
// them.
func (in *interner) mentionCatalog(c *Catalog) {
	if _, known := in.types[c]; known {
		return
	}
	in.types[c] = nil
	in.offerTypes(c, 1)
	in.mentionOffers(c)
}

// offerTypes counts the resources of a catalog, once more or once less.
func (in *interner) offerTypes(c *Catalog, by int) {
	if c == nil {
		return
	}
	for i := range c.Types {
		in.uses.offer(by, c.Types[i].Capacity, c.Types[i].Allocatable)
	}
}

// mentionOffers mentions what nodes of the types may have.
func (in *interner) mentionOffers(c *Catalog) {
	if c == nil {
		return
	}
	for key := range in.topology {
		in.mentionTypes(key, c)
	}
	for key := range c.WellKnown {
		in.mentions.Carry(key)
	}
	for i := range c.Types {
		for _, r := range c.Types[i].Requirements {
			in.mentions.Carry(r.Key)
		}
		for _, o := range c.Types[i].Offerings {
			in.mentions.Value(LabelZone, o.Zone)
			in.mentions.Value(LabelCapacityType, o.CapacityType)
			in.offer(o.Requirements)
		}
	}
}

// typesOf returns the index of the catalog, built once per catalog and label space.
func (in *interner) typesOf(c *Catalog) *TypeIndex {
	if c == nil {
		return nil
	}
	if in.types[c] == nil {
		in.types[c] = newTypeIndex(in, c)
	}
	return in.types[c]
}

// keepCatalogs removes the catalogs that are not used any more.
func (in *interner) keepCatalogs(used map[*Catalog]bool) {
	for c := range in.types {
		if !used[c] {
			in.offerTypes(c, -1)
			delete(in.types, c)
			delete(in.typeKeys, c)
		}
	}
}

// keysOfTypes returns the keys that the catalog and its types define, computed once.
func (in *interner) keysOfTypes(c *Catalog) map[string]bool {
	if in.typeKeys[c] == nil {
		keys := maps.Clone(c.WellKnown)
		if keys == nil {
			keys = map[string]bool{}
		}
		for i := range c.Types {
			for _, r := range c.Types[i].Requirements {
				keys[label.Canonical(r.Key)] = true
			}
		}
		in.typeKeys[c] = keys
	}
	return in.typeKeys[c]
}
