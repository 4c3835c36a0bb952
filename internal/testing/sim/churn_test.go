package sim

import (
	"slices"
	"testing"
	"time"
)

// TestStaysCheap checks that a rise of the cost of a world at rest is found, and that its absence is not.
func TestStaysCheap(t *testing.T) {
	for _, dearer := range []bool{false, true} {
		w := newWorld(numbered(5), Production())
		for w.next(epoch.Add(time.Minute)) {
		}
		w.calm, w.check.most = true, 1000
		w.lastForEver()
		end := newDeadline(w, epoch.Add(patience))
		if !w.rest(end) || w.failure != nil || w.check.bill() == 0 {
			t.Fatalf("the world is not at rest, costs %d nano-USD per hour: %v", w.check.bill(), w.failure)
		}
		if dearer {
			w.after(time.Minute, func() {
				for i := range w.setting.types {
					t := &w.setting.types[i]
					t.Offerings = slices.Clone(t.Offerings)
					for k := range t.Offerings {
						t.Offerings[k].Price *= 2
					}
				}
			})
		}
		w.age(end)
		if got := w.failure != nil && w.failure.Property == StaysCheap; got != dearer {
			t.Errorf("prices are doubled: %t, failure %v", dearer, w.failure)
		}
	}
}
