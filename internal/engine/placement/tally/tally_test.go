package tally

import (
	"math/rand/v2"
	"testing"
)

// TestTallyTwin compares a tally, as a list and by slot, and copies of both, with a map.
func TestTallyTwin(t *testing.T) {
	const slots = 40
	d := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		var list, filled Tally
		filled.Restart(slots)
		want := map[int]int{}
		for range d.IntN(100) {
			slot, n := d.IntN(slots), d.IntN(5)-1
			list.Add(slot, n)
			filled.Add(slot, n)
			want[slot] += n
		}
		again, copied := list.Clone(), filled.Clone()
		again.Add(7, 1)
		again.Add(7, -1)
		for name, have := range map[string]*Tally{"list": &list, "by slot": &filled, "copy of the list": &again, "copy of those by slot": &copied} {
			for slot := range slots {
				if got := have.At(slot); got != want[slot] {
					t.Fatalf("round %d, %s, slot %d: %d, want %d", round, name, slot, got, want[slot])
				}
			}
		}
	}
}
