package label

import "slices"

// Representation: per label key, the set of mentioned values and of cut points between integers; and the set of keys
// that nodes may have. Invariant: the sets only grow, and neither they nor the space made of them depend on the order of
// mentions. Cost: a mention takes one or two map lookups; a new space sorts the keys that changed and shares the
// dimensions of the others with the previous space.
//
// Every key of a space makes every row longer, and a pod may mention any number of keys. So a key that no node may have
// (Carry) is a key of the space only as long as there are few of them. If there are more, they share one, which is
// absent on every node: NotIn and DoesNotExist of such a key allow everything, the other operators require the shared
// key.

// fewAbsent is how many mentioned keys that no node may have are keys of the space.
const fewAbsent = 64

// Unknown is the name of the key that all keys share that no node may have. It is not a valid label key.
const Unknown = "(unknown)"

// Mentions collects the keys, values and integer bounds that requirements mention. It only grows. The zero value is
// not usable. It is not safe for concurrent use, but the spaces that it returns are.
type Mentions struct {
	keys    map[string]*mentioned
	carried map[string]struct{} // the keys that nodes may have, mentioned or not
	absent  int                 // the mentioned keys that no node may have
	version uint64
	space   *Space // of this version, or nil
	values  int
}

// mentioned holds the values that the requirements of one key distinguish.
type mentioned struct {
	values  map[string]struct{}
	cuts    map[int64]struct{} // n divides the integers into ..n-1 and n..
	bounded bool               // integers are distinguished from other words
	carried bool               // nodes may have the key
	dim     *dimension         // built from these fields, or nil
}

// NewMentions returns empty mentions.
func NewMentions() *Mentions {
	return &Mentions{keys: map[string]*mentioned{}, carried: map[string]struct{}{}}
}

// Carry says that nodes may have a label of this key. A key that is not carried is absent on every node.
func (m *Mentions) Carry(key string) {
	key = Canonical(key)
	if _, known := m.carried[key]; known {
		return
	}
	m.carried[key] = struct{}{}
	if mentioned := m.keys[key]; mentioned != nil {
		if m.sharesAbsent() {
			m.renew() // the key gets words of its own, and perhaps all others do
		}
		mentioned.carried = true
		m.absent--
	}
}

// sharesAbsent reports whether the keys that no node may have share one.
func (m *Mentions) sharesAbsent() bool { return m.absent > fewAbsent }

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
			if key.cuts == nil {
				key.cuts = map[int64]struct{}{}
			}
			key.cuts[n] = struct{}{}
			m.changed(key)
		}
	}
}

// Value carries the key and gives the value its own atom.
func (m *Mentions) Value(key, value string) {
	m.Carry(key)
	m.value(m.key(key), value)
}

// Key carries a key and adds it to the space, if only to represent presence and absence of the label.
func (m *Mentions) Key(key string) {
	m.Carry(key)
	m.key(key)
}

// Len returns the number of mentioned values of all keys.
func (m *Mentions) Len() int { return m.values }

// ValuesOf returns the number of mentioned values of a key.
func (m *Mentions) ValuesOf(key string) int {
	if mentioned := m.keys[Canonical(key)]; mentioned != nil {
		return len(mentioned.values)
	}
	return 0
}

// Version changes if and only if the space does. Rows of one version can be combined.
func (m *Mentions) Version() uint64 {
	return m.version
}

// Space returns the numbering of everything that was mentioned, with keys ordered by name. It returns the same
// pointer while Version is unchanged. The numbering does not depend on the order of the mentions.
func (m *Mentions) Space() *Space {
	if m.space == nil {
		names := make([]string, 0, len(m.carried)+fewAbsent)
		for name, key := range m.keys {
			if m.numbers(key) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		dims := make([]*dimension, 0, len(names)+1)
		if m.sharesAbsent() {
			dims = append(dims, newDimension(Unknown, &mentioned{}))
		}
		for _, name := range names {
			key := m.keys[name]
			if key.dim == nil {
				key.dim = newDimension(name, key)
			}
			dims = append(dims, key.dim)
		}
		m.space = newSpace(dims, m.sharesAbsent())
	}
	return m.space
}

// numbers reports whether the key is one of the space, with words of its own.
func (m *Mentions) numbers(key *mentioned) bool { return key.carried || !m.sharesAbsent() }

func (m *Mentions) key(name string) *mentioned {
	name = Canonical(name)
	key, ok := m.keys[name]
	if !ok {
		_, carried := m.carried[name]
		key = &mentioned{carried: carried}
		m.keys[name] = key
		if sharesAbsent := m.sharesAbsent(); !carried {
			m.absent++
			if m.sharesAbsent() != sharesAbsent {
				m.renew()
			}
		}
		m.changed(key)
	}
	return key
}

func (m *Mentions) value(key *mentioned, value string) {
	if _, ok := key.values[value]; !ok {
		if key.values == nil {
			key.values = map[string]struct{}{}
		}
		key.values[value] = struct{}{}
		m.values++
		m.changed(key)
	}
}

func (m *Mentions) changed(key *mentioned) {
	key.dim = nil
	if m.numbers(key) {
		m.renew()
	}
}

func (m *Mentions) renew() {
	m.space = nil
	m.version++
}
