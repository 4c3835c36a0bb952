package removal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Brake is asked before a machine is removed that no user and no plan asked to remove. One Brake serves all who remove.
// Fill all fields; the zero values of the others are ready to use.
type Brake struct {
	// Client reads from a cache with the indexes of controller.Index, and writes annotations of NodePools.
	Client client.Client
	// Live reads Leases: few are read, and a cache would hold one for each node.
	Live client.Reader
	// Provider is asked about single machines.
	Provider cloud.Provider
	Classes  controller.Classes
	Recorder *telemetry.Recorder
	Metrics  *telemetry.Metrics
	Timers   controller.Timers
	Clock    clock.PassiveClock
	// Ahead is by how much Clock is ahead of the API server's; nil for not at all.
	Ahead func() time.Duration

	mu sync.Mutex
	// began is when the first question came, zero before.
	began time.Time
	// wanted are the cases that are held, disputes those in dispute, and removed the machines whose removal was allowed.
	wanted   map[string]sighting
	disputes map[string]sighting
	removed  map[string]time.Time
	// records are the removals by NodePool, shown the annotation about the brake as it was last written.
	records map[string]Record
	shown   map[string]string
	// latched are the scopes that were held when this process began.
	latched map[string]bool
	blind   bool // Leases may not be read; it has been logged
}

// sighting is a case, and when it was first and last asked about.
type sighting struct {
	Case
	first, last time.Time
}

// Ask says what to do about each case. A removal that is allowed is recorded before Ask returns; one that cannot be recorded
// is held, and the error says why. Verdicts about other NodePools stand all the same. Without verdicts, nothing is decided.
func (b *Brake) Ask(ctx context.Context, cases ...Case) ([]Verdict, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// 1. Gather.
	pools, err := b.pools(ctx)
	if err != nil {
		return nil, err
	}
	now := b.Clock.Now()
	b.begin(pools, now)
	for i := range cases {
		if pools.byName[cases[i].Pool] == nil {
			cases[i].Pool = ""
		}
		b.note(cases[i], now)
	}
	b.expire(now)
	// 2. Evaluate.
	ruling := Rule(b.facts(pools, now))
	verdicts := make([]Verdict, len(cases))
	for i, c := range cases {
		if verdicts[i] = Remove; !b.wasRemoved(c) {
			verdicts[i] = ruling.Take(c)
		}
	}
	// 3. Act. What cannot be shown on one NodePool does not hold back removals: it is tried again with the next question.
	err = b.record(ctx, pools, cases, verdicts)
	_ = b.publish(ctx, pools, ruling)
	return verdicts, err
}

// Refresh brings the state of the brake up to date, on the NodePools too. The collector calls it in each of its rounds, so
// that the brake lets go in time.
func (b *Brake) Refresh(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	pools, err := b.pools(ctx)
	if err != nil {
		return err
	}
	now := b.Clock.Now()
	b.begin(pools, now)
	b.expire(now)
	return b.publish(ctx, pools, Rule(b.facts(pools, now)))
}

// Disputes are the machines that the cloud cannot find and whose nodes report, all that there are now. The collector sets
// them before it calls Refresh. About the machines in unheard a witness could not be asked: a dispute about one goes on.
func (b *Brake) Disputes(cases []Case, unheard ...string) {
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
	for _, machine := range unheard {
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

// begin reads, with the first question, what an earlier process left on the NodePools.
func (b *Brake) begin(pools *fleet, now time.Time) {
	if !b.began.IsZero() {
		return
	}
	b.began = now
	b.wanted, b.removed = map[string]sighting{}, map[string]time.Time{}
	b.records, b.shown, b.latched = map[string]Record{}, map[string]string{}, map[string]bool{}
	for name, pool := range pools.byName {
		text := pool.Annotations[karpv1.AnnotationRemovals]
		b.records[name] = readRecord(text, "", now, b.Timers.RemovalWindow)
		b.records[""] = b.records[""].with(readRecord(text, ofNone, now, b.Timers.RemovalWindow))
		switch held := pool.Annotations[karpv1.AnnotationRemovalsPaused]; held {
		case "":
		case scopeFleet:
			b.shown[name], b.latched[""] = held, true
		default:
			b.shown[name], b.latched[name] = held, true
		}
	}
}

// note remembers that a case is asked about.
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

// expire forgets what is older than the window.
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

// facts are what the verdicts depend on now.
func (b *Brake) facts(pools *fleet, now time.Time) Facts {
	f := Facts{Machines: pools.machines, Allowed: map[string]bool{}, Removed: map[string]int{}, Latched: b.latched}
	for name, pool := range pools.byName {
		f.Allowed[name] = allowedUntil(pool).After(now)
	}
	for name, record := range b.records {
		if n := record.within(now, b.Timers.RemovalWindow); n > 0 {
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

// record writes the removals that are allowed to their NodePools, and holds those that it cannot write. Those about which both
// witnesses agree do not count.
func (b *Brake) record(ctx context.Context, pools *fleet, cases []Case, verdicts []Verdict) error {
	now, allowed := b.Clock.Now(), map[string][]int{}
	for i, c := range cases {
		if verdicts[i] == Remove && !c.agreed() && !b.wasRemoved(c) {
			allowed[c.Pool] = append(allowed[c.Pool], i)
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		before, record := b.records[name], Record{}
		maps.Copy(record, before)
		record.add(now, len(allowed[name]))
		b.records[name] = record
		if pool := pools.byName[cmp.Or(name, pools.first())]; pool != nil {
			if err := b.annotate(ctx, pool, karpv1.AnnotationRemovals, b.noted(pools, pool.Name)); err != nil {
				b.records[name] = before
				for _, i := range allowed[name] {
					verdicts[i] = Hold
				}
				errs = append(errs, err)
				continue
			}
		}
		for _, i := range allowed[name] {
			b.removed[cases[i].Machine] = now
			delete(b.wanted, cases[i].Machine)
		}
	}
	return errors.Join(errs...)
}

// noted is the record as a NodePool shows it. The first NodePool also shows that of the machines of none.
func (b *Brake) noted(pools *fleet, name string) string {
	text := b.records[name].String()
	if name == pools.first() {
		text = strings.TrimSpace(text + " " + b.records[""].prefixed(ofNone))
	}
	return text
}

// annotate sets an annotation of a NodePool, or removes it if the value is empty. The patch names the value, so that it does
// not depend on how old the cached NodePool is. A NodePool that is gone needs no annotation.
func (b *Brake) annotate(ctx context.Context, pool *karpv1.NodePool, key, value string) error {
	annotations := map[string]any{key: nil}
	if value != "" {
		annotations[key] = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err == nil {
		err = client.IgnoreNotFound(b.Client.Patch(ctx, pool.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
	}
	if err != nil {
		return fmt.Errorf("writing the annotation %s of NodePool %s: %w", key, pool.Name, err)
	}
	return nil
}

// fleet are the NodePools of the provider, and how many machines each has.
type fleet struct {
	byName   map[string]*karpv1.NodePool
	machines map[string]int
}

// first is the name of the first NodePool, empty if there is none.
func (f *fleet) first() string {
	first := ""
	for name := range f.byName {
		if first == "" || name < first {
			first = name
		}
	}
	return first
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
		pool := claim.Labels[karpv1.LabelNodePool]
		if f.byName[pool] == nil {
			pool = ""
		}
		f.machines[pool]++
	}
	return f, nil
}

// allowedUntil is until when the operator allows the removals of a NodePool, zero if the annotation is absent or no time.
func allowedUntil(pool *karpv1.NodePool) time.Time {
	until, err := time.Parse(time.RFC3339, pool.Annotations[karpv1.AnnotationRemovalsAllowedUntil])
	if err != nil {
		return time.Time{}
	}
	return until
}
