package label

import "math/bits"

// Representation: an atom is its number within its key (see dimension.go for the order). Invariant: the numbers have
// no meaning outside their space. Cost: functions on single atoms take constant time; functions that return strings
// iterate over the atoms of the key and are for results and explanations, not for search.

// Atoms returns the number of atoms of key k; they are 0 to Atoms(k)-1.
func (s *Space) Atoms(k Key) int {
	return s.dims[k].atoms()
}

// HasAtom reports whether the row's set on key k has the atom.
func (s *Space) HasAtom(row Row, k Key, atom int) bool {
	return s.set(row, k).Has(atom)
}

// Atom returns the atom of a value of key k: its own, that of its interval, or the atom "other".
func (s *Space) Atom(k Key, value string) int {
	return s.dims[k].atom(value)
}

// Absent returns the atom of key k that represents nodes without the label.
func (s *Space) Absent(k Key) int {
	return s.dims[k].absent()
}

// SetOnly sets the row's set on key k to this one atom.
func (s *Space) SetOnly(row Row, k Key, atom int) {
	set := s.set(row, k)
	clear(set)
	set.Add(atom)
}

// Only returns the single atom of the row's set on key k, which may be the atom "absent". It returns -1 if there is
// none or more than one.
func (s *Space) Only(row Row, k Key) int {
	only := -1
	for i, w := range s.set(row, k) {
		switch {
		case w == 0:
		case only >= 0 || w&(w-1) != 0:
			return -1
		default:
			only = i*64 + bits.TrailingZeros64(w)
		}
	}
	return only
}

// AllowsAbsent reports whether a node without label k is in the row.
func (s *Space) AllowsAbsent(row Row, k Key) bool {
	return s.HasAtom(row, k, s.dims[k].absent())
}

// Values returns the values in the row's set on key k that have atoms of their own, sorted. The set may also contain
// intervals, "other" and "absent".
func (s *Space) Values(row Row, k Key) []string {
	return s.dims[k].named(s.set(row, k))
}

// Single returns the value of key k if the row allows exactly one value that has an atom of its own, and nothing
// else.
func (s *Space) Single(row Row, k Key) (string, bool) {
	d, set := s.dims[k], s.set(row, k)
	atom := set.First()
	if atom < 0 || atom >= d.firstInterval() || set.Next(atom) >= 0 {
		return "", false
	}
	return d.values[atom], true
}

// Pick returns a concrete value in the row's set on key k. It is deterministic: the first of the mentioned values as
// sorted strings, else the smallest unmentioned integer of the intervals (nonnegative if possible, because a
// Kubernetes label value must not start with a minus), else a word that is not mentioned ("any", "any-2", ...). It
// returns false if the set allows only absence, or nothing.
func (s *Space) Pick(row Row, k Key) (string, bool) {
	return s.dims[k].pick(s.set(row, k))
}

// IsValue reports whether the atom represents a single value, rather than several values or absence.
func (s *Space) IsValue(k Key, atom int) bool { return atom < s.dims[k].firstInterval() }

// Value returns the value that the atom of key k represents; IsValue must hold.
func (s *Space) Value(k Key, atom int) string { return s.dims[k].values[atom] }

// Requirements returns a row as API requirements, sorted by key, without the keys on which it equals start (usually
// the row of All or of the pool's Template). Narrowing start by them restores the row, provided that the row was made
// by narrowing start by requirements, or by AND with such rows. An interval is returned as Gte, Lte and NotIn, a set
// without absence as Exists and NotIn, an empty set as the contradiction Exists and DoesNotExist.
//
// A set that no conjunction of requirements describes (made by SetOnly or Labels: "a word that is no integer", say)
// is returned as the smallest describable set that contains it.
func (s *Space) Requirements(row, start Row) []Requirement {
	var reqs []Requirement
	for k, d := range s.dims {
		if !s.EqualKey(row, start, Key(k)) {
			reqs = append(reqs, d.requirements(s.set(row, Key(k)))...)
		}
	}
	return reqs
}

// Describable reports whether Requirements describes the values of the row on key k exactly.
func (s *Space) Describable(row Row, k Key) bool {
	all := s.All()
	for _, r := range s.dims[k].requirements(s.set(row, k)) {
		s.Narrow(all, r)
	}
	return s.EqualKey(all, row, k)
}
