package loop

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// provisioner is the value of the label controller of scheduling metrics (core specification 7.1).
const provisioner = "provisioner"

// Provision is the loop that buys nodes for pending pods, and for those that will be because their nodes are leaving. Set the exported fields before Start.
type Provision struct {
	Snapshot func() *model.Snapshot
	Schedule func(*model.Snapshot) *plan.Provision
	// Refusal says in words why pods have no place.
	Refusal func(*model.Snapshot, plan.Refusal) string
	// Barren says which of a pool's requirements leaves it without an instance type; "" for none.
	Barren func(*model.Snapshot, *model.Pool) string
	// Reasons is the same as data, for the log; nil for no log of it.
	Reasons func(*model.Snapshot, plan.Refusal) any
	Writer  Writer
	// Pending rings when pods became pending, when a node begins to leave, or when something changed that may give
	// pending pods a place. One element is enough for its buffer.
	Pending <-chan struct{}
	// Promise keeps a node from being disrupted until then, because pods were planned onto it; may be nil.
	Promise func(node string, until time.Time)
	// Moved rings when a pod came to a node: there may be room for the promise of another (plan.MostPromises). It may
	// be nil.
	Moved <-chan struct{}
	// Nominate writes nominations (--pod-placement=nominate); else kube-scheduler is only observed.
	Nominate bool
	// Left are pods that have left nodes; nil when nothing is known of them.
	Left *Departures
	// WaitForSync blocks until snapshots show the whole cluster, and is false when the context ended before; nil for a
	// source that shows it from the start. Start is not called before; NominateFor may be.
	WaitForSync func(context.Context) bool

	Timers   controller.Timers
	Clock    clock.WithTicker
	Metrics  *telemetry.Metrics
	Recorder *telemetry.Recorder
	History  *History
	Log      logr.Logger

	// retries counts ticks in a row that left something undone.
	retries int
	// since is when the batch began.
	since time.Time
	// logged are the refusals that the last tick found, as the log has them.
	logged map[string]bool
	// seen are the pods that the last tick knew.
	seen map[string]bool

	// zones are those that pods of the last tick had to be in.
	zones map[string]int

	// beyond is how many pods the last tick could not promise a node that has all the promises it may.
	beyond int

	// unfinished: the last tick's work budget did not suffice for all pods, or pods of another namespace came while its
	// claims were written. took is how long it decided.
	unfinished bool
	took       time.Duration
	// brake ends loops of launches.
	brake plan.Brake
	// unwritten is how many of its pauses were on no NodePool at the last tick.
	unwritten int

	// openings are the nodes that wait for their turn to open.
	openings openings

	deciding sync.Mutex
	// last is the latest plan, nil before the first.
	last  *plan.Provision
	first sync.Once
	// targets are where the latest plan puts its pods; nil before the first. seats are those of the pods that still run.
	targets atomic.Pointer[plan.Targets]
	seats   atomic.Pointer[map[types.UID]string]
}

// Start runs the loop until the context ends. It never returns an error: whatever goes wrong in a tick is tried again
// in the next.
func (p *Provision) Start(ctx context.Context) error {
	for p.await(ctx) {
		p.Tick(ctx)
	}
	return nil
}

// await is step 1: wait for a batch of pods, or for the timer.
func (p *Provision) await(ctx context.Context) bool {
	moved := p.Moved
	if p.beyond == 0 {
		moved = nil
	}
	rang, ok := wait(ctx, p.Clock, p.pause(), p.Pending, moved)
	p.since = p.Clock.Now()
	switch {
	case !ok || rang == nil:
		return ok
	case rang == moved || p.unfinished: // pods move as long as kube-scheduler binds: that must not make the batch longer
		return batch(ctx, p.Clock, p.Pending, window{idle: p.Timers.BatchIdle, longest: p.Timers.BatchIdle})
	}
	var look arrivals
	return batch(ctx, p.Clock, p.Pending, window{idle: p.Timers.BatchIdle, longest: p.Timers.BatchMax,
		enough: func() bool { return look.settled(p.Snapshot(), p.seen) }})
}

// pause is how long to wait when nothing rings: less after a tick that left something undone. Where the work budget did
// not suffice, as long as was decided, so that plans take half of one processor at most.
func (p *Provision) pause() time.Duration {
	if p.unfinished {
		return min(max(p.took, p.Timers.BatchIdle), p.Timers.PodRetrigger)
	}
	if p.retries == 0 {
		return p.Timers.PodRetrigger
	}
	return min(p.Timers.Retry<<min(p.retries-1, 10), p.Timers.PodRetrigger)
}

// Tick is one pass.
func (p *Provision) Tick(ctx context.Context) {
	began := p.Clock.Now()
	// 2. Take a snapshot, and 3. decide.
	snap, from, whole := p.pass()
	decided := p.restrain(ctx, snap, whole)
	at := work{since: p.since, began: began, decided: p.Clock.Now()}
	id := passID(provisioner, began, snap.Version)
	log := p.Log.WithValues(planID, id)
	p.measure(snap, decided, at.decided.Sub(began), id)
	logSlow(log, at.decided.Sub(began))
	// 4. Check again on the newest snapshot, and do.
	done, all := p.write(ctx, decided)
	p.brake.Launched(snap.Now, created(done))
	at.done = p.Clock.Now()
	p.unfinished, p.took = !all || decided.Unfinished(), at.decided.Sub(began)
	// 5. Promise pods their places on nodes that are there, and take back promises that no longer hold: for what of the
	// plan was still right, as the cluster is now.
	nominations := p.nominate(ctx, done.Plan)
	p.promise(done.Plan)
	// 6. Record.
	p.History.Add(Record{Snapshot: from, Provision: whole})
	p.report(log, done, nominations)
	p.announce(log, snap, done.Plan)
	p.logWork(log, done, at)
}

// pass decides, and shows for how long it has been at it.
func (p *Provision) pass() (snap, from *model.Snapshot, decided *plan.Provision) {
	defer p.Metrics.Passes.Begin(provisioner, p.Clock)()
	return p.decide()
}

// nominate makes the pods' nominations agree with the plan.
func (p *Provision) nominate(ctx context.Context, decided *plan.Provision) []execute.Outcome {
	if !p.Nominate {
		return nil
	}
	actions, beyond := plan.Nominations(p.Snapshot(), decided)
	p.beyond = beyond
	return p.Writer.Do(ctx, actions)
}

// work is when a pass reached its steps: the batch began, the batch was over, the plan was made, it was carried out.
type work struct{ since, began, decided, done time.Time }

// logWork tells what a pass that created claims took, in seconds. The pods are those that the claims are for.
func (p *Provision) logWork(log logr.Logger, done execute.Provisioned, at work) {
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

func (p *Provision) measure(snap *model.Snapshot, decided *plan.Provision, took time.Duration, id string) {
	telemetry.ObserveExample(p.Metrics.SchedulingDuration.WithLabelValues(provisioner), took.Seconds(), telemetry.ExemplarPlan, id)
	p.Metrics.ClusterStateNodes.Set(float64(len(snap.Nodes)))
	p.Metrics.SchedulerIgnoredPods.Set(float64(len(snap.Rejected)))
	refused := 0
	for _, r := range decided.Refused {
		if r.Verdict.Rejection == nil || r.Verdict.Code == plan.PoolBlocked || r.Verdict.Code == plan.LaunchesHeld { // else they are counted as ignored
			refused += len(plan.Waiting(r.Pods))
		}
	}
	p.Metrics.SchedulerUnschedulablePods.WithLabelValues(provisioner).Set(float64(refused))
	// A pod was first seen when its batch began: that is at most the length of the window too early.
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

// measureZones sets the series of zones that pods have to be in now, and ends those of the others: at no moment is there
// less to read than at one tick or the next.
func (p *Provision) measureZones(counts map[string]int) {
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

// remember notes since when pods are planned, and forgets those that are no longer there: the plan's may be gone since its
// snapshot.
func (p *Provision) remember(decided *plan.Provision) {
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

// promise keeps nodes that pods were planned onto from being disrupted for a while.
func (p *Provision) promise(decided *plan.Provision) {
	if p.Promise == nil {
		return
	}
	for _, placed := range decided.Placed {
		p.Promise(placed.Node, p.Clock.Now().Add(p.Timers.Nomination))
	}
}

// report tells the log, and notes whether to come back soon.
func (p *Provision) report(log logr.Logger, done execute.Provisioned, nominations []execute.Outcome) {
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

// announce emits the events about pods: where those go that need no new node, and why others go nowhere; and about
// pools from which nothing can be bought for them, whatever they ask.
func (p *Provision) announce(log logr.Logger, snap *model.Snapshot, decided *plan.Provision) {
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
			p.Recorder.Emit(telemetry.Nominated(execute.PodReference(pod), claim, node))
		}
	}
	before := p.logged
	p.logged = map[string]bool{}
	for _, refusal := range decided.Refused {
		p.explain(log, snap, refusal, before)
	}
}

// barren tells of pools whose requirements leave no instance type.
func (p *Provision) barren(snap *model.Snapshot) {
	for _, pool := range snap.Pools {
		why := p.Barren(snap, pool)
		if why == "" {
			continue
		}
		p.Recorder.Emit(telemetry.NoCompatibleInstanceTypes(&karpv1.NodePool{
			TypeMeta:   metav1.TypeMeta{APIVersion: karpv1.GroupVersion.String(), Kind: "NodePool"},
			ObjectMeta: metav1.ObjectMeta{Name: pool.Name, UID: types.UID(pool.UID)},
		}, why))
	}
}

// explain tells why pods have no place: each of them by an event, the log once for all, and not again while it stays so.
func (p *Provision) explain(log logr.Logger, snap *model.Snapshot, refusal plan.Refusal, before map[string]bool) {
	if refusal.Pods = plan.Waiting(refusal.Pods); len(refusal.Pods) == 0 {
		return
	}
	why := p.Refusal(snap, refusal)
	for _, pod := range refusal.Pods {
		p.Recorder.Emit(telemetry.FailedScheduling(execute.PodReference(pod), why))
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
