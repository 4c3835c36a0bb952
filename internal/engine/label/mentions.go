package label

import (
	"maps"
	"slices"
)

// Representation: per label key, the set of mentioned values and of cut points between integers. Invariant: both only
// grow, and what they hold does not depend on the order of mentions, nor does the space made of them. Cost: a mention is
// one or two map look-ups; a new space costs the sorting of those keys that changed and one word copy for the others,
// whose dimensions it shares with the space before.

// Mentions collects which keys, values and integer bounds requirements mention. It only grows. The zero value is not
// usable; it is not safe for concurrent use, but the spaces it returns are.
type Mentions struct {
	keys    map[string]*mentioned
	version uint64
	space   *Space // of this version, or nil
	values  int
}

// mentioned is what one key's requirements tell apart.
type mentioned struct {
	values  map[string]struct{}
	cuts    map[int64]struct{} // n parts the integers into ..n-1 and n..
	bounded bool               // integers are told apart from other words
	dim     *dimension         // of just this, or nil
}

// NewMentions returns mentions of nothing.
func NewMentions() *Mentions {
	return &Mentions{keys: map[string]*mentioned{}}
}

// Requirement mentions all that r needs to be encoded.
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

// Value makes a value of a key an atom of its own.
func (m *Mentions) Value(key, value string) {
	m.value(m.key(key), value)
}

// Key makes a key part of the space, if only to tell whether the label is there.
func (m *Mentions) Key(key string) {
	m.key(key)
}

// Len is how many values are mentioned, of all keys.
func (m *Mentions) Len() int { return m.values }

// Version changes if and only if something new was mentioned. Rows of one version can be used together.
func (m *Mentions) Version() uint64 {
	return m.version
}

// Space returns the numbering of all that was mentioned, keys ordered by name: the same pointer while Version is
// unchanged, and an equal numbering whatever the order of the mentions was.
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
