package sim

import (
	"slices"
	"testing"
	"time"
)

// TestStaysCheap checks that a rise of the cost of a world at rest is found, and that its absence is not.
func TestStaysCheap(t *testing.T) {
	for _, dearer := range []bool{false, true} {
		w, end := completeWorld(t)
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

// completeWorld returns a world at rest in which every pod has a node.
func completeWorld(t *testing.T) (*world, *deadline) {
	t.Helper()
	for n := range uint64(40) {
		w := newWorld(numbered(n), Production())
		for w.next(epoch.Add(time.Minute)) {
		}
		w.calm, w.check.most = true, 1000
		w.lastForEver()
		if end := newDeadline(w, epoch.Add(patience)); w.rest(end) && w.failure == nil && w.check.bill() > 0 && w.complete() {
			return w, end
		}
	}
	t.Fatal("no world of 40 is complete")
	return nil, nil
}
