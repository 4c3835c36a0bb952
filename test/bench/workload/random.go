package workload

import (
	"fmt"
	"math/bits"
)

// random is splitmix64, seeded with a hash (64-bit FNV-1a) of its purpose.
type random struct{ state uint64 }

func newRandom(purpose ...any) *random {
	h := uint64(0xCBF29CE484222325)
	for _, p := range purpose {
		for _, b := range append(fmt.Append(nil, p), 0) {
			h = (h ^ uint64(b)) * 0x100000001B3
		}
	}
	return &random{h}
}

func (r *random) next() uint64 {
	r.state += 0x9E3779B97F4A7C15
	z := r.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below returns a number from 0 to n-1.
func (r *random) below(n int) int { return int(bits.Rem64(0, r.next(), uint64(n))) }

// fraction returns a number of at least 0 and less than 1.
func (r *random) fraction() float64 { return float64(r.next()>>11) / (1 << 53) }

// chance returns true with the probability p.
func (r *random) chance(p float64) bool { return r.fraction() < p }

// between returns base + width*fraction. The conversion keeps a compiler from fusing the two operations.
func (r *random) between(base, width float64) float64 { return base + float64(width*r.fraction()) }

func (r *random) uid() string {
	a, b := r.next(), r.next()
	h := fmt.Sprintf("%016x%016x", a, b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func pick[T any](r *random, from []T) T { return from[r.below(len(from))] }

func shuffle[T any](r *random, s []T) {
	for i := len(s) - 1; i > 0; i-- {
		j := r.below(i + 1)
		s[i], s[j] = s[j], s[i]
	}
}

// weighted is a value and its relative frequency.
type weighted[T any] struct {
	value  T
	weight float64
}

func pickWeighted[T any](r *random, from []weighted[T]) T {
	total := 0.0
	for _, w := range from {
		total += w.weight
	}
	x := r.fraction() * total
	for _, w := range from {
		if x -= w.weight; x < 0 {
			return w.value
		}
	}
	return from[len(from)-1].value
}
