package label

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// Union returns alternatives with the same meaning as the given ones, often fewer and with fewer values. Alternatives
// that differ only in one requirement, an In or a NotIn of the same key, are merged into one with the union of their
// sets. For example, 6,000 alternatives with NotIn of one value each require nothing of that key. An alternative
// without requirements makes all others redundant.
//
// Cost: one pass over all requirements for each key, repeated until nothing more can be merged, or until mostVisited
// requirements were visited. Alternatives with many keys are merged in part only.
func Union(alternatives [][]Requirement) [][]Requirement {
	keys := map[string]bool{}
	for _, reqs := range alternatives {
		for _, r := range reqs {
			keys[Canonical(r.Key)] = true
		}
	}
	names := slices.Sorted(maps.Keys(keys))
	visited := 0
	for merged := true; merged; {
		merged = false
		for _, key := range names {
			for _, reqs := range alternatives {
				visited += len(reqs)
			}
			if visited > mostVisited {
				return alternatives
			}
			before := len(alternatives)
			alternatives = unionOn(key, alternatives)
			merged = merged || len(alternatives) < before
		}
	}
	return alternatives
}

// mostVisited bounds the work of Union: a few tenths of a second.
const mostVisited = 2 << 20

// unionOn merges the alternatives that differ only in their single requirement of the key. The first of them keeps
// its position.
func unionOn(key string, alternatives [][]Requirement) [][]Requirement {
	at := map[string]int{} // position in the result by the other requirements
	sets := map[int]*valueSet{}
	var result [][]Requirement
	var rest []byte
	for _, reqs := range alternatives {
		if len(reqs) == 0 {
			return [][]Requirement{{}}
		}
		i := soleSet(key, reqs)
		if i < 0 {
			result = append(result, reqs)
			continue
		}
		rest = appendRest(rest[:0], reqs, i)
		place, known := at[string(rest)]
		if !known {
			place = len(result)
			at[string(rest)], sets[place] = place, &valueSet{index: i}
			result = append(result, reqs)
		}
		sets[place].add(reqs[i])
	}
	for place, set := range sets {
		if set.members > 1 {
			result[place] = set.put(result[place])
		}
	}
	if i := slices.IndexFunc(result, func(reqs []Requirement) bool { return len(reqs) == 0 }); i >= 0 {
		return result[i : i+1]
	}
	return result
}

// soleSet returns the index of the only requirement of the key if it is an In or a NotIn, else -1.
func soleSet(key string, reqs []Requirement) int {
	sole := -1
	for i, r := range reqs {
		if Canonical(r.Key) != key {
			continue
		}
		if sole >= 0 || r.Operator != In && r.Operator != NotIn {
			return -1
		}
		sole = i
	}
	return sole
}

// appendRest encodes all requirements but one, in an order that does not depend on the input order.
func appendRest(to []byte, reqs []Requirement, without int) []byte {
	parts := make([]string, 0, len(reqs))
	for i, r := range reqs {
		if i == without {
			continue
		}
		part := binary.AppendUvarint(nil, uint64(r.Operator))
		part = appendText(part, Canonical(r.Key))
		values := slices.Clone(r.Values)
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			part = appendText(part, value)
		}
		parts = append(parts, string(part))
	}
	slices.Sort(parts)
	for _, part := range parts {
		to = appendText(to, part)
	}
	return to
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// valueSet is a union: the values in it, or, for a complement, the values not in it.
type valueSet struct {
	index      int // of the requirement in its alternative
	members    int
	complement bool
	values     map[string]bool
}

func (s *valueSet) add(r Requirement) {
	s.members++
	given := make(map[string]bool, len(r.Values))
	for _, value := range r.Values {
		given[value] = true
	}
	has := func(in map[string]bool, want bool) func(string, bool) bool {
		return func(value string, _ bool) bool { return in[value] == want }
	}
	switch {
	case s.members == 1:
		s.values, s.complement = given, r.Operator == NotIn
	case s.complement && r.Operator == NotIn: // excludes only the values that both exclude
		maps.DeleteFunc(s.values, has(given, false))
	case s.complement:
		maps.DeleteFunc(s.values, has(given, true))
	case r.Operator == NotIn:
		maps.DeleteFunc(given, has(s.values, true))
		s.values, s.complement = given, true
	default:
		maps.Copy(s.values, given)
	}
}

// put returns the alternative with its requirement replaced by the union. It removes the requirement if the union is
// NotIn without values.
func (s *valueSet) put(reqs []Requirement) []Requirement {
	if s.complement && len(s.values) == 0 {
		return slices.Delete(slices.Clone(reqs), s.index, s.index+1)
	}
	operator := In
	if s.complement {
		operator = NotIn
	}
	reqs = slices.Clone(reqs)
	reqs[s.index] = Requirement{Key: reqs[s.index].Key, Operator: operator, Values: slices.SortedFunc(maps.Keys(s.values), strings.Compare)}
	return reqs
}
