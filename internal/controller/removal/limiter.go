package removal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Cause is why a machine is to be removed. Logs and events contain it.
type Cause string

const (
	// CauseMachineGone means that the cloud does not show the machine of a claim.
	CauseMachineGone Cause = "MachineGone"
	// CauseStray means that no claim shows the machine.
	CauseStray Cause = "Stray"
	// CauseUnhealthy means that a condition of the node requires repair.
	CauseUnhealthy Cause = "NodeUnhealthy"
	// CauseNodeGone means that the Node object of a claim is gone.
	CauseNodeGone Cause = "NodeGone"
)

// Case is a machine that is to be removed.
type Case struct {
	// Machine is the provider ID, which identifies the case.
	Machine string
	// Pool is the NodePool, empty for a machine without one.
	Pool  string
	Cause Cause
	// Gone says that neither the cloud nor the node shows a working machine. Its removal is not limited.
	Gone bool
}

// Limiter is called before a machine is removed that neither a user nor a plan requested to remove. All callers share one.
// Fill all exported fields.
type Limiter struct {
	// Client reads from a cache with the indexes of controller.Index, and writes annotations of NodePools.
	Client client.Client
	// Live reads NodePools, whose pauses other processes write, and Leases, of which a cache would hold one per node.
	Live client.Reader
	// Provider returns single machines.
	Provider cloud.Provider
	Classes  controller.Classes
	Recorder *telemetry.Recorder
	Metrics  *telemetry.Metrics
	Timers   controller.Timers
	Clock    clock.PassiveClock
	// Ahead returns how far Clock is ahead of the API server's clock. Nil means zero.
	Ahead func() time.Duration

	mu sync.Mutex
	// recent holds the answers about cases, by machine.
	recent map[string]answer
	// disputed are the machines of claims that the cloud does not show though their nodes report.
	disputed []Case
	// unstored is the pause of the fleet while there is no NodePool to store it.
	unstored pause.Pause
	// paused holds the NodePools whose pause has been reported, with the end of the pause.
	paused map[string]time.Time
	blind  bool // the permission to read Leases is missing; this has been logged
}

// answer is what Ask answered about a case.
type answer struct {
	Case
	may bool
	at  time.Time
}

// retry is how long a removal that is allowed may be tried again without being counted again.
const retry = time.Minute

// Ask returns for each case whether the machine may be removed now. A removal that counts is stored before Ask returns. One
// that cannot be stored is not allowed, and the error contains the reason: the answers about other NodePools are valid.
func (l *Limiter) Ask(ctx context.Context, cases ...Case) ([]bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	may := make([]bool, len(cases))
	f, err := l.fleet(ctx)
	if err != nil {
		return may, err
	}
	counted := map[string][]int{}
	for i := range cases {
		c := &cases[i]
		c.Pool = f.known(c.Pool)
		before, known := l.recent[c.Machine]
		retried := known && before.may && l.Clock.Since(before.at) < retry
		switch {
		case c.Gone || retried || f.allowed(c.Pool):
			may[i] = true
		case f.take(*c):
			may[i] = true
			counted[c.Pool] = append(counted[c.Pool], i)
		}
		if !retried {
			l.note(*c, may[i])
		}
	}
	var errs []error
	for _, pool := range slices.Sorted(maps.Keys(counted)) {
		if err := l.store(ctx, f, pool); err != nil {
			errs = append(errs, err)
			for _, i := range counted[pool] {
				may[i] = false
				l.note(cases[i], false)
			}
		}
	}
	return may, errors.Join(append(errs, l.report(ctx, f, len(errs) > 0))...)
}

// note remembers the answer about a case, and forgets those that are older than the window.
func (l *Limiter) note(c Case, may bool) {
	now := l.Clock.Now()
	if l.recent == nil {
		l.recent = map[string]answer{}
	}
	maps.DeleteFunc(l.recent, func(_ string, a answer) bool { return now.Sub(a.at) >= l.Timers.RemovalWindow || now.Before(a.at) })
	l.recent[c.Machine] = answer{c, may, now}
}

// Disputed is called in each round of garbage collection with the machines of claims that the cloud does not show though
// their nodes report. More of them than may be removed at once pause removals: the cloud's answers are wrong.
func (l *Limiter) Disputed(ctx context.Context, disputed []Case) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := l.fleet(ctx)
	if err != nil {
		return err
	}
	l.disputed = slices.Clone(disputed)
	count := map[string]int{}
	for i := range l.disputed {
		c := &l.disputed[i]
		c.Pool = f.known(c.Pool)
		count[c.Pool]++
	}
	var errs []error
	for _, pool := range slices.Sorted(maps.Keys(count)) {
		if pool != "" && f.distrust(pool, count[pool]) {
			errs = append(errs, l.store(ctx, f, pool))
		}
	}
	if f.distrust(pause.Fleet, len(disputed)) {
		errs = append(errs, l.store(ctx, f, ""))
	}
	return errors.Join(append(errs, l.report(ctx, f, errors.Join(errs...) != nil))...)
}

// serverTime returns the time on the API server's clock.
func (l *Limiter) serverTime() time.Time {
	if l.Ahead == nil {
		return l.Clock.Now()
	}
	return l.Clock.Now().Add(-l.Ahead())
}

// leastLimit is the minimum of the limit, even for few machines.
const leastLimit = 3

// limit returns how many of the machines may be removed at once: a fifth, and at least leastLimit.
func limit(machines int) int { return max(leastLimit, machines/5) }

// take counts the removal of a machine in the pauses of its NodePool and of the fleet, unless one of them is active.
func (f *fleet) take(c Case) bool {
	scopes := []string{pause.Fleet}
	if c.Pool != "" {
		scopes = append(scopes, c.Pool)
	}
	if slices.ContainsFunc(scopes, func(scope string) bool { return f.pauses[scope].Active(f.now) }) {
		return false
	}
	why := fmt.Sprintf("%s: %s", c.Cause, c.Machine)
	for _, scope := range scopes {
		f.pauses[scope] = f.pauses[scope].FailWithin(f.window, f.now, limit(f.machines[scope])-1, why)
	}
	return true
}

// distrust begins a pause for the scope, if more machines are in dispute than may be removed at once. It reports whether
// there is something to store.
func (f *fleet) distrust(scope string, disputed int) bool {
	p := f.pauses[scope]
	if disputed <= limit(f.machines[scope]) || p.Active(f.now) {
		return false
	}
	why := fmt.Sprintf("%s: the cloud does not show %d of %d machines, and their nodes report", CauseMachineGone, disputed, f.machines[scope])
	paused := p.FailWithin(f.window, f.now, min(limit(f.machines[scope])-1, p.Failures), why)
	if !paused.Active(f.now) { // the failures of p were before the window
		paused = pause.Pause{Key: p.Key, Name: p.Name}.FailWithin(f.window, f.now, 0, why)
	}
	f.pauses[scope] = paused
	return true
}
