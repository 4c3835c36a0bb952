package provision

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/batch"
	"github.com/karpenter-go/karpenter/internal/engine/futile"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Loop is the loop that launches nodes for pending pods, and for pods that will be pending because their nodes
// are being removed. Set the exported fields before Start.
type Loop struct {
	Snapshot func() *model.Snapshot
	Schedule func(*model.Snapshot) *plan.Provision
	Writer   Writer
	// Pending receives when pods became pending, when the removal of a node begins, or when a change may make pending
	// pods schedulable. A buffer of one element is sufficient.
	Pending <-chan struct{}
	// ReplicasAsked receives when a workload asks for pods that do not exist yet. It may be nil.
	ReplicasAsked <-chan struct{}
	// Awaited reports whether a workload has asked for pods within the last duration and has none that shows what they are
	// like. It may be nil.
	Awaited func(now time.Time, within time.Duration) bool
	// HoldDisruption protects a node from disruption until the given time, because pods were planned onto it. It may be
	// nil.
	HoldDisruption func(node string, until time.Time)
	// Changed receives when a pod was bound or is gone, or a node changed: another nomination to the node may be possible
	// (nominate.MostNominated), and virtual pods may have lost their room, or got some. It may be nil.
	Changed <-chan struct{}
	// Nominate enables nominations (--pod-placement=nominate). Otherwise the decisions of kube-scheduler are only
	// observed.
	Nominate bool
	// Left holds pods that have left nodes. It is nil if that is unknown.
	Left *Departures
	// WaitForSync blocks until snapshots show the whole cluster. It returns false when the context ended before. It
	// is nil for a source that is complete from the start. Start is not called before that, NominateFor may be.
	WaitForSync func(context.Context) bool

	Timers controller.Timers
	Clock  clock.WithTicker
	// Report reports what is decided and done.
	Report Reporter

	// retries counts consecutive ticks with failed or unfinished work.
	retries int
	// since is when the batch began.
	since time.Time
	// seen holds the pods of the last tick.
	seen map[string]bool

	// beyond is how many pods the last tick could not nominate, because the node has the maximum number of
	// nominations.
	beyond int

	// unfinished reports that the last tick's work budget did not suffice for all pods. decision is how long it was
	// computed.
	unfinished bool
	decision   time.Duration
	// version is that of the last tick's snapshot, and virtual reports that its plan has virtual pods.
	version uint64
	virtual bool
	// launches are judged by the next plan, which ends launch loops.
	launches futile.Launches

	deciding sync.Mutex
	// last is the latest plan, nil before the first.
	last  atomic.Pointer[plan.Provision]
	first sync.Once
	// targets holds the placements of the latest plan, nil before the first. destinations holds those of the pods that
	// still run, and of virtual pods.
	targets      atomic.Pointer[nominate.Targets]
	destinations atomic.Pointer[map[types.UID]string]
}

// Start runs the loop until the context ends. It never returns an error: the next tick retries whatever failed.
func (p *Loop) Start(ctx context.Context) error {
	for p.await(ctx) {
		p.Tick(ctx)
	}
	return nil
}

// await is step 1: it waits for a batch of pods, or for the timer. It returns false when the context ended.
func (p *Loop) await(ctx context.Context) bool {
	changed := p.Changed
	if p.beyond == 0 && !p.virtual {
		changed = nil
	}
	received, ok := batch.Wait(ctx, p.Clock, p.Pause(), p.Pending, changed, p.ReplicasAsked)
	for ok && received == nil && p.atRest() {
		received, ok = batch.Wait(ctx, p.Clock, p.Pause(), p.Pending, changed, p.ReplicasAsked)
	}
	p.since = p.Clock.Now()
	events, window := p.Pending, batch.Window{Idle: p.Timers.BatchIdle, Longest: p.Timers.BatchMax, More: func() bool {
		return p.Awaited != nil && p.Awaited(p.Clock.Now(), p.Timers.BatchMax)
	}}
	switch {
	case !ok || received == nil:
		return ok
	case received == p.ReplicasAsked: // the pods that come now are in the snapshot already
		events = nil
	case received == changed && p.beyond > 0 || p.unfinished: // kube-scheduler binds pods; that must not prolong the batch
		window.Longest = p.Timers.BatchIdle
	}
	return batch.End(ctx, p.Clock, events, p.ReplicasAsked, window)
}

// atRest reports whether the next plan is the same as the last: nothing has changed, and all pods, which are virtual, have
// room on nodes.
func (p *Loop) atRest() bool {
	last := p.last.Load()
	if !p.virtual || last.Virtual == nil || p.retries > 0 ||
		len(last.Order)+len(last.Refused)+len(last.Virtual.Refused)+len(last.AllClaims()) > 0 {
		return false
	}
	return p.launches.Empty() && p.Snapshot().Version == p.version
}

// Pause returns the interval of the timer. It is shorter after a tick with failed or unfinished work. After a tick
// whose work budget did not suffice, it equals the duration of the decision, so that planning uses at most half of
// one CPU.
func (p *Loop) Pause() time.Duration {
	if p.unfinished {
		return min(max(p.decision, p.Timers.BatchIdle), p.Timers.PodRetrigger)
	}
	if p.retries == 0 {
		return p.Timers.PodRetrigger
	}
	return pause.Length(p.Timers.Retry, p.Timers.PodRetrigger, p.retries)
}

// pass is one tick: its input, what is decided, and the results.
type pass struct {
	id string
	// since and began are the start and the end of the batch. seen, decided, executed and nominated are the times after the
	// snapshot and these steps.
	since, began, seen, decided, executed, nominated time.Time
	// snap is the current snapshot.
	snap *model.Snapshot
	// whole is the plan. plan is the part of it that is executed now.
	whole, plan *plan.Provision
	// unseen is the number of pending pods that no earlier tick has seen.
	unseen int
	// pauses holds the results of writing the pauses of launches that begin or end.
	pauses []execute.Outcome
	// newest is a snapshot from after the decision.
	newest *model.Snapshot
	// done holds the created claims.
	done        execute.Provisioned
	nominations []execute.Outcome
}

// Tick runs one pass.
func (p *Loop) Tick(ctx context.Context) {
	// 2. Take a snapshot, and compute a plan.
	t := p.schedule()
	// 3. Take claims out of the plan that have to wait.
	p.restrain(ctx, t)
	p.Report.decided(t)
	// 4. Check again on the newest snapshot, and create the claims.
	p.create(ctx, t)
	// 5. Nominate pods to existing nodes, and clear nominations that no longer hold: for the part of the plan that was
	// still valid, in the current state of the cluster.
	p.nominate(ctx, t)
	p.promise(t.done.Plan)
	t.nominated = p.Clock.Now()
	// 6. Decide when to continue.
	p.unfinished, p.decision = t.plan.Unfinished(), t.decided.Sub(t.began)
	p.version, p.virtual = t.snap.Version, t.whole.Virtual != nil
	p.retries++
	if len(t.failures()) == 0 && len(t.done.Dropped) == 0 {
		p.retries = 0
	}
	p.Report.executed(t)
}

// schedule begins a pass with a plan.
func (p *Loop) schedule() *pass {
	t := &pass{since: p.since, began: p.Clock.Now()}
	end := p.Report.begin(p.Clock)
	t.snap, t.seen, t.whole = p.decide()
	end()
	t.id = telemetry.PassID(provisioner, t.began, t.snap.Version)
	now := map[string]bool{}
	for _, g := range t.snap.Groups {
		for _, pod := range g.Pods {
			now[pod.UID] = true
			if !p.seen[pod.UID] {
				t.unseen++
			}
		}
	}
	p.seen = now
	return t
}

// restrain evaluates the results of earlier launches, and takes the claims out of the plan that have to wait
// (futile.Launches).
func (p *Loop) restrain(ctx context.Context, t *pass) {
	newest := t.snap
	if actions := p.launches.Judge(t.snap, t.whole, p.Left.take()); len(actions) > 0 {
		t.pauses = p.Writer.Do(ctx, actions)
		newest = p.Snapshot()
	}
	t.plan = p.launches.Restrain(newest, t.whole)
	t.decided, t.newest = p.Clock.Now(), p.Snapshot()
}

// create creates the claims of the plan.
func (p *Loop) create(ctx context.Context, t *pass) {
	t.done = p.Writer.Provision(ctx, p.Snapshot, t.plan)
	claims := created(t.done)
	p.launches.Launched(t.snap, claims)
	p.used(claims)
	t.executed = p.Clock.Now()
}

// used drops the names of created claims from those that the next plan keeps. They may be gone by then, and no other
// claim gets such a name.
func (p *Loop) used(created []plan.NewClaim) {
	p.deciding.Lock()
	defer p.deciding.Unlock()
	used := map[string]bool{}
	for i := range created {
		used[created[i].Name] = true
	}
	last := *p.last.Load()
	last.Renamed = maps.Clone(last.Renamed)
	maps.DeleteFunc(last.Renamed, func(_, name string) bool { return used[name] })
	p.last.Store(&last)
}

// created returns the claims that now exist in the API.
func created(done execute.Provisioned) []plan.NewClaim {
	var claims []plan.NewClaim
	for i, claim := range done.Plan.AllClaims() {
		if done.Outcomes[i].Err == nil {
			claims = append(claims, claim)
		}
	}
	return claims
}

// failures returns the writes that failed.
func (t *pass) failures() []execute.Outcome {
	return slices.Concat(execute.Failures(t.done.Outcomes), execute.Failures(t.nominations))
}

// nominate makes the pods' nominations match the plan.
func (p *Loop) nominate(ctx context.Context, t *pass) {
	if !p.Nominate {
		return
	}
	actions, beyond := nominate.Nominations(p.Snapshot(), t.done.Plan)
	p.beyond = beyond
	t.nominations = p.Writer.Do(ctx, actions)
}

// promise temporarily protects nodes onto which pods were planned from disruption.
func (p *Loop) promise(decided *plan.Provision) {
	if p.HoldDisruption == nil {
		return
	}
	for _, placed := range decided.Placed {
		p.HoldDisruption(placed.Node, p.Clock.Now().Add(p.Timers.Nomination))
	}
}
