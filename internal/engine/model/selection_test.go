package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// TestSelectionTwin compares the lookup in long lists of values with a scan, for selectors of every operator.
func TestSelectionTwin(t *testing.T) {
	d := rand.New(rand.NewPCG(1, 2))
	value := func() string { return fmt.Sprintf("v%02d", d.IntN(40)) }
	selector := func() Selector {
		s := Selector{Namespaces: []string{"a", "b"}[:1+d.IntN(2)], AllNamespaces: d.IntN(4) == 0, Nothing: d.IntN(20) == 0}
		for range d.IntN(3) {
			r := label.Requirement{Key: []string{"app", "tier"}[d.IntN(2)], Operator: []label.Operator{label.In, label.NotIn, label.Exists, label.DoesNotExist}[d.IntN(4)]}
			if r.Operator == label.In || r.Operator == label.NotIn {
				for range 1 + d.IntN(3*fewValues) {
					r.Values = append(r.Values, value())
				}
			}
			s.Requirements = append(s.Requirements, r)
		}
		return s
	}
	b := newInterner()
	for i := range 1000 { // so that lists of apps are sparse, and lists of tiers are not
		b.values.number("app", fmt.Sprintf("other-%d", i))
	}
	for range 300 {
		s := selector()
		b.mark(Mark{Selector: s})
		// The same selector, as for anti-affinity terms.
		b.mark(Mark{Selector: s, Carrier: true, Key: LabelHostname})
	}
	selected, looked := 0, 0
	for range 100 {
		c := &class{namespace: []string{"a", "b", "c"}[d.IntN(3)], labels: map[string]string{}}
		for _, key := range []string{"app", "tier"} {
			if d.IntN(3) > 0 {
				c.labels[key] = value()
			}
		}
		m := b.match(c)
		for i := range b.marks {
			looked++
			want := b.marks[i].Selector.Selects(c.namespace, c.labels)
			list := m.matches
			if b.marks[i].Carrier {
				list = m.blocked
			}
			if got := slices.Contains(list, i); got != want {
				t.Fatalf("mark %d (%+v) selects %s %v: %v, want %v", i, b.marks[i], c.namespace, c.labels, got, want)
			} else if got {
				selected++
			}
		}
	}
	if selected == 0 || selected == looked {
		t.Errorf("%d of %d selected: the test covers too little", selected, looked)
	}
}
