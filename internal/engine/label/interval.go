package label

import (
	"math"
	"strconv"
)

// Representation: a closed range of int64 with both ends, so that the ends of int64 need no special value. It is
// empty if low > high. Every bound operator is one such range. Invariant: the range of a bound is a union of the
// intervals between the cut points that mentioning the bound adds. Cost: a few words by value, no allocation.

// interval is the integers low..high, inclusive; it is empty if low > high.
type interval struct {
	low, high int64
}

var (
	allIntegers = interval{math.MinInt64, math.MaxInt64}
	noIntegers  = interval{1, 0}
)

func (i interval) has(n int64) bool { return i.low <= n && n <= i.high }
func (i interval) empty() bool      { return i.low > i.high }

// isBound reports whether o is one of Gt, Lt, Gte, Lte.
func (o Operator) isBound() bool { return Gt <= o && o <= Lte }

// bounds returns the integers that a bound requirement allows.
func (r Requirement) bounds() interval {
	if len(r.Values) != 1 {
		return noIntegers
	}
	n, ok := parseInteger(r.Values[0])
	switch {
	case !ok:
		return noIntegers
	case r.Operator == Gt && n == math.MaxInt64, r.Operator == Lt && n == math.MinInt64:
		return noIntegers
	case r.Operator == Gt:
		return interval{n + 1, math.MaxInt64}
	case r.Operator == Lt:
		return interval{math.MinInt64, n - 1}
	case r.Operator == Gte:
		return interval{n, math.MaxInt64}
	}
	return interval{math.MinInt64, n}
}

// cut returns the lowest integer of the upper part when the range of a bound divides the integers into two parts. It
// returns false if the range allows all integers or none.
func (i interval) cut() (int64, bool) {
	switch {
	case i.empty() || i == allIntegers:
		return 0, false
	case i.high == math.MaxInt64:
		return i.low, true
	}
	return i.high + 1, true
}

// requirements returns the range as Gte and Lte requirements, each only where needed.
func (i interval) requirements(key string) []Requirement {
	var reqs []Requirement
	if i.low != math.MinInt64 || i.high == math.MaxInt64 {
		reqs = append(reqs, Requirement{Key: key, Operator: Gte, Values: []string{strconv.FormatInt(i.low, 10)}})
	}
	if i.high != math.MaxInt64 {
		reqs = append(reqs, Requirement{Key: key, Operator: Lte, Values: []string{strconv.FormatInt(i.high, 10)}})
	}
	return reqs
}
