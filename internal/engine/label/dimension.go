package label

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
)

// Representation: one label key and its atoms, numbered in this order: the mentioned values, sorted as strings; the
// integer intervals between cuts, ascending (only if the key has bounds); "other"; "absent". A set of atoms is a
// bitset.Set. Invariant: every string belongs to exactly one atom, and every atom has at least one string that is not
// mentioned or is a mentioned value itself: even the interval 7..7 beside a value "7" has "07". A dimension is
// immutable. Cost: finding the atom of a value takes one map lookup and, for integers, a binary search; narrowing in
// place allocates nothing up to 2,048 atoms.

// dimension is one label key and its atoms.
type dimension struct {
	name      string
	alias     string // the deprecated spelling of the key, or ""
	values    []string
	index     map[string]int // value -> atom
	integers  []int          // atoms of the values that are integers
	numbers   []int64        // their numeric values
	intervals []interval     // empty when the key has no bounds
	all       bitset.Set
}

func newDimension(name string, m *mentioned) *dimension {
	d := &dimension{name: name, alias: aliasOf(name), values: slices.Sorted(maps.Keys(m.values))}
	d.index = make(map[string]int, len(d.values))
	for atom, value := range d.values {
		d.index[value] = atom
		if n, ok := parseInteger(value); ok {
			d.integers = append(d.integers, atom)
			d.numbers = append(d.numbers, n)
		}
	}
	if m.bounded {
		low := int64(math.MinInt64)
		for _, cut := range slices.Sorted(maps.Keys(m.cuts)) {
			d.intervals = append(d.intervals, interval{low, cut - 1})
			low = cut
		}
		d.intervals = append(d.intervals, interval{low, math.MaxInt64})
	}
	d.all = bitset.Full(d.atoms())
	return d
}

func (d *dimension) atoms() int  { return d.absent() + 1 }
func (d *dimension) absent() int { return d.other() + 1 }
func (d *dimension) other() int  { return len(d.values) + len(d.intervals) }

// firstInterval returns the atom of the lowest interval; the other intervals follow it.
func (d *dimension) firstInterval() int { return len(d.values) }

// atom returns the atom of a value.
func (d *dimension) atom(value string) int {
	if atom, ok := d.index[value]; ok {
		return atom
	}
	if len(d.intervals) > 0 {
		if n, ok := parseInteger(value); ok {
			return d.firstInterval() + d.intervalOf(n)
		}
	}
	return d.other()
}

// intervalOf returns the index of the interval that contains n. The key must have bounds.
func (d *dimension) intervalOf(n int64) int {
	i, _ := slices.BinarySearchFunc(d.intervals, n, func(i interval, n int64) int {
		switch {
		case i.high < n:
			return -1
		case i.low > n:
			return 1
		}
		return 0
	})
	return i
}

// narrow removes from set the atoms that r does not allow.
func (d *dimension) narrow(set bitset.Set, r Requirement) {
	switch r.Operator {
	case In:
		d.keepValues(set, r)
	case NotIn:
		for _, value := range r.Values {
			set.Remove(d.mustIndex(value, r))
		}
	case Exists:
		set.Remove(d.absent())
	case DoesNotExist:
		d.keepOnly(set, d.absent())
	case Gt, Lt, Gte, Lte:
		d.keepIntegers(set, r)
	default:
		panic(fmt.Sprintf("label: requirement on %s with %s, which is no operator", r.Key, r.Operator))
	}
}

func (d *dimension) keepValues(set bitset.Set, r Requirement) {
	if len(r.Values) == 1 {
		d.keepOnly(set, d.mustIndex(r.Values[0], r))
		return
	}
	var buffer [32]uint64
	keep := bitset.Set(buffer[:])
	if len(set) > len(buffer) {
		keep = make(bitset.Set, len(set))
	}
	for _, value := range r.Values {
		keep.Add(d.mustIndex(value, r))
	}
	set.AndWith(keep)
}

func (d *dimension) keepOnly(set bitset.Set, atom int) {
	had := set.Has(atom)
	clear(set)
	if had {
		set.Add(atom)
	}
}

func (d *dimension) keepIntegers(set bitset.Set, r Requirement) {
	bounds := r.bounds()
	if bounds.empty() {
		clear(set)
		return
	}
	d.mustHaveCut(bounds, r)
	intervals := d.firstInterval()
	if len(d.integers) < len(d.values) {
		d.removeWords(set)
	}
	for i, atom := range d.integers {
		if !bounds.has(d.numbers[i]) {
			set.Remove(atom)
		}
	}
	for i, interval := range d.intervals {
		if !bounds.has(interval.low) {
			set.Remove(intervals + i)
		}
	}
	set.Remove(d.other())
	set.Remove(d.absent())
}

// removeWords removes the mentioned values that are not integers.
func (d *dimension) removeWords(set bitset.Set) {
	next := 0
	for atom := range d.values {
		if next < len(d.integers) && d.integers[next] == atom {
			next++
			continue
		}
		set.Remove(atom)
	}
}

func (d *dimension) mustIndex(value string, r Requirement) int {
	atom, ok := d.index[value]
	if !ok {
		panic(fmt.Sprintf("label: value %q of %s was never mentioned", value, r.Key))
	}
	return atom
}

func (d *dimension) mustHaveCut(bounds interval, r Requirement) {
	known := len(d.intervals) > 0
	if n, ok := bounds.cut(); ok && known {
		known = d.intervals[d.intervalOf(n)].low == n
	}
	if !known {
		panic(fmt.Sprintf("label: bound %s was never mentioned", r))
	}
}

// pick returns a concrete value of the set: see Space.Pick.
func (d *dimension) pick(set bitset.Set) (string, bool) {
	atom := set.First()
	switch {
	case atom < 0 || atom == d.absent():
		return "", false
	case atom < d.firstInterval():
		return d.values[atom], true
	case atom == d.other():
		return d.unmentionedWord(), true
	}
	return d.pickInteger(set), true
}

// pickInteger returns an unmentioned integer of the intervals in the set: the smallest that is not negative; if all
// of those are mentioned, one of them with leading zeros; if all are negative, the same for the one nearest to zero.
func (d *dimension) pickInteger(set bitset.Set) string {
	var natural, negative []interval
	for i, interval := range d.intervals {
		switch {
		case !set.Has(d.firstInterval() + i):
		case interval.high < 0:
			negative = append(negative, interval)
		default:
			interval.low = max(interval.low, 0)
			natural = append(natural, interval)
		}
	}
	for _, interval := range natural {
		for n := interval.low; ; n++ {
			if s := strconv.FormatInt(n, 10); !d.mentions(s) {
				return s
			}
			if n == interval.high {
				break
			}
		}
	}
	if len(natural) > 0 {
		return d.padded("", strconv.FormatInt(natural[0].low, 10))
	}
	nearest := strconv.FormatInt(negative[len(negative)-1].high, 10)
	if !d.mentions(nearest) {
		return nearest
	}
	return d.padded("-", nearest[1:])
}

// padded returns the number with the fewest leading zeros, at least one, that make it unmentioned.
func (d *dimension) padded(sign, digits string) string {
	number := sign + "0" + digits
	for d.mentions(number) {
		digits = "0" + digits
		number = sign + "0" + digits
	}
	return number
}

// unmentionedWord returns "any", or the first of "any-2", "any-3" and so on that is not mentioned.
func (d *dimension) unmentionedWord() string {
	word := "any"
	for i := 2; d.mentions(word); i++ {
		word = "any-" + strconv.Itoa(i)
	}
	return word
}

func (d *dimension) mentions(value string) bool {
	_, ok := d.index[value]
	return ok
}

// requirements returns a set as API requirements: see Space.Requirements.
func (d *dimension) requirements(set bitset.Set) []Requirement {
	absent, other := set.Has(d.absent()), set.Has(d.other())
	named := d.named(set)
	span, bounded := d.hull(set)
	switch {
	case set.Empty():
		return []Requirement{{Key: d.name, Operator: Exists}, {Key: d.name, Operator: DoesNotExist}}
	case absent && !other && !bounded && len(named) == 0:
		return []Requirement{{Key: d.name, Operator: DoesNotExist}}
	case !absent && !other && !bounded:
		return []Requirement{{Key: d.name, Operator: In, Values: named}}
	case !absent && !other && d.onlyIntegers(set):
		return append(span.requirements(d.name), d.notIn(d.missing(set, span))...)
	case !absent:
		return append([]Requirement{{Key: d.name, Operator: Exists}}, d.notIn(d.missingAny(set))...)
	}
	return d.notIn(d.missingAny(set))
}

// named returns the mentioned values in the set, sorted.
func (d *dimension) named(set bitset.Set) []string {
	var values []string
	for atom := set.First(); atom >= 0 && atom < d.firstInterval(); atom = set.Next(atom) {
		values = append(values, d.values[atom])
	}
	return values
}

// onlyIntegers reports whether every mentioned value in the set is an integer.
func (d *dimension) onlyIntegers(set bitset.Set) bool {
	words := set.Clone()
	for _, atom := range d.integers {
		words.Remove(atom)
	}
	first := words.First()
	return first < 0 || first >= d.firstInterval()
}

// hull returns the smallest range of whole intervals that contains the intervals and integers in the set. It returns
// false if the set contains no interval.
func (d *dimension) hull(set bitset.Set) (interval, bool) {
	hull, found := interval{math.MaxInt64, math.MinInt64}, false
	grow := func(by interval) {
		hull = interval{min(hull.low, by.low), max(hull.high, by.high)}
	}
	for i, interval := range d.intervals {
		if set.Has(d.firstInterval() + i) {
			grow(interval)
			found = true
		}
	}
	if !found {
		return interval{}, false
	}
	for i, atom := range d.integers {
		if set.Has(atom) {
			grow(d.intervals[d.intervalOf(d.numbers[i])])
		}
	}
	return hull, true
}

// missingAny returns the mentioned values that are not in the set, sorted.
func (d *dimension) missingAny(set bitset.Set) []string {
	var values []string
	for atom, value := range d.values {
		if !set.Has(atom) {
			values = append(values, value)
		}
	}
	return values
}

// missing returns the mentioned integers within the bounds that are not in the set, sorted as strings.
func (d *dimension) missing(set bitset.Set, bounds interval) []string {
	var values []string
	for i, atom := range d.integers {
		if bounds.has(d.numbers[i]) && !set.Has(atom) {
			values = append(values, d.values[atom])
		}
	}
	return values
}

func (d *dimension) notIn(values []string) []Requirement {
	if len(values) == 0 {
		return nil
	}
	return []Requirement{{Key: d.name, Operator: NotIn, Values: values}}
}
