package telemetry

import (
	"iter"
	"sync"
	"time"
)

// Waits remember since when pods have had a place in a plan, by UID, until they run: a pod that waits for a node is
// measured from there. They forget with the process; what is measured is a wait of ours. A nil Waits remembers nothing.
type Waits struct {
	mutex   sync.Mutex
	planned map[string]time.Time
}

// NewWaits remember nothing yet.
func NewWaits() *Waits { return &Waits{planned: map[string]time.Time{}} }

// Planned says that the pod has a place in a plan now. Only the first time counts.
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

// Since is when the pod was first planned; false for one that never was.
func (w *Waits) Since(uid string) (time.Time, bool) {
	if w == nil {
		return time.Time{}, false
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	at, known := w.planned[uid]
	return at, known
}

// Forget is for pods that run or are gone.
func (w *Waits) Forget(uid string) {
	if w == nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.planned, uid)
}

// Keep forgets all pods but these. A plan is made of an older snapshot, so Planned may name pods that were forgotten
// meanwhile, and nobody says of them a second time that they are gone.
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
