package quantity

import (
	"math"
	"math/bits"
	"slices"
)

// Vector is an amount of each resource, indexed by Resource, in the units of the Resource constants. Amounts beyond
// its end are zero. The nil vector is zero. Amounts may be negative: the free resources of an overcommitted node are.
type Vector []int64

// At returns the amount of r.
func (v Vector) At(r Resource) int64 {
	if int(r) < len(v) {
		return v[r]
	}
	return 0
}

// FirstShort returns the lowest resource that prevents a request v from fitting into the available amounts in: one
// that is requested (more than zero) and of which less is available, or one whose available amount is negative,
// requested or not. It returns false if v fits.
func (v Vector) FirstShort(in Vector) (Resource, bool) {
	both := min(len(v), len(in))
	for r, have := range in[:both] {
		if have < 0 || v[r] > have {
			return Resource(r), true
		}
	}
	for r, want := range v[both:] {
		if want > 0 {
			return Resource(both + r), true
		}
	}
	for r, have := range in[both:] {
		if have < 0 {
			return Resource(both + r), true
		}
	}
	return 0, false
}

// Fits reports whether a request v fits into the available amounts in. Nothing fits, not even the zero vector, if any
// available amount is negative: such a node is overcommitted and must not get more of anything.
func (v Vector) Fits(in Vector) bool {
	_, short := v.FirstShort(in)
	return !short
}

// Times returns how many copies of the request v fit into the available amounts in together: 0 if and only if v does
// not fit, math.MaxInt64 if it fits and requests nothing.
func (v Vector) Times(in Vector) int64 {
	if !v.Fits(in) {
		return 0
	}
	times := int64(math.MaxInt64)
	for r, want := range v {
		if want > 0 {
			times = min(times, in[r]/want)
		}
	}
	return times
}

// TimesUpTo returns the minimum of n, which must not be negative, and Times.
func (v Vector) TimesUpTo(in Vector, n int64) int64 {
	if !v.Fits(in) {
		return 0
	}
	for r, want := range v {
		// The division takes longer than the check that it is not needed.
		if want > 0 && (!moderate(n, want) || n*want > in[r]) {
			n = min(n, in[r]/want)
		}
	}
	return n
}

// Add returns v + w.
func (v Vector) Add(w Vector) Vector {
	return v.zip(w, Add)
}

// Sub returns v - w.
func (v Vector) Sub(w Vector) Vector {
	return v.zip(w, Sub)
}

// Max returns the larger of v and w for each resource.
func (v Vector) Max(w Vector) Vector {
	return v.zip(w, func(a, b int64) int64 { return max(a, b) })
}

// Raise raises v in place to at least w, and returns it. If w is longer, the result is longer and may be in other
// memory.
func (v Vector) Raise(w Vector) Vector {
	for r, have := range v {
		v[r] = max(have, w.At(Resource(r)))
	}
	if len(w) > len(v) {
		v = slices.Grow(v, len(w)-len(v))
		for _, more := range w[len(v):] {
			v = append(v, max(0, more))
		}
	}
	return v
}

// Min returns the smaller of v and w for each resource.
func (v Vector) Min(w Vector) Vector {
	return v.zip(w, func(a, b int64) int64 { return min(a, b) })
}

func (v Vector) zip(w Vector, f func(a, b int64) int64) Vector {
	out := make(Vector, max(len(v), len(w)))
	for r := range out {
		out[r] = f(v.At(Resource(r)), w.At(Resource(r)))
	}
	return out
}

// AddScaled adds n copies of w to v in place; n may be negative. It panics if v is shorter than w, since a slice
// cannot grow in place.
func (v Vector) AddScaled(w Vector, n int64) {
	v = v[:len(w)]
	for r, x := range w {
		if moderate(n, x) {
			v[r] = Add(v[r], n*x)
		} else {
			v[r] = Add(v[r], mul(x, n))
		}
	}
}

// Scaled returns n times v.
func (v Vector) Scaled(n int64) Vector {
	out := make(Vector, len(v))
	out.AddScaled(v, n)
	return out
}

// Clone returns a copy that shares nothing with v.
func (v Vector) Clone() Vector {
	return slices.Clone(v)
}

// Equal reports whether v and w have the same amount of every resource.
func (v Vector) Equal(w Vector) bool {
	both := min(len(v), len(w))
	return slices.Equal(v[:both], w[:both]) && v[both:].IsZero() && w[both:].IsZero()
}

// IsZero reports whether every amount is zero.
func (v Vector) IsZero() bool {
	for _, x := range v {
		if x != 0 {
			return false
		}
	}
	return true
}

// Add returns a + b, or the nearest int64.
func Add(a, b int64) int64 {
	sum := a + b
	if (a < 0) == (b < 0) && (sum < 0) != (a < 0) {
		return limit(a < 0)
	}
	return sum
}

// Sub returns a - b, or the nearest int64.
func Sub(a, b int64) int64 {
	diff := a - b
	if (a < 0) != (b < 0) && (diff < 0) != (a < 0) {
		return limit(a < 0)
	}
	return diff
}

func mul(a, b int64) int64 {
	negative := (a < 0) != (b < 0)
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	switch {
	case high == 0 && low <= math.MaxInt64 && negative:
		return -int64(low)
	case high == 0 && low <= math.MaxInt64:
		return int64(low)
	}
	return limit(negative) // exactly -2^63 saturates to itself
}

// moderate reports whether n (of pods) is less than 2^15 and x (of a resource) less than 2^47, as almost always, so
// that their product cannot overflow.
func moderate(n, x int64) bool {
	return uint64(n)+1<<15 < 1<<16 && uint64(x)+1<<47 < 1<<48
}

// magnitude returns |a|, also for the lowest int64, whose absolute value is not an int64.
func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

func limit(negative bool) int64 {
	if negative {
		return math.MinInt64
	}
	return math.MaxInt64
}
