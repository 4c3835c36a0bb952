package removal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
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

// Ask says what to do about each case. A removal that is allowed is recorded before Ask returns. On an error nothing may be
// removed.
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
		if verdicts[i] = ruling.Of(c); b.wasRemoved(c) {
			verdicts[i] = Remove
		}
	}
	// 3. Act.
	if err := b.record(ctx, pools, cases, verdicts); err != nil {
		return nil, err
	}
	return verdicts, b.publish(ctx, pools, ruling)
}

// Disputes are the machines that the cloud cannot find and whose nodes report, all that there are now. The collector sets
// them, and asks at least once in each of its rounds, so that the brake lets go in time.
func (b *Brake) Disputes(cases []Case) {
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
		b.records[name] = readRecord(pool.Annotations[karpv1.AnnotationRemovals], now, b.Timers.RemovalWindow)
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
	if c.bothGone() || c.disputed() || b.wasRemoved(c) {
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

// record writes the removals that are allowed to their NodePools. Those that both witnesses call gone do not count.
func (b *Brake) record(ctx context.Context, pools *fleet, cases []Case, verdicts []Verdict) error {
	now, changed := b.Clock.Now(), map[string]bool{}
	for i, c := range cases {
		if verdicts[i] != Remove || c.bothGone() || b.wasRemoved(c) {
			continue
		}
		b.removed[c.Machine] = now
		delete(b.wanted, c.Machine)
		if b.records[c.Pool] == nil {
			b.records[c.Pool] = Record{}
		}
		b.records[c.Pool].add(now, 1)
		changed[c.Pool] = true
	}
	var errs []error
	for name := range changed {
		if pool := pools.byName[name]; pool != nil {
			errs = append(errs, b.annotate(ctx, pool, karpv1.AnnotationRemovals, b.records[name].String()))
		}
	}
	return errors.Join(errs...)
}

// annotate sets an annotation of a NodePool, or removes it if the value is empty.
func (b *Brake) annotate(ctx context.Context, pool *karpv1.NodePool, key, value string) error {
	changed := pool.DeepCopy()
	if value == "" {
		delete(changed.Annotations, key)
	} else {
		if changed.Annotations == nil {
			changed.Annotations = map[string]string{}
		}
		changed.Annotations[key] = value
	}
	if err := b.Client.Patch(ctx, changed, client.MergeFrom(pool)); err != nil {
		return fmt.Errorf("writing the annotation %s of NodePool %s: %w", key, pool.Name, err)
	}
	return nil
}

// fleet are the NodePools of the provider, and how many machines each has.
type fleet struct {
	byName   map[string]*karpv1.NodePool
	machines map[string]int
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

// Testify is what a node says of its machine.
func (b *Brake) Testify(ctx context.Context, node *corev1.Node) (Testimony, error) {
	facts := NodeFacts{Exists: true}
	if ready := karpv1.ReadyCondition(node); ready != nil {
		facts.Ready = ready.Status
	}
	now := b.Clock.Now()
	if b.Ahead != nil {
		now = now.Add(-b.Ahead())
	}
	if said := facts.Testimony(now); said == Alive {
		return said, nil
	}
	if err := b.readLease(ctx, node.Name, &facts); err != nil {
		return Unknown, err
	}
	return facts.Testimony(now), nil
}

// TestifyMachine is what the nodes of a machine say of it: Alive if one does.
func (b *Brake) TestifyMachine(ctx context.Context, providerID string) (Testimony, error) {
	var nodes corev1.NodeList
	if err := b.Client.List(ctx, &nodes, client.MatchingFields{controller.FieldNodeProviderID: providerID}); err != nil {
		return Unknown, fmt.Errorf("listing the nodes of machine %s: %w", providerID, err)
	}
	for i := range nodes.Items {
		said, err := b.Testify(ctx, &nodes.Items[i])
		if err != nil || said == Alive {
			return said, err
		}
	}
	return Gone, nil
}

// Reports says whether a node reports.
func (b *Brake) Reports(ctx context.Context, node *corev1.Node) (bool, error) {
	said, err := b.Testify(ctx, node)
	return said == Alive, err
}

// AskFor asks for a provider that wants to delete a claim because of what its cloud says (cloud.Remover).
func (b *Brake) AskFor(ctx context.Context, r cloud.Removal) (bool, error) {
	id := r.Claim.Status.ProviderID
	c := Case{Machine: id, Pool: r.Claim.Labels[karpv1.LabelNodePool], Cause: Cause(r.Cause), Announced: r.Ended, Cloud: Alive}
	machine, err := b.Provider.Machine(ctx, id)
	switch {
	case errors.Is(err, cloud.ErrNotFound) || err == nil && machine.Terminating:
		c.Cloud = Gone
	case err != nil:
		return false, fmt.Errorf("asking for machine %s: %w", id, err)
	case r.Ended:
		ctrl.LoggerFrom(ctx).Info("kept a machine: the cloud announced its end, and a direct look shows that it runs", "nodeClaim", r.Claim.Name, "providerID", id)
		return false, nil
	}
	if c.Node, err = b.TestifyMachine(ctx, id); err != nil {
		return false, err
	}
	verdicts, err := b.Ask(ctx, c)
	return err == nil && verdicts[0] == Remove, err
}
