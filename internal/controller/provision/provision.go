package provision

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/batch"
	"github.com/karpenter-go/karpenter/internal/controller/decisions"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// provisioner is the value of the label controller of scheduling metrics.
const provisioner = "provisioner"

// Loop is the loop that launches nodes for pending pods, and for pods that will be pending because their nodes
// are being removed. Set the exported fields before Start.
type Loop struct {
	Snapshot func() *model.Snapshot
	Schedule func(*model.Snapshot) *plan.Provision
	// Refusal describes in words why pods are unschedulable.
	Refusal func(*model.Snapshot, plan.Refusal) string
	// Barren returns the requirement of a pool that excludes all instance types, or "" if there is none.
	Barren func(*model.Snapshot, *model.Pool) string
	// Reasons returns the same as data for the log. It may be nil: then the log does not contain it.
	Reasons func(*model.Snapshot, plan.Refusal) any
	Writer  Writer
	// Pending receives when pods became pending, when the removal of a node begins, or when a change may make pending
	// pods schedulable. A buffer of one element is sufficient.
	Pending <-chan struct{}
	// Promise protects a node from disruption until the given time, because pods were planned onto it. It may be nil.
	Promise func(node string, until time.Time)
	// Moved receives when a pod was bound to a node: another nomination to the node may be possible
	// (plan.MostPromises). It may be nil.
	Moved <-chan struct{}
	// Nominate enables nominations (--pod-placement=nominate). Otherwise the decisions of kube-scheduler are only
	// observed.
	Nominate bool
	// Left holds pods that have left nodes. It is nil if that is unknown.
	Left *Departures
	// WaitForSync blocks until snapshots show the whole cluster. It returns false when the context ended before. It
	// is nil for a source that is complete from the start. Start is not called before that, NominateFor may be.
	WaitForSync func(context.Context) bool

	Timers   controller.Timers
	Clock    clock.WithTicker
	Metrics  *telemetry.Metrics
	Recorder *telemetry.Recorder
	History  *decisions.History
	Log      logr.Logger

	// retries counts consecutive ticks with failed or unfinished work.
	retries int
	// since is when the batch began.
	since time.Time
	// logged holds the refusals of the last tick as they were logged.
	logged map[string]bool
	// seen holds the pods of the last tick.
	seen map[string]bool

	// zones counts the pods of the last tick by required zone.
	zones map[string]int

	// beyond is how many pods the last tick could not nominate, because the node has the maximum number of
	// nominations.
	beyond int

	// unfinished reports that the last tick's work budget did not suffice for all pods, or that pods of another
	// namespace were created while its claims were written. took is the duration of its decision.
	unfinished bool
	took       time.Duration
	// brake ends launch loops.
	brake plan.Brake
	// unwritten is how many of its pauses were not written to a NodePool at the last tick.
	unwritten int

	// openings tracks the nodes that wait until they may accept pods.
	openings openings

	deciding sync.Mutex
	// last is the latest plan, nil before the first.
	last  *plan.Provision
	first sync.Once
	// targets holds the placements of the latest plan, nil before the first. seats holds those of the pods that still
	// run.
	targets atomic.Pointer[plan.Targets]
	seats   atomic.Pointer[map[types.UID]string]
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
	moved := p.Moved
	if p.beyond == 0 {
		moved = nil
	}
	received, ok := batch.Wait(ctx, p.Clock, p.pause(), p.Pending, moved)
	p.since = p.Clock.Now()
	switch {
	case !ok || received == nil:
		return ok
	case received == moved || p.unfinished: // pods move as long as kube-scheduler binds; that must not prolong the batch
		return batch.End(ctx, p.Clock, p.Pending, batch.Window{Idle: p.Timers.BatchIdle, Longest: p.Timers.BatchIdle})
	}
	var look arrivals
	return batch.End(ctx, p.Clock, p.Pending, batch.Window{Idle: p.Timers.BatchIdle, Longest: p.Timers.BatchMax,
		Enough: func() bool { return look.settled(p.Snapshot(), p.seen) }})
}

// pause returns the interval of the timer. It is shorter after a tick with failed or unfinished work. After a tick
// whose work budget did not suffice, it equals the duration of the decision, so that planning uses at most half of
// one CPU.
func (p *Loop) pause() time.Duration {
	if p.unfinished {
		return min(max(p.took, p.Timers.BatchIdle), p.Timers.PodRetrigger)
	}
	if p.retries == 0 {
		return p.Timers.PodRetrigger
	}
	return min(p.Timers.Retry<<min(p.retries-1, 10), p.Timers.PodRetrigger)
}

// Tick runs one pass.
func (p *Loop) Tick(ctx context.Context) {
	began := p.Clock.Now()
	// 2. Take a snapshot, and 3. decide.
	snap, from, whole := p.pass()
	decided := p.restrain(ctx, snap, whole)
	at := work{since: p.since, began: began, decided: p.Clock.Now()}
	id := telemetry.PassID(provisioner, began, snap.Version)
	log := p.Log.WithValues(telemetry.PlanID, id)
	p.measure(snap, decided, at.decided.Sub(began), id)
	telemetry.LogSlow(log, at.decided.Sub(began))
	// 4. Check again on the newest snapshot, and execute.
	done, all := p.write(ctx, decided)
	p.brake.Launched(snap.Now, created(done))
	at.done = p.Clock.Now()
	p.unfinished, p.took = !all || decided.Unfinished(), at.decided.Sub(began)
	// 5. Nominate pods to existing nodes, and clear nominations that no longer hold: for the part of the plan that was
	// still valid, in the current state of the cluster.
	nominations := p.nominate(ctx, done.Plan)
	p.promise(done.Plan)
	// 6. Record.
	p.History.Add(decisions.Record{Snapshot: from, Provision: whole})
	p.report(log, done, nominations)
	p.announce(log, snap, done.Plan)
	p.logWork(log, done, at)
}

// pass returns a plan with its snapshots (see decide), and exports the duration of the pass in progress.
func (p *Loop) pass() (snap, from *model.Snapshot, decided *plan.Provision) {
	defer p.Metrics.Passes.Begin(provisioner, p.Clock)()
	return p.decide()
}

// nominate makes the pods' nominations match the plan, and returns the outcomes of the writes.
func (p *Loop) nominate(ctx context.Context, decided *plan.Provision) []execute.Outcome {
	if !p.Nominate {
		return nil
	}
	actions, beyond := plan.Nominations(p.Snapshot(), decided)
	p.beyond = beyond
	return p.Writer.Do(ctx, actions)
}

// work records when a pass reached its steps: start of the batch, end of the batch, plan computed, plan executed.
type work struct{ since, began, decided, done time.Time }

// logWork logs the durations, in seconds, of a pass that created claims. The pods are those for which the claims were
// created.
func (p *Loop) logWork(log logr.Logger, done execute.Provisioned, at work) {
	created := len(done.Outcomes) - len(execute.Failures(done.Outcomes))
	if created == 0 {
		return
	}
	pods := 0
	for i := range done.Plan.Claims {
		pods += len(done.Plan.Claims[i].Pods)
	}
	log.Info("created nodeclaims", "nodeclaims", created, "pods", pods, "decidedAt", at.decided.UTC().Format(time.RFC3339Nano),
		"batchSeconds", at.began.Sub(at.since).Seconds(), "scheduleSeconds", at.decided.Sub(at.began).Seconds(), "createSeconds", at.done.Sub(at.decided).Seconds())
}

func (p *Loop) measure(snap *model.Snapshot, decided *plan.Provision, took time.Duration, id string) {
	telemetry.ObserveExample(p.Metrics.SchedulingDuration.WithLabelValues(provisioner), took.Seconds(), telemetry.ExemplarPlan, id)
	p.Metrics.ClusterStateNodes.Set(float64(len(snap.Nodes)))
	p.Metrics.SchedulerIgnoredPods.Set(float64(len(snap.Rejected)))
	refused := 0
	for _, r := range decided.Refused {
		if r.Verdict.Rejection == nil || r.Verdict.Code == plan.PoolBlocked || r.Verdict.Code == plan.LaunchesHeld { // other refusals are counted as ignored
			refused += len(plan.Waiting(r.Pods))
		}
	}
	p.Metrics.SchedulerUnschedulablePods.WithLabelValues(provisioner).Set(float64(refused))
	// A pod was first seen when its batch began, which is at most the length of the window too early.
	waited, now, seen := p.Clock.Since(p.since).Seconds(), map[string]bool{}, p.seen
	for _, g := range snap.Groups {
		for _, pod := range g.Pods {
			now[pod.UID] = true
			if !seen[pod.UID] {
				p.Metrics.PodsSchedulingDecision.Observe(waited)
			}
		}
	}
	p.seen = now
	p.Metrics.SchedulerQueueDepth.WithLabelValues(provisioner).Set(float64(len(now)))
	p.measureZones(pendingByZone(snap))
	p.remember(decided)
}

// measureZones sets the series of zones in which pods must be placed now, and deletes those of other zones. At no
// moment do series disappear that exist both before and after.
func (p *Loop) measureZones(counts map[string]int) {
	for zone, n := range counts {
		p.Metrics.SchedulerPendingByZone.WithLabelValues(provisioner, zone).Set(float64(n))
	}
	for zone := range p.zones {
		if _, still := counts[zone]; !still {
			p.Metrics.SchedulerPendingByZone.DeleteLabelValues(provisioner, zone)
		}
	}
	p.zones = counts
}

// remember records since when pods are planned, and drops pods that no longer exist: pods of the plan may be gone
// since its snapshot.
func (p *Loop) remember(decided *plan.Provision) {
	newest, at := p.Snapshot(), p.Clock.Now()
	for _, pod := range plan.Waiting(decided.Order) {
		p.Metrics.Waits.Planned(pod.UID, at)
	}
	p.Metrics.Waits.Keep(func(yield func(string) bool) {
		each := func(pods []*model.Pod) bool {
			return !slices.ContainsFunc(pods, func(pod *model.Pod) bool { return !yield(pod.UID) })
		}
		for _, g := range newest.Groups {
			if !each(g.Pods) {
				return
			}
		}
		for _, n := range newest.Nodes {
			if !each(n.Pods) {
				return
			}
		}
	})
}

// promise temporarily protects nodes onto which pods were planned from disruption.
func (p *Loop) promise(decided *plan.Provision) {
	if p.Promise == nil {
		return
	}
	for _, placed := range decided.Placed {
		p.Promise(placed.Node, p.Clock.Now().Add(p.Timers.Nomination))
	}
}

// report logs the results, and decides whether to retry soon.
func (p *Loop) report(log logr.Logger, done execute.Provisioned, nominations []execute.Outcome) {
	undone := slices.Concat(execute.Failures(done.Outcomes), execute.Failures(done.Reserved), execute.Failures(nominations))
	for _, o := range undone {
		var notNow *execute.NotNowError
		if errors.As(o.Err, &notNow) {
			log.Info("the plan has to wait", "reason", o.Err.Error())
			continue
		}
		log.Error(o.Err, "carrying out the plan")
	}
	for _, d := range done.Dropped {
		log.Info("claim of the plan is no longer right", "nodeClaim", d.Claim, "nodePool", d.Pool, "code", d.Verdict.Code)
	}
	p.retries++
	if len(undone) == 0 && len(done.Dropped) == 0 {
		p.retries = 0
	}
}

// announce emits the events about pods: the target of pods that need no new node, and the reason why others are
// unschedulable. It also emits events about pools from which no node can be launched for any pod.
func (p *Loop) announce(log logr.Logger, snap *model.Snapshot, decided *plan.Provision) {
	if len(decided.Refused) > 0 {
		p.barren(snap)
	}
	for _, placed := range decided.Placed {
		claim, node := "", placed.Node
		if n := snap.Node(placed.Node); n != nil {
			claim = n.Claim
			if n.Stage < model.Registered {
				node = ""
			}
		}
		for _, pod := range plan.Waiting(placed.Pods) {
			p.Recorder.Emit(telemetry.Nominated(telemetry.PodObject(pod.Namespace, pod.Name, pod.UID), claim, node))
		}
	}
	before := p.logged
	p.logged = map[string]bool{}
	for _, refusal := range decided.Refused {
		p.explain(log, snap, refusal, before)
	}
}

// barren reports pools whose requirements exclude all instance types.
func (p *Loop) barren(snap *model.Snapshot) {
	for _, pool := range snap.Pools {
		why := p.Barren(snap, pool)
		if why == "" {
			continue
		}
		p.Recorder.Emit(telemetry.NoCompatibleInstanceTypes(telemetry.PoolObject(pool.Name, pool.UID), why))
	}
}

// explain reports why pods are unschedulable: in an event for each pod, and in the log once for all, and not again
// while it is unchanged.
func (p *Loop) explain(log logr.Logger, snap *model.Snapshot, refusal plan.Refusal, before map[string]bool) {
	if refusal.Pods = plan.Waiting(refusal.Pods); len(refusal.Pods) == 0 {
		return
	}
	why := p.Refusal(snap, refusal)
	for _, pod := range refusal.Pods {
		p.Recorder.Emit(telemetry.FailedScheduling(telemetry.PodObject(pod.Namespace, pod.Name, pod.UID), why))
	}
	if p.Reasons == nil {
		return
	}
	id := refusal.Pods[0].UID + " " + why
	if !before[id] && !p.logged[id] {
		log.Info("pods have no place", "pods", len(refusal.Pods), "pod", refusal.Pods[0].Key(), "reasons", p.Reasons(snap, refusal))
	}
	p.logged[id] = true
}
