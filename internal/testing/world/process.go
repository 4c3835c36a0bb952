package world

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cluster"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/disrupt"
	"github.com/karpenter-go/karpenter/internal/controller/node"
	"github.com/karpenter-go/karpenter/internal/controller/nodeclaim"
	"github.com/karpenter-go/karpenter/internal/controller/provision"
	"github.com/karpenter-go/karpenter/internal/controller/static"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// process is one run of the controller: the production loops and controllers, each with its queue. All of its state is
// in memory, and is lost when it ends. It does one thing at a time.
type process struct {
	ctx   context.Context
	stop  context.CancelFunc
	clock *Clock
	view  *view
	api   *caller
	store *cluster.Store

	provision *provision.Loop
	disrupt   *disrupt.Loop
	static    *static.Loop
	events    *nodeclaim.PodEvents

	pools, claims, drifts, nodes, repairs *queue[reconcile.Request]
	evictions                             *queue[node.Target]
	moments                               *queue[nodeclaim.Moment]
	// buffered receives when the controller of buffers has something to do. departures are the pods that have left nodes.
	buffered   chan struct{}
	departures provision.Departures
	// tasks are what the process does, in the order in which it looks for something that is due.
	tasks []task
}

// task is something that a process does again and again.
type task interface {
	// next returns when it is due, zero for not before another event.
	next() time.Time
	run(ctx context.Context)
}

// work serves a queue.
type work[T comparable] struct {
	*queue[T]

	reconcile func(context.Context, T) (ctrl.Result, error)
}

func (w work[T]) run(ctx context.Context) {
	item, _ := w.Get()
	result, err := w.reconcile(ctx, item)
	switch {
	case err != nil:
		w.AddRateLimited(item)
	case result.RequeueAfter > 0:
		w.Forget(item)
		w.AddAfter(item, result.RequeueAfter)
	default:
		w.Forget(item)
	}
}

// source announces changes. They count if counts, which may be nil, returns true.
type source struct {
	ch     <-chan struct{}
	counts func() bool
}

// beat is a loop: it has a pass after a batch of changes, and by its timer.
type beat struct {
	clock *Clock
	// changed receive at changes; they form a batch as in package batch.
	changed       []source
	idle, longest time.Duration
	pause         func() time.Duration
	pass          func(context.Context)

	// began and latest are the times of the first and of the last change of the batch, zero for none; last is that of
	// the last pass.
	began, latest, last time.Time
}

func (b *beat) next() time.Time {
	for _, s := range b.changed {
		select {
		case <-s.ch:
			if s.counts != nil && !s.counts() {
				continue
			}
			b.latest = b.clock.now
			if b.began.IsZero() {
				b.began = b.clock.now
			}
		default:
		}
	}
	timer := b.last.Add(b.pause())
	if b.began.IsZero() {
		return timer
	}
	at := b.latest.Add(b.idle)
	if end := b.began.Add(b.longest); end.Before(at) {
		at = end
	}
	return at
}

func (b *beat) run(ctx context.Context) {
	b.last, b.began = b.clock.now, time.Time{}
	b.pass(ctx)
}

// collection is garbage collection.
type collection struct {
	*nodeclaim.Collector

	world  *World
	at     time.Time
	rounds int
}

// firstRounds is how many successful rounds of garbage collection follow each other closely, as in controller/nodeclaim.
const firstRounds = 20

func (c *collection) next() time.Time { return c.at }

func (c *collection) run(ctx context.Context) {
	c.world.removals.during(false, func() {
		if c.Collect(ctx) == nil { // else the next round tries again
			c.rounds++
		}
	})
	c.at = c.world.Clock.now.Add(c.Timers.Collection)
	if c.rounds < firstRounds {
		c.at = c.world.Clock.now.Add(min(c.Timers.CollectionFirst, c.Timers.Collection))
	}
}

// step does one thing that is due. It returns false if there is none.
func (p *process) step() bool {
	if c, news := p.view.show(p.clock.now); news {
		p.watched(c)
		return true
	}
	for _, t := range p.tasks {
		if at := t.next(); !at.IsZero() && !at.After(p.clock.now) {
			t.run(p.ctx)
			return true
		}
	}
	return false
}

// next returns when the process has something to do, zero for never.
func (p *process) next() time.Time {
	var first time.Time
	if c, behind := p.view.first(); behind {
		first = c.due
	}
	for _, t := range p.tasks {
		if at := t.next(); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// watched lets the store and the controllers see a change.
func (p *process) watched(c change) {
	if c.after == nil {
		p.store.Gone(c.before)
	} else {
		p.store.Saw(c.after)
	}
	o := c.object()
	name := reconcile.Request{NamespacedName: types.NamespacedName{Name: o.GetName()}}
	switch o := o.(type) {
	case *karpv1.NodePool:
		p.pools.Add(name)
		if c.before == nil || c.after == nil || c.before.GetGeneration() != c.after.GetGeneration() {
			p.readCatalogs()
		}
	case *karpv1.NodeClaim:
		p.claims.Add(name)
		p.drifts.Add(name)
	case *corev1.Node:
		p.claimsOf(o)
		p.nodes.Add(name)
		p.repairs.Add(name)
	case *corev1.Pod:
		p.sawPod(c)
	case *autoscalingv1beta1.CapacityBuffer:
		if c.before == nil || c.after == nil || c.before.GetGeneration() != c.after.GetGeneration() {
			p.buffersChanged()
		}
	case *karpv1alpha1.NodeOverlay:
		p.readCatalogs()
	}
}

// readCatalogs reads the catalogs now. The store would read them in goroutines of its own, at any moment of a plan and its
// audit.
func (p *process) readCatalogs() {
	for range 2 { // the change may have begun a reading, after which the first call leaves another one
		p.store.RefreshCatalogs(p.ctx)
	}
}

// claimsOf enqueues the claims of a node.
func (p *process) claimsOf(n *corev1.Node) {
	for _, c := range p.view.list(kindOf(&karpv1.NodeClaim{}), controller.FieldClaimProviderID, n.Spec.ProviderID) {
		p.claims.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)})
	}
}

func (p *process) sawPod(c change) {
	h := p.events.Handler()
	switch {
	case c.before == nil:
		h.Create(p.ctx, event.CreateEvent{Object: c.after}, p.moments)
	case c.after != nil:
		h.Update(p.ctx, event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}, p.moments)
	default:
		h.Delete(p.ctx, event.DeleteEvent{Object: c.before}, p.moments)
		p.nodes.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: c.before.(*corev1.Pod).Spec.NodeName}})
	}
}

// newProcess starts a process, which lists everything.
func newProcess(w *World) (*process, error) {
	ctx, stop := context.WithCancel(ctrl.LoggerInto(context.Background(), w.logger()))
	p := &process{ctx: ctx, stop: stop, clock: w.Clock, view: newView(w.api, w.lag), buffered: make(chan struct{}, 1)}
	p.api = &caller{api: w.api, scheme: w.scheme, from: &p.view.shelves, permit: func(text string) error { return w.permit(ctx, text) },
		evict: w.evict, answer: w.answer, renewed: w.renewed}
	store, err := cluster.NewStore(cluster.Config{Provider: w.provider, Scheme: w.scheme, Live: p.api.live(), Log: logr.Discard(),
		State:    state.Config{Arrival: w.config.Timers.Arrival, Overlays: w.config.Overlays, Replicas: w.config.Replicas},
		Departed: p.departures.Add, PriceRules: w.config.PriceRules != nil,
		Options: cluster.Options{WriteVisible: never, Catalog: never}})
	if err != nil {
		return nil, err
	}
	p.store = store
	if w.config.PriceRules != nil {
		if err := store.SetPriceRules(w.config.PriceRules); err != nil {
			return nil, err
		}
	}
	if err := wire(w, p); err != nil {
		return nil, err
	}
	for _, c := range p.view.everything() {
		p.watched(c)
	}
	go func() { _ = store.Start(ctx) }() // reads catalogs when it is asked
	for !p.stocked() {
		store.RefreshCatalogs(ctx) // returns at once as long as the store has not started
		runtime.Gosched()
	}
	return p, nil
}

// stocked reports whether the store has read the catalogs of all pools.
func (p *process) stocked() bool {
	return !slices.ContainsFunc(p.store.Snapshot(p.clock.now).Pools, func(pool *model.Pool) bool { return pool.Catalog == nil })
}

// never is the period of what a world does itself.
const never = 1000 * time.Hour
