package nodeclaim

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
)

// launchResult is the provider's final response to Launch: a machine, or a refusal.
type launchResult struct {
	machine *cloud.Machine
	// refusal is the reason, a value of the metric's label, for which no machine was launched.
	refusal string
	// err is the provider's error of a refusal.
	err error
}

// launchResults keeps, by claim UID, what the API does not show yet. An entry lives from the response until the claim
// shows it or is gone. An entry that is not used is dropped after Timers.LaunchMemory.
type launchResults struct {
	// life is the longest time for which an entry is kept.
	life    time.Duration
	mu      sync.Mutex
	entries map[types.UID]*launchEntry
	byClaim map[string][]types.UID // the entries with a response, by the name of their claim
}

type launchEntry struct {
	claim        string // name of the claim
	result       *launchResult
	hookFailures int // failures of BeforeReady
	at           time.Time
	// failure is the error of the last launch, which is retried after until. failures counts them.
	failure  error
	failures int
	until    time.Time
}

// entrySweep is the number of entries above which old entries are removed.
const entrySweep = 2000

func (m *launchResults) result(uid types.UID) *launchResult {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[uid]; e != nil {
		return e.result
	}
	return nil
}

func (m *launchResults) record(uid types.UID, claim string, a *launchResult, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(uid, now)
	if m.byClaim == nil {
		m.byClaim = map[string][]types.UID{}
	}
	if e.claim == "" {
		m.byClaim[claim] = append(m.byClaim[claim], uid)
	}
	e.claim, e.result = claim, a
}

// machinesOf returns the machines that were launched for claims of a name and that the claims do not show yet, by
// UID.
func (m *launchResults) machinesOf(claim string) map[types.UID]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found map[types.UID]string
	for _, uid := range m.byClaim[claim] {
		e := m.entries[uid]
		if e.result == nil || e.result.machine == nil {
			continue
		}
		if found == nil {
			found = map[types.UID]string{}
		}
		found[uid] = e.result.machine.ProviderID
	}
	return found
}

// hookFailed counts a failure of BeforeReady and returns the number of failures.
func (m *launchResults) hookFailed(uid types.UID, now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(uid, now)
	e.hookFailures++
	return e.hookFailures
}

// failed records that a launch failed, and sets the pause before the next attempt. The launch itself writes the claim
// and so triggers a reconcile, so the pauses of the queue alone would have no effect.
func (m *launchResults) failed(uid types.UID, err error, now time.Time, first, most time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(uid, now)
	e.failures++
	e.failure, e.until = err, now.Add(pause.Length(first, most, e.failures))
}

// backoff returns the failure after which a launch is not retried yet, and the rest of the pause. It returns nil if
// the launch may be retried.
func (m *launchResults) backoff(uid types.UID, now time.Time) (left time.Duration, failure error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[uid]; e != nil && now.Before(e.until) {
		return e.until.Sub(now), e.failure
	}
	return 0, nil
}

// dropShown drops the response, because the claim in the cache shows it, and the cache does not go back in time.
func (m *launchResults) dropShown(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[uid]; e != nil {
		e.result = nil
	}
}

func (m *launchResults) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(uid)
}

// drop removes an entry. The caller holds the lock.
func (m *launchResults) drop(uid types.UID) {
	e := m.entries[uid]
	if e == nil {
		return
	}
	delete(m.entries, uid)
	rest := slices.DeleteFunc(m.byClaim[e.claim], func(other types.UID) bool { return other == uid })
	if len(rest) == 0 {
		delete(m.byClaim, e.claim)
		return
	}
	m.byClaim[e.claim] = rest
}

// entry returns the entry of uid and creates it if needed. The caller holds the lock.
func (m *launchResults) entry(uid types.UID, now time.Time) *launchEntry {
	if m.entries == nil {
		m.entries = map[types.UID]*launchEntry{}
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
	e := &launchEntry{at: now}
	m.entries[uid] = e
	return e
}
