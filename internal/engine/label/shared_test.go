package label

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

// sharedWorld is requirements on keys that nodes may have, carried-0 and so on, and on keys that no node may have,
// absent-0 and so on: so many that these share a key.
type sharedWorld struct {
	*rand.Rand
	lists [][]Requirement
}

const carriedKeys = 3

func (w *sharedWorld) requirement() Requirement {
	key := fmt.Sprintf("absent-%d", w.Intn(3*fewAbsent))
	if w.Intn(3) == 0 {
		key = fmt.Sprintf("carried-%d", w.Intn(carriedKeys))
	}
	r := Requirement{Key: key, Operator: Operator(w.Intn(int(Lte) + 1))}
	if w.Intn(2) == 0 {
		r.Operator = []Operator{NotIn, DoesNotExist}[w.Intn(2)]
	}
	switch {
	case r.Operator.isBound():
		r.Values = []string{[]string{"1", "2", "word", "9223372036854775807"}[w.Intn(4)]}
	case r.Operator == In || r.Operator == NotIn:
		for range w.Intn(3) {
			r.Values = append(r.Values, []string{"1", "2", "3", "x"}[w.Intn(4)])
		}
	}
	return r
}

func newSharedWorld(seed int64) *sharedWorld {
	w := &sharedWorld{Rand: rand.New(rand.NewSource(seed))}
	for i := range 3 * fewAbsent { // so many that keys are shared
		w.lists = append(w.lists, []Requirement{{Key: fmt.Sprintf("absent-%d", i), Operator: DoesNotExist}})
	}
	for range 40 {
		var reqs []Requirement
		for range 1 + w.Intn(3) {
			reqs = append(reqs, w.requirement())
		}
		w.lists = append(w.lists, reqs)
	}
	return w
}

// mentions mentions everything, in a random order, with some keys carried later than they are mentioned.
func (w *sharedWorld) mentions(carried []string) *Mentions {
	m := NewMentions()
	var events []func()
	for _, reqs := range w.lists {
		for _, r := range reqs {
			events = append(events, func() { m.Requirement(r) })
		}
	}
	for _, key := range carried {
		events = append(events, func() { m.Carry(key) })
	}
	w.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for i, event := range events {
		if event(); i%7 == 0 {
			m.Space()
		}
	}
	return m
}

// TestSharedKey checks the rows of requirements on keys that share one against the definition of the operators, on
// random nodes, as well as after some of the keys turn out to be carried.
func TestSharedKey(t *testing.T) {
	for seed := range int64(200) {
		w := newSharedWorld(seed)
		carried := []string{"carried-0", "carried-1", "carried-2", "never mentioned"}
		m := w.mentions(carried)
		w.judge(t, seed, m, carried)
		for i := range fewAbsent {
			if i%8 == 0 {
				carried = append(carried, fmt.Sprintf("absent-%d", i))
				m.Carry(carried[len(carried)-1])
			}
		}
		w.judge(t, seed, m, carried)
	}
}

func (w *sharedWorld) judge(t *testing.T, seed int64, m *Mentions, carried []string) {
	t.Helper()
	space := m.Space()
	if _, shared := space.Shared(); !shared || space.Len() != len(carried) {
		t.Fatalf("seed %d: %d keys, shared: %t", seed, space.Len(), shared) // one of the carried is not mentioned
	}
	other := w.mentions(carried).Space()
	for range 30 {
		labels := map[string]string{}
		for _, key := range carried {
			if w.Intn(2) == 0 {
				labels[key] = []string{"1", "2", "3", "x", "unmentioned"}[w.Intn(5)]
			}
		}
		row, start := space.Labels(labels), other.Labels(labels)
		for _, reqs := range w.lists {
			want := !slices.ContainsFunc(reqs, func(r Requirement) bool {
				value, has := labels[r.Key]
				return !r.allows(node{value: value, absent: !has})
			})
			encoded, _, ok := space.Encode(reqs)
			if got := ok && space.Compatible(encoded, row); got != want {
				t.Fatalf("seed %d: %v is compatible with %v: %t, want %t", seed, reqs, labels, got, want)
			}
			if got := ok && space.Contains(encoded, row); got != want {
				t.Fatalf("seed %d: %v contains %v: %t, want %t", seed, reqs, labels, got, want)
			}
			encoded, _, ok = other.Encode(reqs)
			if got := ok && other.Compatible(encoded, start); got != want {
				t.Fatalf("seed %d: in another order: %v on %v: %t, want %t", seed, reqs, labels, got, want)
			}
		}
	}
}

// TestSharedNames checks that a name that looks like the shared key is a key of its own, and that the space does not
// change when one more absent key is mentioned.
func TestSharedNames(t *testing.T) {
	m := NewMentions()
	m.Requirement(Requirement{Key: Unknown, Operator: In, Values: []string{"x"}})
	m.Carry(Unknown)
	for i := range fewAbsent {
		m.Requirement(Requirement{Key: fmt.Sprint("absent-", i), Operator: Exists})
	}
	if _, shared := m.Space().Shared(); shared || m.Space().Len() != fewAbsent+1 {
		t.Errorf("with %d absent keys, %d have numbers", fewAbsent, m.Space().Len())
	}
	m.Requirement(Requirement{Key: "one more", Operator: Exists})
	space := m.Space()
	if _, shared := space.Shared(); !shared || space.Len() != 2 {
		t.Fatalf("with more absent keys, %d have numbers", space.Len())
	}
	row, _, _ := space.Encode([]Requirement{
		{Key: Unknown, Operator: In, Values: []string{"x"}}, {Key: "one more", Operator: NotIn, Values: []string{"y"}},
	})
	if !space.Compatible(row, space.Labels(map[string]string{Unknown: "x"})) || space.Compatible(row, space.Labels(nil)) {
		t.Error("the key with the name of the shared one is not a key of its own")
	}
	m.Requirement(Requirement{Key: "and another", Operator: In, Values: []string{"x"}})
	if m.Space() != space {
		t.Error("the space changes with an absent key")
	}
	if r := (Requirement{Key: "and another", Operator: Exists}); space.Mentioned(r) {
		t.Error("an absent key is mentioned")
	}
}
