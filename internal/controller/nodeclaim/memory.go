package nodeclaim

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cloud"
)

// answer is what the provider said to Launch, once and for all: a machine, or a refusal.
type answer struct {
	machine *cloud.Machine
	// refusal is the reason, a value of the metric's label, for which no machine was bought.
	refusal string
	// err is the provider's error of a refusal.
	err error
}

// memory keeps, by claim UID, what the API does not show yet. An entry lives from the answer until the claim shows it
// or is gone; one that was never fetched is dropped after Timers.LaunchMemory (core specification 4.1).
type memory struct {
	// life is for how long an entry is kept, at most.
	life    time.Duration
	mu      sync.Mutex
	entries map[types.UID]*entry
	named   map[string][]types.UID // the entries with an answer, by the name of their claim
}

type entry struct {
	claim  string // its name
	answer *answer
	hooks  int // failures of BeforeReady
	at     time.Time
	// failure is what the last launch failed with, that is tried again after until; wait is the pause before that.
	failure error
	until   time.Time
	wait    time.Duration
}

// entrySweep is the number of entries above which old ones are looked for.
const entrySweep = 2000

func (m *memory) answer(uid types.UID) *answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[uid]; e != nil {
		return e.answer
	}
	return nil
}

func (m *memory) keep(uid types.UID, claim string, a *answer, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(uid, now)
	if m.named == nil {
		m.named = map[string][]types.UID{}
	}
	if e.claim == "" {
		m.named[claim] = append(m.named[claim], uid)
	}
	e.claim, e.answer = claim, a
}

// machinesFor are the machines that were launched for claims of a name and that those are not known to show, by UID.
func (m *memory) machinesFor(claim string) map[types.UID]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found map[types.UID]string
	for _, uid := range m.named[claim] {
		e := m.entries[uid]
		if e.answer == nil || e.answer.machine == nil {
			continue
		}
		if found == nil {
			found = map[types.UID]string{}
		}
		found[uid] = e.answer.machine.ProviderID
	}
	return found
}

// hookFailed counts a failure of BeforeReady and returns how many there were.
func (m *memory) hookFailed(uid types.UID, now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(uid, now)
	e.hooks++
	return e.hooks
}

// failed notes that a launch failed, and for how long it is not tried again: first, doubled each time, most at most. What
// the launch itself writes wakes the claim, so that the pauses of the queue alone would not be kept.
func (m *memory) failed(uid types.UID, err error, now time.Time, first, most time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(uid, now)
	e.wait = min(max(first, 2*e.wait), most)
	e.failure, e.until = err, now.Add(e.wait)
}

// pausing is the failure after which a launch is not tried again yet, and how much of the pause is left; nil if it may be.
func (m *memory) pausing(uid types.UID, now time.Time) (left time.Duration, failure error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[uid]; e != nil && now.Before(e.until) {
		return e.until.Sub(now), e.failure
	}
	return 0, nil
}

// shown drops the answer, because the claim as read from the cache shows it, and the cache does not go back.
func (m *memory) shown(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[uid]; e != nil {
		e.answer = nil
	}
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(uid)
}

// drop removes an entry; the lock is held.
func (m *memory) drop(uid types.UID) {
	e := m.entries[uid]
	if e == nil {
		return
	}
	delete(m.entries, uid)
	rest := slices.DeleteFunc(m.named[e.claim], func(other types.UID) bool { return other == uid })
	if len(rest) == 0 {
		delete(m.named, e.claim)
		return
	}
	m.named[e.claim] = rest
}

// entry returns the entry of uid, made if need be; the lock is held.
func (m *memory) entry(uid types.UID, now time.Time) *entry {
	if m.entries == nil {
		m.entries = map[types.UID]*entry{}
	}
	if e := m.entries[uid]; e != nil {
		return e
	}
	if len(m.entries) >= entrySweep {
		for old, e := range m.entries {
			if now.Sub(e.at) > m.life {
				m.drop(old)
			}
		}
	}
	e := &entry{at: now}
	m.entries[uid] = e
	return e
}
