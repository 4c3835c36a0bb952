package telemetry

import (
	"iter"
	"sync"
	"time"
)

// Waits records, by UID, since when pods have had a place in a plan, until they run. The measured waits of pods begin
// at that time. The records end with the process, because only the waits for this controller are measured. A nil
// Waits records nothing.
type Waits struct {
	mutex   sync.Mutex
	planned map[string]time.Time
}

// NewWaits returns an empty Waits.
func NewWaits() *Waits { return &Waits{planned: map[string]time.Time{}} }

// Planned records that the pod has a place in a plan. Only the first call counts.
func (w *Waits) Planned(uid string, now time.Time) {
	if w == nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if _, known := w.planned[uid]; !known {
		w.planned[uid] = now
	}
}

// Since returns when the pod was first planned, and false if it never was.
func (w *Waits) Since(uid string) (time.Time, bool) {
	if w == nil {
		return time.Time{}, false
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	at, known := w.planned[uid]
	return at, known
}

// Forget removes a pod that runs or is gone.
func (w *Waits) Forget(uid string) {
	if w == nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.planned, uid)
}

// Keep removes all pods except these. A plan is computed from an older snapshot, so Planned may name pods that were
// removed meanwhile, and no second event reports that they are gone.
func (w *Waits) Keep(uids iter.Seq[string]) {
	if w == nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.planned) == 0 {
		return
	}
	kept := map[string]time.Time{}
	for uid := range uids {
		if at, known := w.planned[uid]; known {
			kept[uid] = at
		}
	}
	w.planned = kept
}
