package removal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Brake is called before a machine is removed that neither a user nor a plan requested to remove. All callers share
// one Brake. Fill all exported fields. The zero values of the others are ready to use.
type Brake struct {
	// Client reads from a cache with the indexes of controller.Index, and writes annotations of NodePools.
	Client client.Client
	// Live reads Leases, which are read rarely and of which a cache would hold one per node. It also reads again the
	// nodes of machines that fail the cloud's checks.
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
	// began is the time of the first call, zero before.
	began time.Time
	// wanted holds the held cases, disputes those in dispute, and removed the machines whose removal was allowed.
	wanted   map[string]sighting
	disputes map[string]sighting
	removed  map[string]time.Time
	// records holds the removals by NodePool, and shown the annotation about the Brake as last written.
	records map[string]Record
	shown   map[string]string
	// keepers holds the NodePools whose annotation also contains the record of machines without a NodePool.
	keepers map[string]bool
	// paused holds the NodePools whose removals are paused, with the start of the pause.
	paused map[string]string
	// latched holds the scopes that were paused when this process started.
	latched map[string]bool
	blind   bool // the permission to read Leases is missing; this has been logged
}

// sighting is a case, with the times of its first and last report.
type sighting struct {
	Case
	first, last time.Time
}

// Ask returns a verdict for each case. A removal that counts is recorded before Ask returns. A removal that cannot be
// recorded is held, and the error contains the reason. Verdicts about other NodePools are valid anyway. Nil verdicts
// mean that nothing was decided.
func (b *Brake) Ask(ctx context.Context, cases ...Case) ([]Verdict, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// 1. Gather.
	pools, err := b.pools(ctx)
	if err != nil {
		return nil, err
	}
	now := b.Clock.Now()
	b.adopt(pools, now)
	for i := range cases {
		cases[i].Pool = pools.known(cases[i].Pool)
		b.note(cases[i], now)
	}
	b.expire(now)
	// 2. Evaluate.
	ruling := Rule(b.facts(pools))
	verdicts := make([]Verdict, len(cases))
	for i, c := range cases {
		if verdicts[i] = Remove; c.disputed() || !b.wasRemoved(c) {
			verdicts[i] = ruling.Take(c)
		}
	}
	// 3. Act. A state that cannot be written to one NodePool does not hold removals: the next call retries the write.
	err = b.remove(ctx, pools, ruling, ballot{cases, verdicts})
	_ = b.publish(ctx, pools, ruling)
	return verdicts, err
}

// Refresh updates the state of the Brake, also on the NodePools. The collector calls it in each of its runs, so that
// the Brake releases in time.
func (b *Brake) Refresh(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	pools, err := b.pools(ctx)
	if err != nil {
		return err
	}
	now := b.Clock.Now()
	b.adopt(pools, now)
	b.expire(now)
	return errors.Join(b.keep(ctx, pools), b.publish(ctx, pools, Rule(b.facts(pools))))
}

// Disputes sets the machines in dispute: those that the cloud cannot find and whose nodes report. The collector calls
// it with all current disputes before it calls Refresh. unchecked are machines for which a witness could not be
// queried: an existing dispute about such a machine continues.
func (b *Brake) Disputes(cases []Case, unchecked ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, next := b.Clock.Now(), make(map[string]sighting, len(cases))
	for _, c := range cases {
		s := sighting{Case: c, first: now, last: now}
		if before, known := b.disputes[c.Machine]; known {
			s.first = before.first
		}
		next[c.Machine] = s
	}
	for _, machine := range unchecked {
		if before, known := b.disputes[machine]; known {
			next[machine] = before
		}
	}
	b.disputes = next
}

// Disputed reports whether a machine has been in dispute for Timers.SecondLook.
func (b *Brake) Disputed(machine string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, known := b.disputes[machine]
	return known && s.last.Sub(s.first) >= b.Timers.SecondLook
}

// InDispute reports whether a machine was in dispute at its last check.
func (b *Brake) InDispute(machine string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, known := b.disputes[machine]
	return known
}

// adopt reads the state that an earlier process wrote to NodePools that are new to this process, and drops NodePools
// that are gone: their machines count as machines without a NodePool. Pauses that exist when the process starts are
// latched.
func (b *Brake) adopt(pools *fleet, now time.Time) {
	first := b.began.IsZero()
	if first {
		b.began = now
		b.wanted, b.removed = map[string]sighting{}, map[string]time.Time{}
		b.records, b.shown = map[string]Record{"": {}}, map[string]string{}
		b.latched, b.keepers = map[string]bool{}, map[string]bool{}
		b.paused = map[string]string{}
	}
	for name := range b.records {
		if name != "" && pools.byName[name] == nil {
			delete(b.records, name)
			delete(b.shown, name)
			delete(b.latched, name)
			delete(b.paused, name)
			delete(b.keepers, name)
		}
	}
	for machine, s := range b.wanted {
		s.Pool = pools.known(s.Pool)
		b.wanted[machine] = s
	}
	for machine, s := range b.disputes {
		s.Pool = pools.known(s.Pool)
		b.disputes[machine] = s
	}
	for name, pool := range pools.byName {
		if _, known := b.records[name]; known {
			continue
		}
		text, at := pool.Annotations[karpv1.AnnotationRemovals], b.serverTime()
		b.records[name] = readRecord(text, "", at, b.Timers.RemovalWindow)
		if !first {
			continue
		}
		if none := readRecord(text, ofNone, at, b.Timers.RemovalWindow); len(none) > 0 {
			b.records[""], b.keepers[name] = b.records[""].with(none), true
		}
		switch held := pool.Annotations[karpv1.AnnotationRemovalsPaused]; held {
		case "":
		case scopeFleet:
			b.shown[name], b.latched[""], b.paused[name] = held, true, now.Format(time.RFC3339Nano)
		default:
			b.shown[name], b.latched[name], b.paused[name] = held, true, now.Format(time.RFC3339Nano)
		}
	}
}

// note records that a case was reported.
func (b *Brake) note(c Case, now time.Time) {
	if c.agreed() || c.disputed() || b.wasRemoved(c) {
		delete(b.wanted, c.Machine)
		return
	}
	s := sighting{Case: c, first: now, last: now}
	if before, known := b.wanted[c.Machine]; known {
		s.first = before.first
	}
	b.wanted[c.Machine] = s
}

func (b *Brake) wasRemoved(c Case) bool {
	_, is := b.removed[c.Machine]
	return is
}

// expire drops state that is older than the window.
func (b *Brake) expire(now time.Time) {
	window := b.Timers.RemovalWindow
	for machine, s := range b.wanted {
		if now.Sub(s.last) >= window {
			delete(b.wanted, machine)
		}
	}
	for machine, at := range b.removed {
		if now.Sub(at) >= window {
			delete(b.removed, machine)
		}
	}
	if now.Sub(b.began) >= window {
		clear(b.latched)
	}
}

// facts returns the current input of the verdicts. The times on NodePools are compared with the API server's clock,
// because other processes and operators wrote them.
func (b *Brake) facts(pools *fleet) Facts {
	at := b.serverTime()
	f := Facts{Machines: pools.machines, Allowed: map[string]bool{}, Removed: map[string]int{}, Latched: b.latched}
	for name, pool := range pools.byName {
		f.Allowed[name] = allows(pool, at)
	}
	for name, record := range b.records {
		if n := record.within(at, b.Timers.RemovalWindow); n > 0 {
			f.Removed[name] = n
		}
	}
	for machine, s := range b.disputes {
		delete(b.wanted, machine)
		f.Cases = append(f.Cases, s.Case)
	}
	for _, s := range b.wanted {
		f.Cases = append(f.Cases, s.Case)
	}
	return f
}

// fleet holds the NodePools of the provider, and the number of machines of each.
type fleet struct {
	byName   map[string]*karpv1.NodePool
	machines map[string]int
}

// known returns the name if the NodePool exists, and an empty string otherwise.
func (f *fleet) known(name string) string {
	if f.byName[name] == nil {
		return ""
	}
	return name
}

func (b *Brake) pools(ctx context.Context) (*fleet, error) {
	var pools karpv1.NodePoolList
	var claims karpv1.NodeClaimList
	if err := b.Client.List(ctx, &pools); err != nil {
		return nil, fmt.Errorf("listing NodePools: %w", err)
	}
	if err := b.Client.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	f := &fleet{byName: map[string]*karpv1.NodePool{}, machines: map[string]int{}}
	for i := range pools.Items {
		if pool := &pools.Items[i]; b.Classes.Owns(pool.Spec.Template.Spec.NodeClassRef) {
			f.byName[pool.Name], f.machines[pool.Name] = pool, 0
		}
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Status.ProviderID == "" || !b.Classes.Owns(claim.Spec.NodeClassRef) {
			continue
		}
		f.machines[f.known(claim.Labels[karpv1.LabelNodePool])]++
	}
	return f, nil
}

// longestAllowed is how far in the future the operator's annotation may be. A time beyond that has no effect: a wrong
// year would turn the Brake off permanently.
const longestAllowed = 24 * time.Hour

// allows reports whether the operator allows the removals of a NodePool at a time. An annotation that is not a time, or
// too far in the future, does not allow them.
func allows(pool *karpv1.NodePool, at time.Time) bool {
	until, err := time.Parse(time.RFC3339, pool.Annotations[karpv1.AnnotationRemovalsAllowedUntil])
	return err == nil && until.After(at) && !until.After(at.Add(longestAllowed))
}
