package spotshare

import (
	"cmp"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
)

// Slot is where a bin may be launched: a class of offerings, with some of its types. The class is -1 for all that is
// not spot.
type Slot struct {
	Class int
	Kinds bitset.Set
	Price int64
	load  int64
}

// Slots lists where a bin may be launched that was chosen as a node of one type and may become others, in the classes:
// the cheapest first; of equals the one with the least load.
func (s *Share) Slots(chosen int, others bitset.Set, classes []int) []Slot {
	var list []Slot
	var plain []int
	for _, i := range classes {
		c := &s.pool.Types.Classes[i]
		if c.CapacityType != Spot {
			plain = append(plain, i)
			continue
		}
		for rest := range s.rests {
			if one, ok := s.slotOf(max(s.most, cpuOf(s.pool, chosen)), others, i, rest); ok {
				list = append(list, one)
			}
		}
	}
	if one, ok := s.slotOfPlain(others, plain); ok {
		list = append(list, one)
	}
	slices.SortStableFunc(list, func(x, y Slot) int { return cmp.Or(cmp.Compare(x.Price, y.Price), cmp.Compare(x.load, y.load)) })
	return list
}

// slotOf returns a class with those of the types of one remainder that are within their shares and have no more cpu than
// most.
func (s *Share) slotOf(most int64, kinds bitset.Set, class, rest int) (Slot, bool) {
	c := &s.pool.Types.Classes[class]
	one := Slot{Class: class, Kinds: bitset.New(s.pool.Types.Len()), Price: math.MaxInt64}
	for kind := range kinds.All() {
		if kind%s.rests == rest && c.Types.Has(kind) && cpuOf(s.pool, kind) <= most {
			one.Kinds.Add(kind)
		}
	}
	if one.Kinds.Empty() {
		return one, false
	}
	whole := s.whole + leastCPU(s.pool, one.Kinds)
	for kind := range one.Kinds.Clone().All() {
		at := typeZone{kind, c.Zone}
		if !s.admits(at, whole) {
			one.Kinds.Remove(kind)
			continue
		}
		one.Price, one.load = min(one.Price, c.Price[kind]), max(one.load, s.load[at])
	}
	return one, !one.Kinds.Empty()
}

// slotOfPlain returns everything that is not spot.
func (s *Share) slotOfPlain(kinds bitset.Set, classes []int) (Slot, bool) {
	one := Slot{Class: -1, Kinds: bitset.New(s.pool.Types.Len()), Price: math.MaxInt64}
	for _, i := range classes {
		c := &s.pool.Types.Classes[i]
		for kind := range c.Types.All() {
			if kinds.Has(kind) {
				one.Kinds.Add(kind)
				one.Price = min(one.Price, c.Price[kind])
			}
		}
	}
	return one, !one.Kinds.Empty()
}

// Take adds a node that will be launched in the slot.
func (s *Share) Take(at *Slot) {
	if at.Class >= 0 {
		s.take(at.Kinds, []string{s.pool.Types.Classes[at.Class].Zone}, true)
	}
}
