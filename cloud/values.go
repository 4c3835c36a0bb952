package cloud

import (
	"maps"
	"math"
	"slices"
	"strconv"
)

// Values is the set of values that a label may have. The absence of the label is a member like any other: NotIn and
// DoesNotExist admit it, the other operators do not. The zero Values is empty.
//
// Representation: either the listed values (rest is false) or every value except the listed ones (rest is true). The
// latter is limited to the integers of low..high if bounded is true. A set that lists its values has no bounds: they
// have been applied.
type Values struct {
	listed    map[string]bool
	rest      bool
	absent    bool
	bounded   bool
	low, high int64
}

// AnyValue returns the unrestricted set: every value, and absence.
func AnyValue() Values {
	return Values{rest: true, absent: true, low: math.MinInt64, high: math.MaxInt64}
}

// Narrow returns the part of v that an operator and its values allow: In, NotIn, Exists, DoesNotExist, or Gt, Lt, Gte,
// Lte with one integer. Bounds admit integers only. An invalid input (an unknown operator, a bound that is not an
// integer) results in the empty set, because nothing is known to satisfy it.
func (v Values) Narrow(operator string, values []string) Values {
	switch operator {
	case "In":
		return v.only(values)
	case "NotIn":
		return v.without(values)
	case "Exists":
		v.absent = false
		return v
	case "DoesNotExist":
		return Values{absent: v.absent}
	}
	if len(values) != 1 {
		return Values{}
	}
	bound, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		return Values{}
	}
	return v.bound(operator, bound)
}

func (v Values) only(values []string) Values {
	narrowed := Values{listed: make(map[string]bool, len(values))}
	for _, value := range values {
		if v.Has(value) {
			narrowed.listed[value] = true
		}
	}
	return narrowed
}

func (v Values) without(values []string) Values {
	listed := make(map[string]bool, len(v.listed)+len(values))
	maps.Copy(listed, v.listed)
	for _, value := range values {
		if v.rest {
			listed[value] = true
		} else {
			delete(listed, value)
		}
	}
	v.listed = listed
	return v
}

func (v Values) bound(operator string, bound int64) Values {
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	switch {
	case operator == "Gte":
		low = bound
	case operator == "Lte":
		high = bound
	case operator == "Gt" && bound < math.MaxInt64:
		low = bound + 1
	case operator == "Lt" && bound > math.MinInt64:
		high = bound - 1
	default:
		return Values{}
	}
	cut := Values{rest: true, bounded: true, low: low, high: high}
	if !v.rest {
		return cut.only(slices.Collect(maps.Keys(v.listed)))
	}
	v.absent, v.bounded = false, true
	v.low, v.high = max(v.low, low), min(v.high, high)
	return v
}

// Has reports whether the label may have the value.
func (v Values) Has(value string) bool {
	if !v.rest {
		return v.listed[value]
	}
	if v.listed[value] {
		return false
	}
	if !v.bounded {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && n >= v.low && n <= v.high
}

// HasAbsence reports whether the label may be absent.
func (v Values) HasAbsence() bool { return v.absent }

// Meets reports whether some value, or absence, is in both sets.
func (v Values) Meets(other Values) bool {
	switch {
	case v.absent && other.absent:
		return true
	case !v.rest:
		return other.hasAny(v.listed)
	case !other.rest:
		return v.hasAny(other.listed)
	}
	both := v.without(slices.Collect(maps.Keys(other.listed)))
	both.bounded = v.bounded || other.bounded
	both.low, both.high = max(v.low, other.low), min(v.high, other.high)
	return both.restHasMember()
}

func (v Values) hasAny(values map[string]bool) bool {
	for value := range values {
		if v.Has(value) {
			return true
		}
	}
	return false
}

// restHasMember reports whether a set with rest has any value. It does unless its range of integers is empty or every
// integer in it is excluded.
func (v Values) restHasMember() bool {
	if !v.bounded {
		return true
	}
	n := v.low
	for range len(v.listed) + 1 {
		if n > v.high {
			return false
		}
		if !v.listed[strconv.FormatInt(n, 10)] {
			return true
		}
		if n == math.MaxInt64 {
			return false
		}
		n++
	}
	return false
}

// Single returns the value if the label must be present and can have only one value.
func (v Values) Single() (string, bool) {
	if v.rest || v.absent || len(v.listed) != 1 {
		return "", false
	}
	for value := range v.listed {
		return value, true
	}
	return "", false
}
