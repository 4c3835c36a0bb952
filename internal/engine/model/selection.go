package model

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// Matching of classes against marks whose selectors list many values.
//
// Pods with anti-affinity to each other list each other: n selectors of n values each, which are matched against n
// classes. Scanning the values takes n^3 steps. So the values of long lists are numbered, a long list is stored as
// sorted numbers, and a class is looked up in it: this takes n^2 log n steps, and n^2 is the size of the input.

// compiled holds what is computed about a mark's selector when the mark is interned.
type compiled struct {
	// lists holds the values of the requirements as numbers: a nil entry for each requirement with few values, and
	// nil if no requirement has many.
	lists []*numbers
	// repeats says that the selector equals that of the previous mark, as for a carrier.
	repeats bool
}

// compileSelector compiles the selector of the newest mark, which has the canonical form.
func (in *interner) compileSelector(canonical string) {
	c := compiled{repeats: len(in.selectors) > 0 && in.newestSelector == canonical}
	if c.repeats {
		c.lists = in.selectors[len(in.selectors)-1].lists
	} else {
		c.lists = in.values.lists(&in.marks[len(in.marks)-1].Selector)
	}
	in.selectors, in.newestSelector = append(in.selectors, c), canonical
}

// fewValues is the length up to which lists are scanned.
const fewValues = 8

// valueTable numbers the values in long lists of selectors, by key.
type valueTable map[string]map[string]int32

// numbers is a set of numbers: a bitset if it takes no more memory than the sorted list, else the sorted list.
type numbers struct {
	sorted []int32
	bits   bitset.Set
}

func newNumbers(list []int32) *numbers {
	slices.Sort(list)
	const bitsOfNumber = 32
	largest := int(list[len(list)-1])
	if largest >= bitsOfNumber*len(list) {
		return &numbers{sorted: list}
	}
	bits := bitset.New(largest + 1)
	for _, n := range list {
		bits.Add(int(n))
	}
	return &numbers{bits: bits}
}

func (s *numbers) has(n int32) bool {
	if s.bits != nil {
		return int(n/64) < len(s.bits) && s.bits.Has(int(n))
	}
	_, has := slices.BinarySearch(s.sorted, n)
	return has
}

// number returns the number of the value, a new one if it has none.
func (v valueTable) number(key, value string) int32 {
	byValue := v[key]
	if byValue == nil {
		byValue = map[string]int32{}
		v[key] = byValue
	}
	n, known := byValue[value]
	if !known {
		n = int32(len(byValue))
		byValue[value] = n
	}
	return n
}

// lists returns the values of the selector's requirements as numbers, see compiled.
func (v valueTable) lists(s *Selector) []*numbers {
	var lists []*numbers
	for i, r := range s.Requirements {
		if len(r.Values) <= fewValues || r.Operator != label.In && r.Operator != label.NotIn {
			continue
		}
		if lists == nil {
			lists = make([]*numbers, len(s.Requirements))
		}
		list := make([]int32, len(r.Values))
		for j, value := range r.Values {
			list[j] = v.number(r.Key, value)
		}
		lists[i] = newNumbers(list)
	}
	return lists
}

// selects is Selector.Selects for a mark and a class.
func (in *interner) selects(mark int, c *class) bool {
	s := &in.marks[mark].Selector
	lists := in.selectors[mark].lists
	if lists == nil {
		return s.Selects(c.namespace, c.labels)
	}
	if !s.looksInto(c.namespace) {
		return false
	}
	for i := range s.Requirements {
		r := &s.Requirements[i]
		if lists[i] == nil {
			if !requires(r, c.labels) {
				return false
			}
			continue
		}
		value, has := c.labels[r.Key]
		if has {
			var n int32
			if n, has = in.values[r.Key][value]; has {
				has = lists[i].has(n)
			}
		}
		if has != (r.Operator == label.In) {
			return false
		}
	}
	return true
}

// looksInto reports whether the selector may select pods of the namespace.
func (s *Selector) looksInto(namespace string) bool {
	return !s.Nothing && (s.AllNamespaces || slices.Contains(s.Namespaces, namespace))
}

// requires reports whether the labels satisfy the requirement.
func requires(r *label.Requirement, labels map[string]string) bool {
	value, has := labels[r.Key]
	switch r.Operator {
	case label.In:
		return has && slices.Contains(r.Values, value)
	case label.NotIn:
		return !has || !slices.Contains(r.Values, value)
	case label.Exists:
		return has
	case label.DoesNotExist:
		return !has
	}
	return false
}
