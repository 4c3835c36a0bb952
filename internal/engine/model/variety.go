package model

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// Variety counts the values of a label that a node of given types and offerings may have; minValues requires a least
// number of them. A label that offerings state, such as the zone, has the values of the offerings that are available:
// what a type has in other zones is not a choice for the claim. Any other label has the values of the types.
type Variety struct {
	// Key is the label's number in the space.
	Key   label.Key
	index *TypeIndex
	// byType are the values of types, byClass those of classes of offerings; one of the two is nil.
	byType  [][]varietyValue
	byClass []int
	// numbers of the values.
	numbers map[string]int
}

// varietyValue is a value of a type: its number, and its atom, -1 if the space does not know the label.
type varietyValue struct{ number, atom int }

// NewVariety returns the variety of a label among the types.
func (x *TypeIndex) NewVariety(key string) *Variety {
	k, known := x.space.Lookup(key)
	v := &Variety{Key: k, index: x, numbers: map[string]int{}}
	if slices.ContainsFunc(x.Classes, func(c OfferClass) bool { return c.value(key) != "" }) {
		for i := range x.Classes {
			v.byClass = append(v.byClass, v.number(x.Classes[i].value(key)))
		}
		return v
	}
	v.byType = make([][]varietyValue, x.Len())
	for t := range x.Catalog.Types {
		for _, value := range x.Catalog.Types[t].values(key) {
			one := varietyValue{v.number(value), -1}
			if known {
				one.atom = x.space.Atom(k, value)
			}
			v.byType[t] = append(v.byType[t], one)
		}
	}
	return v
}

// number returns the number of a value, -1 of none.
func (v *Variety) number(value string) int {
	if value == "" {
		return -1
	}
	n, known := v.numbers[value]
	if !known {
		n = len(v.numbers)
		v.numbers[value] = n
	}
	return n
}

// Count returns how many values the types have together within the row, in the classes of offerings.
func (v *Variety) Count(types bitset.Set, row label.Row, classes []int) int {
	seen := bitset.New(len(v.numbers))
	if v.byClass != nil {
		for _, i := range classes {
			if n := v.byClass[i]; n >= 0 && v.index.Classes[i].Types.Intersects(types) {
				seen.Add(n)
			}
		}
		return seen.Count()
	}
	for t := range types.All() {
		for _, one := range v.byType[t] {
			if one.atom < 0 || v.index.space.HasAtom(row, v.Key, one.atom) {
				seen.Add(one.number)
			}
		}
	}
	return seen.Count()
}

// value returns the value of a label that the offerings of the class state, or "".
func (c *OfferClass) value(key string) string {
	switch key {
	case LabelZone:
		return c.Zone
	case LabelCapacityType:
		return c.CapacityType
	}
	for _, r := range c.further {
		if r.Key == key && r.Operator == label.In && len(r.Values) == 1 {
			return r.Values[0]
		}
	}
	return ""
}

// values returns the values of a label that the type itself states.
func (t *InstanceType) values(key string) []string {
	if key == LabelType {
		return []string{t.Name}
	}
	var values []string
	for _, r := range t.Requirements {
		if r.Key == key && r.Operator == label.In {
			values = append(values, r.Values...)
		}
	}
	return values
}
