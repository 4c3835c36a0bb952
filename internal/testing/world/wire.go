package world

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/disrupt"
	"github.com/karpenter-go/karpenter/internal/controller/node"
	"github.com/karpenter-go/karpenter/internal/controller/nodeclaim"
	"github.com/karpenter-go/karpenter/internal/controller/nodepool"
	"github.com/karpenter-go/karpenter/internal/controller/provision"
	"github.com/karpenter-go/karpenter/internal/controller/removal"
	"github.com/karpenter-go/karpenter/internal/controller/static"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// wire builds the loops and controllers of a process, as the binary does.
func wire(w *World, p *process) error {
	executor := &execute.Executor{Client: p.api, Live: p.api.live(), Store: p.store, Metrics: metrics(), WellKnown: map[string]bool{},
		WriteTimeout: never, CordonQuiet: w.config.Timers.CordonQuiet, Workers: 1,
		Guard: func(snap *model.Snapshot) *guard.Guard {
			g := guard.New(snap)
			g.Validation, g.Judge = w.config.Timers.Validation, disruption.Judge(snap, w.disruption(p))
			return g
		}}
	for _, key := range p.store.Vocabulary().Rules.WellKnown {
		executor.WellKnown[key] = true
	}
	parts := &Parts{}
	wireLoops(w, p, executor, parts)
	return wireControllers(w, p, parts)
}

// Parts are those of a process in which tests plant bugs.
type Parts struct {
	Provision *provision.Loop
	Disrupt   *disrupt.Loop
	Static    *static.Loop
	Limiter   *removal.Limiter
	Collector *nodeclaim.Collector
	Repair    *node.Repair
}

// disruption returns the options of disruption of a process.
func (w *World) disruption(p *process) disruption.Options {
	opts := w.config.Disruption
	opts.Last = p.provision.Last()
	return opts
}

func wireLoops(w *World, p *process, executor *execute.Executor, parts *Parts) {
	timers := w.config.Timers
	snapshot := func() *model.Snapshot { return p.store.Snapshot(w.read.Now()) }
	p.provision = &provision.Loop{Snapshot: snapshot, Writer: executor, HoldDisruption: p.store.Nominate, Nominate: true,
		Left: &p.departures,
		Schedule: func(snap *model.Snapshot) *plan.Provision {
			return placement.Schedule(snap, w.config.Disruption.Placement)
		},
		Timers: timers, Clock: w.read,
		Report: provision.Reporter{Refusal: explain.Refusal, NoTypes: explain.NoTypes, Metrics: metrics(), Log: w.lines()}}
	p.disrupt = &disrupt.Loop{Snapshot: snapshot, Writer: executor, Timers: timers, Clock: w.read,
		Propose: func(snap *model.Snapshot, search bool) disruption.Proposal {
			opts := w.disruption(p)
			opts.NoSearch = !search
			return w.ledger.proposed(disruption.Propose(snap, opts))
		},
		Report: disrupt.Reporter{Options: w.config.Disruption, Metrics: metrics(), Log: w.lines()}}
	p.static = &static.Loop{Snapshot: snapshot, Writer: executor, On: w.config.Disruption.Static, Timers: timers, Clock: w.read,
		Report: static.Reporter{Why: explain.Verdict, Log: w.lines()}}
	parts.Provision, parts.Disrupt, parts.Static = p.provision, p.disrupt, p.static
	subscribe := func(of state.Change) source { return source{ch: p.store.Subscribe(of)} }
	var changed []source
	if !w.config.Periodic {
		changed = []source{subscribe(state.PodsMoved | state.NodesChanged | state.NodesNominated | state.PoolsChanged | state.PDBsChanged)}
	}
	moved := subscribe(state.PodsMoved | state.NodesChanged)
	moved.counts = func() bool { return p.provision.Last() != nil && p.provision.Last().Virtual != nil }
	p.tasks = append(p.tasks, wireBuffers(w, p), // before disruption: an empty node may have their room
		&beat{clock: w.Clock, changed: []source{subscribe(state.PodsPending | state.PoolsChanged | state.NodesLost), subscribe(state.ReplicasAsked), moved},
			idle: timers.BatchIdle, longest: timers.BatchMax, pause: p.provision.Pause, pass: p.provision.Tick},
		&beat{clock: w.Clock, changed: changed, idle: timers.BatchIdle, longest: timers.BatchIdle, pause: p.disrupt.Pause,
			pass: func(ctx context.Context) { w.disruptions.during("disrupt", func() { p.disrupt.Tick(ctx) }) }})
	if w.config.Disruption.Static {
		p.tasks = append(p.tasks, &beat{clock: w.Clock, changed: []source{subscribe(state.NodesChanged | state.PoolsChanged)},
			idle: timers.BatchIdle, longest: timers.BatchIdle, pause: p.static.Pause,
			pass: func(ctx context.Context) { w.disruptions.during("static", func() { p.static.Tick(ctx) }) }})
	}
}

func wireControllers(w *World, p *process, parts *Parts) error {
	timers, health := w.config.Timers, nodepool.NewHealth()
	p.addQueues(timers)
	cloud := called{w.provider, p.api.permit}
	mgr := &fake{scheme: w.scheme}
	if err := wireRemovals(w, p, parts); err != nil {
		return err
	}
	limiter, collector, repair := parts.Limiter, parts.Collector, parts.Repair
	pools := &nodepool.Reconciler{Client: p.api, Provider: cloud, Timers: timers, Clock: w.read, Health: health, Metrics: metrics()}
	claims := &nodeclaim.Reconciler{Client: p.api, Live: p.api.live(), Provider: cloud, Metrics: metrics(), Timers: timers, Clock: w.read,
		Price: w.provider.priceOf, BeforeReady: p.provision.NominateFor, Attempted: health.Record, Wrote: p.store.Wrote,
		SoldOut: func(ctx context.Context, _ *karpv1.NodeClaim) { p.store.RefreshCatalogs(ctx) }}
	drifts := &nodeclaim.DriftReconciler{Client: p.api, Provider: cloud, Metrics: metrics(), Timers: timers, Clock: w.read}
	nodes := &node.Reconciler{Client: p.api, Live: p.api.live(), Provider: cloud, Metrics: metrics(), Timers: timers, Clock: w.read,
		Destination: p.provision.Destination, Reports: limiter.Reports, Ahead: w.read.Ahead, Evictions: p.evictions}
	p.events = &nodeclaim.PodEvents{Client: p.api, Provider: cloud, Metrics: metrics(), Timers: timers, Clock: w.read}
	for _, c := range []interface {
		SetupWithManager(manager.Manager) error
	}{pools, claims, drifts, nodes, p.events, collector, repair} {
		if err := c.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	p.tasks = append([]task{work[reconcile.Request]{p.pools, pools.Reconcile}, work[reconcile.Request]{p.claims, claims.Reconcile},
		work[reconcile.Request]{p.nodes, nodes.Reconcile},
		&evicting{p.evictions, nodes}, work[nodeclaim.Moment]{p.moments, p.events.Reconcile}, work[reconcile.Request]{p.drifts, drifts.Reconcile},
		work[reconcile.Request]{p.repairs, func(ctx context.Context, node reconcile.Request) (result reconcile.Result, err error) {
			w.removals.during(true, func() { result, err = repair.Reconcile(ctx, node) })
			return result, err
		}},
		&collection{Collector: collector, world: w, at: w.Clock.now.Add(timers.CollectionFirst)}}, p.tasks...)
	return nil
}

// wireRemovals builds what removes machines that neither a user nor a plan requested, and plants bugs.
func wireRemovals(w *World, p *process, parts *Parts) error {
	timers, cloud := w.config.Timers, called{w.provider, p.api.permit}
	classes, err := controller.ClassesOf(w.provider, w.scheme)
	limiter := &removal.Limiter{Client: p.api, Live: p.api.live(), Provider: cloud, Classes: classes, Metrics: metrics(), Timers: timers,
		Clock: w.read, Ahead: w.read.Ahead}
	parts.Limiter = limiter
	parts.Collector = &nodeclaim.Collector{Client: p.api, Live: p.api.live(), Provider: cloud, Metrics: metrics(), Timers: timers, Clock: w.read,
		Limiter: limiter}
	parts.Repair = &node.Repair{Client: p.api, Live: p.api.live(), Provider: cloud, Policies: w.provider.RepairPolicies(), Metrics: metrics(),
		Timers: timers, Clock: w.read, Limiter: limiter, Ahead: w.read.Ahead}
	if w.config.Plant != nil {
		w.config.Plant(parts)
	}
	p.provision.Schedule = w.disruptions.judged(p, p.provision.Schedule)
	return err
}

func (p *process) addQueues(timers controller.Timers) {
	for _, queue := range []**queue[reconcile.Request]{&p.pools, &p.claims, &p.drifts, &p.repairs} {
		*queue = newQueue[reconcile.Request](p.clock, timers.Retry, timers.RetryMax)
	}
	p.nodes = newQueue[reconcile.Request](p.clock, timers.Eviction, timers.EvictionMax)
	p.evictions = newQueue[node.Target](p.clock, timers.Eviction, timers.EvictionMax)
	p.moments = newQueue[nodeclaim.Moment](p.clock, timers.Retry, timers.RetryMax)
}

// evicting serves the queue of evictions.
type evicting struct {
	*queue[node.Target]

	nodes *node.Reconciler
}

func (e *evicting) run(ctx context.Context) { e.nodes.Evict(ctx) }

// logger returns what controllers log to: the trace of the world, or its lines.
func (w *World) logger() logr.Logger {
	if w.config.Log == nil {
		return w.lines()
	}
	return funcr.New(func(_, line string) { w.log("logs " + line) }, funcr.Options{})
}

// lines returns the log of the controller, with the builtin keys that the binary writes.
func (w *World) lines() logr.Logger {
	if w.config.Lines == nil {
		return logr.Discard()
	}
	return funcr.NewJSON(w.config.Lines, funcr.Options{RenderBuiltinsHook: func(builtins []any) []any {
		message := builtins[slices.Index(builtins, any("msg"))+1]
		at := w.Clock.now.UTC().Format("2006-01-02T15:04:05.000Z0700")
		return []any{"level", "INFO", "time", at, "logger", "controller", "message", message}
	}})
}

// fake is the manager in which controllers are registered. It starts nothing.
type fake struct {
	manager.Manager

	scheme *runtime.Scheme
	fields map[kind]map[string]func(client.Object) []string
}

func (f *fake) GetScheme() *runtime.Scheme { return f.scheme }
func (f *fake) GetLogger() logr.Logger     { return logr.Discard() }
func (f *fake) GetCache() cache.Cache      { return nil }
func (f *fake) Add(manager.Runnable) error { return nil }
func (f *fake) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true)}
}
func (f *fake) GetFieldIndexer() client.FieldIndexer { return f }

// IndexField implements client.FieldIndexer.
func (f *fake) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	if f.fields[kindOf(o)] == nil {
		f.fields[kindOf(o)] = map[string]func(client.Object) []string{}
	}
	f.fields[kindOf(o)][field] = values
	return nil
}

func schemeOf() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), karpv1.AddToScheme(scheme), kwokv1alpha1.AddToScheme(scheme),
		autoscalingv1beta1.AddToScheme(scheme))
}

// metrics are shared by all worlds: nothing reads them.
var metrics = sync.OnceValue(func() *telemetry.Metrics { return telemetry.New(prometheus.NewRegistry()) })
