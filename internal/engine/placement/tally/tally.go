// Package tally counts the pods on one node by mark. A slot is the number of a mark that some rule counts by hostname. The
// package must not know what is counted, or why.
package tally

import (
	"cmp"
	"slices"
)

// Tally counts marks on one node or bin: a list by ascending slot, so that a search takes the logarithm of its length.
// The tally of a bin being filled is read often. It has its counts by slot instead, and its list contains, in any
// order, the slots in use.
type Tally struct {
	list   []slotCount
	bySlot []int
	// Nameless reports that the node is in no domain of hostnames.
	Nameless bool
}

type slotCount struct{ slot, count int }

// compareSlot orders the list of a tally.
func compareSlot(c slotCount, slot int) int { return cmp.Compare(c.slot, slot) }

// At returns the count of the slot.
func (t *Tally) At(slot int) int {
	if t.bySlot != nil {
		return t.bySlot[slot]
	}
	if at, found := slices.BinarySearchFunc(t.list, slot, compareSlot); found {
		return t.list[at].count
	}
	return 0
}

// Add adds n to the count of the slot.
func (t *Tally) Add(slot, n int) {
	if t.bySlot != nil {
		if t.bySlot[slot] == 0 {
			t.list = append(t.list, slotCount{slot: slot})
		}
		t.bySlot[slot] += n
		return
	}
	if last := len(t.list) - 1; last < 0 || t.list[last].slot < slot { // marks mostly arrive in ascending order
		t.list = append(t.list, slotCount{slot, n})
		return
	}
	at, found := slices.BinarySearchFunc(t.list, slot, compareSlot)
	if !found {
		t.list = slices.Insert(t.list, at, slotCount{slot: slot})
	}
	t.list[at].count += n
}

// Restart empties a tally with counts by slot; slots is the number of slots.
func (t *Tally) Restart(slots int) {
	for _, c := range t.list {
		if c.slot < len(t.bySlot) {
			t.bySlot[c.slot] = 0
		}
	}
	t.list = t.list[:0]
	if len(t.bySlot) != slots {
		t.bySlot = make([]int, slots)
	}
}

// Clone returns a list tally with the same counts.
func (t *Tally) Clone() Tally {
	if t.bySlot == nil {
		return Tally{list: slices.Clone(t.list), Nameless: t.Nameless}
	}
	list := make([]slotCount, len(t.list))
	for i, c := range t.list {
		list[i] = slotCount{c.slot, t.At(c.slot)}
	}
	sortSlots(list)
	return Tally{list: list, Nameless: t.Nameless}
}

func sortSlots(list []slotCount) {
	slices.SortFunc(list, func(a, b slotCount) int { return cmp.Compare(a.slot, b.slot) })
}
