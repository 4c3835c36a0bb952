package label

import (
	"fmt"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
)

// Representation: a row is one slice of machine words, in which every key has whole words of its own. Keys are
// numbered by name, after the shared key if there is one (mentions.go). In the row, the keys that need one word are
// first, in that order, then the longer ones:
//
//	words     0        1        2        3..5
//	          arch     os       zone     instance-type
//	          `-- one word each: --'     `-- longer, by span
//	              a single AND each
//
// Invariant: bits beyond a key's atoms are zero, so that equal sets are equal words, and a set is empty if its words
// are zero. A space is immutable and safe for concurrent use; rows belong to their creator. Cost: Compatible, And,
// Equal and Contains are one pass over the row, typically one word per key, and allocate nothing.

// Key is the number of a label key in one Space; keys are numbered by name, from 0 to Len()-1.
type Key int32

// Row is, for every key of a Space, a set of atoms, all in one slice. It is valid only with its space: use with a
// space of another length panics or gives meaningless results.
type Row []uint64

// Space numbers keys and their atoms. It is immutable. Mentions.Space creates it.
type Space struct {
	dims   []*dimension
	keys   map[string]Key
	spans  []span
	single int // each of the words 0..single-1 belongs to one key
	long   []span
	all    Row
	// shared says that key 0 is the one that keys share that no node may have.
	shared bool
}

// span is the range of words of one key in a row.
type span struct {
	from, to int
}

// newSpace returns the space of the keys. If shared, the first is the one that keys share that no node may have.
func newSpace(dims []*dimension, shared bool) *Space {
	s := &Space{dims: dims, keys: make(map[string]Key, len(dims)), spans: make([]span, len(dims)), shared: shared}
	for k, d := range dims {
		if k > 0 || !shared {
			s.keys[d.name] = Key(k)
		}
		if len(d.all) == 1 {
			s.spans[k] = span{s.single, s.single + 1}
			s.single++
		}
	}
	words := s.single
	for k, d := range dims {
		if len(d.all) > 1 {
			s.spans[k] = span{words, words + len(d.all)}
			s.long = append(s.long, s.spans[k])
			words += len(d.all)
		}
	}
	s.all = make(Row, words)
	for k, d := range dims {
		copy(s.set(s.all, Key(k)), d.all)
	}
	return s
}

// Words returns the length of a row.
func (s *Space) Words() int { return len(s.all) }

// Len returns the number of keys.
func (s *Space) Len() int { return len(s.dims) }

// Name returns the canonical name of key k.
func (s *Space) Name(k Key) string { return s.dims[k].name }

// Lookup returns the number of a label key, which may be an alias. It returns false if the key was not mentioned, or
// shares the key that Shared returns.
func (s *Space) Lookup(key string) (Key, bool) {
	k, ok := s.keys[Canonical(key)]
	return k, ok
}

// Shared returns the key that mentioned keys share that no node may have, and false if each key has its own.
func (s *Space) Shared() (Key, bool) { return 0, s.shared }

// Span returns the range row[from:to] of the words of key k.
func (s *Space) Span(k Key) (from, to int) {
	return s.spans[k].from, s.spans[k].to
}

// set returns the part of a row that belongs to key k.
func (s *Space) set(row Row, k Key) bitset.Set {
	return bitset.Set(row[s.spans[k].from:s.spans[k].to])
}

// All returns a row with every atom of every key: it requires nothing.
func (s *Space) All() Row {
	return slices.Clone(s.all)
}

// Labels returns the row of an existing node: one atom for each key, that of the label's value or of its absence. A
// label with the deprecated spelling counts if the current one is missing.
func (s *Space) Labels(labels map[string]string) Row {
	row := make(Row, len(s.all))
	for k, d := range s.dims {
		value, ok := labels[d.name]
		if !ok && d.alias != "" {
			value, ok = labels[d.alias]
		}
		atom := d.absent()
		if ok && (k > 0 || !s.shared) {
			atom = d.atom(value)
		}
		s.set(row, Key(k)).Add(atom)
	}
	return row
}

// Template returns the initial row of a pool's future nodes. A key that the pool's requirements name has the
// intersection of these requirements. Other keys are open if they are well known, because the cloud may set any value
// or none; otherwise they are absent, because nothing sets them.
//
// If requirements of a key contradict each other, Template returns the lowest such key and false; the set of this key
// in the row is empty.
func (s *Space) Template(wellKnown func(key string) bool, reqs []Requirement) (Row, Key, bool) {
	row, k, ok := s.Encode(reqs)
	named := make([]bool, len(s.dims))
	for _, r := range reqs {
		named[s.mustLookup(r)] = true
	}
	for i, d := range s.dims {
		if !named[i] && !wellKnown(d.name) {
			s.SetOnly(row, Key(i), d.absent())
		}
	}
	return row, k, ok
}

// Narrow removes from the set of key r.Key in the row everything that r does not allow, and reports whether the set
// is nonempty. It panics if r was never mentioned to the Mentions that made the space: that is a programming error. Only
// where keys share one, a key that was never mentioned is taken for one of those.
func (s *Space) Narrow(row Row, r Requirement) bool {
	if _, known := s.Lookup(r.Key); !known && s.shared {
		return s.narrowShared(row, r)
	}
	k := s.mustLookup(r)
	set := s.set(row, k)
	s.dims[k].narrow(set, r)
	return !set.Empty()
}

// narrowShared is Narrow for a key that no node may have.
func (s *Space) narrowShared(row Row, r Requirement) bool {
	set := s.set(row, 0)
	switch {
	case r.Operator == NotIn || r.Operator == DoesNotExist:
	case r.Operator == In && len(r.Values) == 0, r.Operator.isBound() && r.bounds().empty():
		clear(set)
	default:
		set.Remove(s.dims[0].absent())
	}
	return !set.Empty()
}

func (s *Space) mustLookup(r Requirement) Key {
	k, ok := s.Lookup(r.Key)
	if !ok {
		panic(fmt.Sprintf("label: key %s was never mentioned", r.Key))
	}
	return k
}

// Encode returns the row of all requirements together, starting from All. If requirements of a key contradict each
// other, it returns the lowest such key and false; the set of this key in the row is empty. It panics under the same
// condition as Narrow.
func (s *Space) Encode(reqs []Requirement) (Row, Key, bool) {
	row, ok := s.All(), true
	for _, r := range reqs {
		ok = s.Narrow(row, r) && ok
	}
	if ok {
		return row, 0, true
	}
	k, _ := s.Conflict(row, row)
	return row, k, false
}

// Compatible reports whether a and b have an atom in common on every key.
func (s *Space) Compatible(a, b Row) bool {
	single, bs := a[:s.single], b[:s.single]
	for i, w := range single {
		if w&bs[i] == 0 {
			return false
		}
	}
	for _, l := range s.long {
		if !bitset.Set(a[l.from:l.to]).Intersects(bitset.Set(b[l.from:l.to])) {
			return false
		}
	}
	return true
}

// Conflict returns the lowest key on which a and b have no atom in common, and false when they are compatible.
func (s *Space) Conflict(a, b Row) (Key, bool) {
	for k := range s.dims {
		if !s.set(a, Key(k)).Intersects(s.set(b, Key(k))) {
			return Key(k), true
		}
	}
	return 0, false
}

// And sets dst to the intersection of a and b, completely even if the set of a key becomes empty. It reports whether
// every key still has an atom. dst may be a or b.
func (s *Space) And(dst, a, b Row) bool {
	dst, a, b = dst[:len(s.all)], a[:len(s.all)], b[:len(s.all)]
	ok := true
	for i := range s.single {
		dst[i] = a[i] & b[i]
		ok = ok && dst[i] != 0
	}
	for _, l := range s.long {
		var any uint64
		for i := l.from; i < l.to; i++ {
			dst[i] = a[i] & b[i]
			any |= dst[i]
		}
		ok = ok && any != 0
	}
	return ok
}

// Equal reports whether a and b are the same set on every key.
func (s *Space) Equal(a, b Row) bool {
	return slices.Equal(a, b)
}

// EqualKey reports whether a and b are the same set on key k.
func (s *Space) EqualKey(a, b Row, k Key) bool {
	return s.set(a, k).Equal(s.set(b, k))
}

// Contains reports whether b is a subset of a on every key: everything that satisfies b satisfies a.
func (s *Space) Contains(a, b Row) bool {
	a = a[:len(b)]
	for i, w := range b {
		if w&^a[i] != 0 {
			return false
		}
	}
	return true
}

// Mentioned reports whether the space can encode the requirement: its key, values and bounds were mentioned when the
// space was made.
func (s *Space) Mentioned(r Requirement) bool {
	k, ok := s.Lookup(r.Key)
	if !ok {
		return false
	}
	d := s.dims[k]
	switch {
	case r.Operator == In || r.Operator == NotIn:
		return !slices.ContainsFunc(r.Values, func(value string) bool { _, known := d.index[value]; return !known })
	case r.Operator.isBound():
		bounds := r.bounds()
		if bounds.empty() {
			return true
		}
		n, cut := bounds.cut()
		return len(d.intervals) > 0 && (!cut || d.intervals[d.intervalOf(n)].low == n)
	}
	return true
}
