// Package bitset holds sets of small integers: instance types of a catalog, nodes of a snapshot, atoms of a label
// key.
//
// Representation: one bit per member, 64 to a machine word, member i in word i/64 at bit i%64. The size of the
// universe is not stored; a set of n possible members has ceil(n/64) words, and the code that owns the universe knows
// n.
//
//	New(130):  [ 0..63 ][ 64..127 ][ 128..129, the rest always zero ]
//
// Invariant: every set over one universe has the same length, and bits at or above the universe's size are zero. New
// and Full establish it; every operation keeps it as long as only members of the universe are added. An operation on
// two sets of different universes is a programming error: it panics, or, where the second set is longer, ignores the
// excess.
//
// Cost: one word operation per 64 possible members; Has, Add and Remove are constant. Only New, Full and Clone
// allocate. A Set is a slice: copies share members, and concurrent use is safe only without writes.
//
// The package must not depend on the meaning of its integers.
package bitset

import (
	"iter"
	"math/bits"
	"slices"
)

const wordBits = 64

// Set is a set of integers in [0, n) for the n it was made with.
type Set []uint64

// New returns the empty set over the universe [0, n).
func New(n int) Set {
	return make(Set, (n+wordBits-1)/wordBits)
}

// Full returns the set of all members of the universe [0, n).
func Full(n int) Set {
	s := New(n)
	for i := range s {
		s[i] = ^uint64(0)
	}
	if tail := n % wordBits; tail != 0 {
		s[len(s)-1] = 1<<tail - 1
	}
	return s
}

// Has reports whether i is a member. It panics when i is outside the set's words.
func (s Set) Has(i int) bool {
	return s[i/wordBits]&(1<<(i%wordBits)) != 0
}

// Add makes i a member. It panics when i is outside the set's words.
func (s Set) Add(i int) {
	s[i/wordBits] |= 1 << (i % wordBits)
}

// Remove removes i from the set. It panics when i is outside the set's words.
func (s Set) Remove(i int) {
	s[i/wordBits] &^= 1 << (i % wordBits)
}

// And sets dst to the intersection of a and b. dst may be a or b.
func And(dst, a, b Set) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] & b[i]
	}
}

// AndWith removes from s all members that are not in b.
func (s Set) AndWith(b Set) {
	b = b[:len(s)]
	for i := range s {
		s[i] &= b[i]
	}
}

// OrWith adds to s all members of b.
func (s Set) OrWith(b Set) {
	b = b[:len(s)]
	for i := range s {
		s[i] |= b[i]
	}
}

// AndNotWith removes from s all members of b.
func (s Set) AndNotWith(b Set) {
	b = b[:len(s)]
	for i := range s {
		s[i] &^= b[i]
	}
}

// Empty reports whether s has no member.
func (s Set) Empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

// Count returns the number of members.
func (s Set) Count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// First returns the lowest member, or -1 when there is none.
func (s Set) First() int {
	return s.Next(-1)
}

// Next returns the lowest member above after, or -1 when there is none. after may be any integer.
func (s Set) Next(after int) int {
	from := max(after+1, 0)
	i := from / wordBits
	if i >= len(s) {
		return -1
	}
	w := s[i] &^ (1<<(from%wordBits) - 1)
	for w == 0 {
		if i++; i == len(s) {
			return -1
		}
		w = s[i]
	}
	return i*wordBits + bits.TrailingZeros64(w)
}

// All yields the members in ascending order. The member being visited may be removed from s.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(i*wordBits + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// Clone returns a copy that shares nothing with s.
func (s Set) Clone() Set {
	return slices.Clone(s)
}

// CopyFrom makes s equal to b.
func (s Set) CopyFrom(b Set) {
	copy(s, b[:len(s)])
}

// Equal reports whether a and b have the same members.
func (s Set) Equal(b Set) bool {
	return slices.Equal(s, b)
}

// Intersects reports whether s and b have a member in common.
func (s Set) Intersects(b Set) bool {
	b = b[:len(s)]
	for i, w := range s {
		if w&b[i] != 0 {
			return true
		}
	}
	return false
}
