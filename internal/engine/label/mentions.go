package label

import (
	"maps"
	"slices"
)

// Representation: per label key, the set of mentioned values and of cut points between integers. Invariant: both sets
// only grow, and neither they nor the space made of them depend on the order of mentions. Cost: a mention takes one
// or two map lookups; a new space sorts the keys that changed and shares the dimensions of the others with the
// previous space.

// Mentions collects the keys, values and integer bounds that requirements mention. It only grows. The zero value is
// not usable. It is not safe for concurrent use, but the spaces that it returns are.
type Mentions struct {
	keys    map[string]*mentioned
	version uint64
	space   *Space // of this version, or nil
	values  int
}

// mentioned holds the values that the requirements of one key distinguish.
type mentioned struct {
	values  map[string]struct{}
	cuts    map[int64]struct{} // n divides the integers into ..n-1 and n..
	bounded bool               // integers are distinguished from other words
	dim     *dimension         // built from these fields, or nil
}

// NewMentions returns empty mentions.
func NewMentions() *Mentions {
	return &Mentions{keys: map[string]*mentioned{}}
}

// Requirement mentions everything that is needed to encode r.
func (m *Mentions) Requirement(r Requirement) {
	key := m.key(r.Key)
	if r.Operator == In || r.Operator == NotIn {
		for _, value := range r.Values {
			m.value(key, value)
		}
	}
	if !r.Operator.isBound() {
		return
	}
	bounds := r.bounds()
	if bounds.empty() {
		return // encodes as the empty set, which needs no atom
	}
	if !key.bounded {
		key.bounded = true
		m.changed(key)
	}
	if n, ok := bounds.cut(); ok {
		if _, known := key.cuts[n]; !known {
			key.cuts[n] = struct{}{}
			m.changed(key)
		}
	}
}

// Value gives a value of a key its own atom.
func (m *Mentions) Value(key, value string) {
	m.value(m.key(key), value)
}

// Key adds a key to the space, if only to represent presence and absence of the label.
func (m *Mentions) Key(key string) {
	m.key(key)
}

// Len returns the number of mentioned values of all keys.
func (m *Mentions) Len() int { return m.values }

// Version changes if and only if something new was mentioned. Rows of one version can be combined.
func (m *Mentions) Version() uint64 {
	return m.version
}

// Space returns the numbering of everything that was mentioned, with keys ordered by name. It returns the same
// pointer while Version is unchanged. The numbering does not depend on the order of the mentions.
func (m *Mentions) Space() *Space {
	if m.space == nil {
		dims := make([]*dimension, 0, len(m.keys))
		for _, name := range slices.Sorted(maps.Keys(m.keys)) {
			key := m.keys[name]
			if key.dim == nil {
				key.dim = newDimension(name, key)
			}
			dims = append(dims, key.dim)
		}
		m.space = newSpace(dims)
	}
	return m.space
}

func (m *Mentions) key(name string) *mentioned {
	name = Canonical(name)
	key, ok := m.keys[name]
	if !ok {
		key = &mentioned{values: map[string]struct{}{}, cuts: map[int64]struct{}{}}
		m.keys[name] = key
		m.changed(key)
	}
	return key
}

func (m *Mentions) value(key *mentioned, value string) {
	if _, ok := key.values[value]; !ok {
		key.values[value] = struct{}{}
		m.values++
		m.changed(key)
	}
}

func (m *Mentions) changed(key *mentioned) {
	key.dim = nil
	m.space = nil
	m.version++
}
