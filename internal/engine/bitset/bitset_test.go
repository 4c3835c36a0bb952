package bitset

import (
	"maps"
	"math/rand"
	"slices"
	"testing"
)

// twin is the reference implementation of a set.
type twin map[int]bool

func (m twin) sorted() []int { return slices.Sorted(maps.Keys(m)) }

// pair is a set and its twin over [0, n), with the same members.
type pair struct {
	n    int
	fast Set
	slow twin
}

func fill(n int, member func() bool) pair {
	p := pair{n, New(n), twin{}}
	for i := range n {
		if member() {
			p.fast.Add(i)
			p.slow[i] = true
		}
	}
	return p
}

func (p pair) check(t *testing.T, what string) {
	t.Helper()
	want := p.slow.sorted()
	if got := slices.Collect(p.fast.All()); !slices.Equal(got, want) {
		t.Fatalf("%s over %d: All = %v, want %v", what, p.n, got, want)
	}
	first := -1
	if len(want) > 0 {
		first = want[0]
	}
	if got := p.fast.Count(); got != len(want) {
		t.Fatalf("%s over %d: Count = %d, want %d", what, p.n, got, len(want))
	}
	if got := p.fast.Empty(); got != (len(want) == 0) {
		t.Fatalf("%s over %d: Empty = %v with %v", what, p.n, got, want)
	}
	if got := p.fast.First(); got != first {
		t.Fatalf("%s over %d: First = %d, want %d", what, p.n, got, first)
	}
	for i := range p.n {
		if p.fast.Has(i) != p.slow[i] {
			t.Fatalf("%s over %d: Has(%d) = %v", what, p.n, i, !p.slow[i])
		}
		next, found := slices.BinarySearch(want, i)
		if found {
			next++
		}
		after := -1
		if next < len(want) {
			after = want[next]
		}
		if got := p.fast.Next(i); got != after {
			t.Fatalf("%s over %d: Next(%d) = %d, want %d", what, p.n, i, got, after)
		}
	}
}

// combine returns the twin of the result of an operation on two sets.
func combine(a, b pair, keep func(inA, inB bool) bool) twin {
	m := twin{}
	for i := range a.n {
		if keep(a.slow[i], b.slow[i]) {
			m[i] = true
		}
	}
	return m
}

func checkPair(t *testing.T, a, b pair) {
	t.Helper()
	and := combine(a, b, func(x, y bool) bool { return x && y })
	or := combine(a, b, func(x, y bool) bool { return x || y })
	less := combine(a, b, func(x, y bool) bool { return x && !y })
	a.check(t, "a")
	b.check(t, "b")

	s := New(a.n)
	And(s, a.fast, b.fast)
	pair{a.n, s, and}.check(t, "And")
	for _, op := range []struct {
		name string
		do   func(dst, b Set)
		want twin
	}{
		{"AndWith", Set.AndWith, and},
		{"OrWith", Set.OrWith, or},
		{"AndNotWith", Set.AndNotWith, less},
		{"CopyFrom", Set.CopyFrom, b.slow},
		{"And in place", func(dst, b Set) { And(dst, dst, b) }, and},
	} {
		dst := a.fast.Clone()
		op.do(dst, b.fast)
		pair{a.n, dst, op.want}.check(t, op.name)
	}
	a.check(t, "a, after its clones changed")
	if a.fast.Intersects(b.fast) != (len(and) > 0) || a.fast.Equal(b.fast) != maps.Equal(a.slow, b.slow) {
		t.Fatalf("Intersects %v, Equal %v of %v and %v", a.fast.Intersects(b.fast), a.fast.Equal(b.fast),
			a.slow.sorted(), b.slow.sorted())
	}
}

func TestTwin(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for _, n := range []int{0, 1, 63, 64, 65, 127, 128, 129, 200} {
		for _, density := range []int{1, 2, 20, 1000} {
			for range 20 {
				a := fill(n, func() bool { return random.Intn(density) == 0 })
				b := fill(n, func() bool { return random.Intn(2) == 0 })
				checkPair(t, a, b)
				checkPair(t, a, a)
			}
		}
	}
}

func TestFull(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 128, 130} {
		p := fill(n, func() bool { return true })
		p.fast = Full(n)
		p.check(t, "Full")
		for i := range n {
			p.fast.Remove(i)
		}
		pair{n, p.fast, twin{}}.check(t, "Full, all removed")
		if !p.fast.Equal(New(n)) {
			t.Errorf("Full(%d) has bits beyond its universe", n)
		}
	}
}

func TestNextOutsideTheUniverse(t *testing.T) {
	s := Full(70)
	for after, want := range map[int]int{-100: 0, -1: 0, 69: -1, 70: -1, 127: -1, 1000: -1} {
		if got := s.Next(after); got != want {
			t.Errorf("Next(%d) = %d, want %d", after, got, want)
		}
	}
}

func TestAllStopsEarlyAndAllowsRemoval(t *testing.T) {
	s, seen := Full(130), 0
	for i := range s.All() {
		s.Remove(i)
		if seen++; seen == 100 {
			break
		}
	}
	if seen != 100 {
		t.Errorf("seen %d, want 100", seen)
	}
	if s.First() != 100 || s.Count() != 30 {
		t.Errorf("%d remain from %d, want 30 from 100", s.Count(), s.First())
	}
}

func TestNoAllocations(t *testing.T) {
	a, b, dst := Full(700), Full(700), New(700)
	sum := 0
	got := testing.AllocsPerRun(100, func() {
		And(dst, a, b)
		dst.AndWith(a)
		dst.OrWith(b)
		dst.AndNotWith(a)
		dst.CopyFrom(b)
		dst.Remove(3)
		for i := range dst.All() {
			sum += i
		}
		sum += dst.Count() + dst.Next(5)
		if dst.Equal(a) || !dst.Intersects(b) || dst.Empty() {
			sum++
		}
	})
	if got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}

func FuzzTwin(f *testing.F) {
	f.Add(uint8(65), []byte{1, 2, 3}, []byte{3, 64})
	f.Add(uint8(0), []byte{}, []byte{1})
	f.Fuzz(func(t *testing.T, n uint8, a, b []byte) {
		set := func(members []byte) pair {
			i := -1
			return fill(int(n), func() bool { i++; return slices.Contains(members, byte(i)) })
		}
		checkPair(t, set(a), set(b))
	})
}

func BenchmarkAnd700(b *testing.B) {
	x, y, dst := Full(700), Full(700), New(700)
	b.ReportAllocs()
	for b.Loop() {
		And(dst, x, y)
	}
}

func BenchmarkAll700(b *testing.B) {
	s, sum := Full(700), 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range s.All() {
			sum += i
		}
	}
}
