package placement

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestDomainQuotaAgainstTheTwin compares how many pods a domain may get with a plain search: whether the pods that are
// left then can be divided among the domains, or stay, such that no domain that got pods exceeds the least count by more
// than maxSkew.
func TestDomainQuotaAgainstTheTwin(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		q := &skewLimits{maxSkew: 1 + r.IntN(3), floor: math.MaxInt, left: r.IntN(7)}
		if r.IntN(3) == 0 {
			q.floor = r.IntN(4)
		}
		for range 1 + r.IntN(3) {
			count := r.IntN(4)
			q.most, q.least = append(q.most, count), append(q.least, count)
		}
		q.may = make([]int, len(q.most))
		q.update()
		for at := range q.may {
			want := 0
			for n := 1; n <= q.left; n++ {
				counts, got := append([]int(nil), q.least...), make([]bool, len(q.least))
				counts[at] += n
				got[at] = true
				if dividable(q, counts, got, q.left-n, 0) {
					want = n
				}
			}
			if q.may[at] != want {
				t.Fatalf("seed %d: domain %d of %v may get %d of %d pods with maxSkew %d and floor %d, want %d",
					seed, at, q.least, q.may[at], q.left, q.maxSkew, q.floor, want)
			}
		}
	}
}

// dividable reports whether the pods can be divided among the domains from the given one on.
func dividable(q *skewLimits, counts []int, got []bool, pods, from int) bool {
	if from == len(counts) {
		least := q.floor // pods that are left may stay without a node
		for _, count := range counts {
			least = min(least, count)
		}
		for i, count := range counts {
			if got[i] && count-least > q.maxSkew {
				return false
			}
		}
		return true
	}
	for n := range pods + 1 {
		before := got[from]
		counts[from] += n
		got[from] = before || n > 0
		ok := dividable(q, counts, got, pods-n, from+1)
		counts[from] -= n
		got[from] = before
		if ok {
			return true
		}
	}
	return false
}
