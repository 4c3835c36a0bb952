package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karpenter-go/karpenter/api"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/cloud/kwok"
	"github.com/karpenter-go/karpenter/internal/cluster"
	"github.com/karpenter-go/karpenter/internal/cluster/room"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/disrupt"
	"github.com/karpenter-go/karpenter/internal/controller/node"
	"github.com/karpenter-go/karpenter/internal/controller/nodeclaim"
	"github.com/karpenter-go/karpenter/internal/controller/nodepool"
	"github.com/karpenter-go/karpenter/internal/controller/provision"
	"github.com/karpenter-go/karpenter/internal/controller/quota"
	"github.com/karpenter-go/karpenter/internal/controller/removal"
	"github.com/karpenter-go/karpenter/internal/controller/static"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/gates"
	"github.com/karpenter-go/karpenter/internal/telemetry"
	"github.com/karpenter-go/karpenter/internal/transport"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

// nominationBurst is how many nominations may be written in one burst, however low --kube-client-burst is: a large
// node is opened only after its pods are nominated.
const nominationBurst = 1000

// wiring holds the parts of the controller while it is assembled.
type wiring struct {
	process  *process
	o        *controllerOptions
	mgr      manager.Manager
	metrics  *telemetry.Metrics
	recorder *telemetry.Recorder
	provider cloud.Provider
	prices   priceRules
	store    *cluster.Store
	executor *execute.Executor
	clock    clock.RealClock
	// departures are the pods that have left nodes, and the nodes that are being removed, for the provision loop.
	departures provision.Departures
	causes     execute.Causes
	config     *rest.Config
	// leading rejects writes once the Lease has expired.
	leading *transport.Guard
	// skew is the difference between the clocks of this machine and the API server.
	skew *transport.Skew
	// stock receives a signal when catalogs must be read again.
	stock chan struct{}
	// live reads what CapacityBuffers refer to, nil if they have no effect.
	live room.Reader
	// newest is the last snapshot that a loop took, nil before the first.
	newest atomic.Pointer[model.Snapshot]
	// lastPlan returns the last plan of provisioning, nil before the first.
	lastPlan func() *plan.Provision
}

// newController assembles the controller. Nothing runs before the manager is started.
//
//	manager: cache --> store --> loops --> executor --> API
//	           \--> controllers (pool, claim, node) --> provider
func newController(ctx context.Context, p *process, config *rest.Config, server *version.Info) (manager.Manager, error) {
	o := p.o
	w := &wiring{process: p, o: o, stock: make(chan struct{}, 1)}
	scheme, err := api.NewScheme()
	if err != nil {
		return nil, err
	}
	lock, err := p.electionLock(config, scheme)
	if err != nil {
		return nil, err
	}
	if err := p.unreadable.connect(ctx, config, scheme); err != nil {
		return nil, err
	}
	// All writes go through the guard, except those of the election and events about objects that cannot be read.
	w.guardLease()
	w.skew = &transport.Skew{Changed: w.clockDiffers}
	config = rest.CopyConfig(config)
	config.Wrap(w.leading.Transport)
	config.Wrap(w.skew.Transport)
	config.Wrap((&transport.Pace{Ceiling: float64(o.qps)}).Transport)
	w.config = config
	options := w.managerOptions(scheme)
	if err := cluster.CutPods(&options.Cache, config); err != nil {
		return nil, err
	}
	options.LeaderElectionResourceLockInterface = w.leading.Lock(lock)
	if w.mgr, err = ctrl.NewManager(config, options); err != nil {
		return nil, fmt.Errorf("setting up the controller: %w", err)
	}
	w.metrics = telemetry.New(ctrlmetrics.Registry)
	w.metrics.Running(release)
	if err := w.addTraces(ctx); err != nil {
		return nil, err
	}
	w.metrics.MeasureClient()
	w.leading.Refused = func(what string) { w.metrics.LeaderRefusedWrites.WithLabelValues(what).Inc() }
	w.recorder = telemetry.NewRecorder(w.mgr.GetEventRecorder(telemetry.Component), w.clock)
	for _, step := range []func(context.Context) error{w.addProvider, w.addStore, w.addHealth, w.addExecutor} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if err := controller.Index(ctx, w.mgr); err != nil {
		return nil, err
	}
	return w.mgr, w.addParts(ctx, nominates(o.podPlacement, server))
}

func (w *wiring) managerOptions(scheme *runtime.Scheme) ctrl.Options {
	o := w.o
	renew, retry, shutdown := o.electionRenewal(), o.electionLease*2/15, 8*time.Second
	return ctrl.Options{
		Scheme:                        scheme,
		LeaderElection:                !o.noElection,
		LeaderElectionID:              o.electionName,
		LeaderElectionNamespace:       electionNamespace(o.electionNamespace),
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.electionLease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
		GracefulShutdownTimeout:       &shutdown,
		HealthProbeBindAddress:        "0", // probes are served from the start, see probes
		Metrics: metricsserver.Options{
			BindAddress: address(o.metricsPort), ExtraHandlers: profilers(o.profiling), FilterProvider: telemetry.OpenMetrics(ctrlmetrics.Registry),
		},
		Controller: ctrlconfig.Controller{EnableWarmup: new(!o.noWarmup)},
		Cache:      cluster.CacheOptions(o.state().Foresight(), w.watchBroke),
	}
}

// electionNamespace returns the namespace of the Lease: the given one, else, outside a cluster, kube-system. Inside a
// cluster the empty name means the program's own namespace.
func electionNamespace(given string) string {
	if _, err := os.Stat(cli.NamespaceFile); given == "" && err != nil {
		return "kube-system"
	}
	return given
}

func address(port int) string {
	if port == 0 {
		return "0" // disables the server
	}
	return ":" + strconv.Itoa(port)
}

func profilers(on bool) map[string]http.Handler {
	if !on {
		return nil
	}
	handlers := map[string]http.Handler{
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
	}
	for _, name := range []string{"allocs", "heap", "block", "goroutine", "threadcreate"} {
		handlers["/debug/pprof/"+name] = pprof.Handler(name)
	}
	return handlers
}

// nominates reports whether pods are nominated to their planned nodes: as the flag specifies, else by the server's
// version. Nomination by components other than kube-scheduler is beta since Kubernetes 1.35 (KEP-5278,
// https://github.com/kubernetes/enhancements/issues/5278).
func nominates(placement string, server *version.Info) bool {
	if placement != "" {
		return placement == "nominate"
	}
	major, _ := strconv.Atoi(server.Major)
	minor, _ := strconv.Atoi(strings.TrimRight(server.Minor, "+"))
	return major > 1 || major == 1 && minor >= 35
}

func (w *wiring) addProvider(ctx context.Context) error {
	switch w.o.cloudProvider {
	case "kwok":
		return w.addKwok()
	case "aws":
		return w.addAWS(ctx)
	}
	return cli.UsageErrorf("--cloud-provider is %q, want aws or kwok", w.o.cloudProvider)
}

func (w *wiring) addKwok() error {
	options := kwok.Options{
		Client: w.mgr.GetClient(), Reader: w.mgr.GetAPIReader(),
		RepairToleration: w.o.kwokRepair,
	}
	if path := w.o.instanceTypesFile; path != "" {
		file, err := os.Open(path)
		if err != nil {
			return cli.UsageErrorf("--instance-types-file-path: %w", err)
		}
		defer file.Close()
		if options.Types, options.ProviderLabels, err = kwok.ReadInstanceTypes(file, path); err != nil {
			return cli.UsageErrorf("--instance-types-file-path: %w", err)
		}
	}
	if !w.o.on.On(gates.ReservedCapacity) {
		options.Types = cloud.WithoutReserved(options.Types)
	}
	provider, err := kwok.New(options)
	if err != nil {
		return cli.UsageErrorf("setting up kwok: %w", err)
	}
	w.provider = provider
	return errors.Join(w.mgr.Add(provider), w.mgr.Add(everywhere(w.followStock)))
}

// instrumented returns the provider with its calls measured under a controller's name.
func (w *wiring) instrumented(name string) cloud.Provider {
	return telemetry.Instrument(w.provider, w.metrics, name)
}

// guarded returns the instrumented provider for a controller that launches or terminates machines.
func (w *wiring) guarded(name string) cloud.Provider {
	return w.leading.Provider(w.instrumented(name))
}

func (w *wiring) addStore(ctx context.Context) error {
	store, err := cluster.NewStore(cluster.Config{
		Provider: w.instrumented("state"), Scheme: w.mgr.GetScheme(), Live: w.mgr.GetAPIReader(),
		Rejected: func(kind string, count int) { w.metrics.ClusterStateRejected.WithLabelValues(kind).Set(float64(count)) },
		Departed: w.departures.Add, PriceRules: w.o.changesPrices(),
		State: *w.o.state(),
		Log:   w.mgr.GetLogger().WithName("state"),
		Options: cluster.Options{
			WriteVisible: w.o.timers.WriteVisible, Catalog: w.o.timers.Catalog,
			CatalogTimeout: w.o.timers.CatalogRead, CatalogRetry: w.o.timers.CatalogRetry,
		},
	})
	if err != nil {
		return fmt.Errorf("setting up the store: %w", err)
	}
	w.store = store
	if err := w.o.checkSelection(store.Vocabulary().Rules); err != nil {
		return err
	}
	if provider, ok := w.provider.(cloud.Overlaid); ok && (w.o.on.On(gates.NodeOverlay) || w.o.changesPrices()) {
		provider.SetOverlay(store.Overlaid)
	}
	if err := store.Watch(ctx, w.mgr.GetCache()); err != nil {
		return err
	}
	if err := w.addPriceFile(); err != nil {
		return err
	}
	return w.mgr.Add(store)
}

func (w *wiring) addHealth(context.Context) error {
	synced := func(*http.Request) error {
		if !w.store.Synced() {
			return errors.New("the mirror of the cluster is not complete yet")
		}
		return nil
	}
	served := func(*http.Request) error {
		for _, kind := range []string{"NodePool", "NodeClaim"} {
			if _, err := w.mgr.GetRESTMapper().RESTMapping(schema.GroupKind{Group: karpv1.Group, Kind: kind}, "v1"); err != nil {
				return fmt.Errorf("looking for %s: %w", kind, err)
			}
		}
		return nil
	}
	w.process.probes.answer(map[string]healthz.Checker{"ping": healthz.Ping, "manager": synced, "crd": served})
	return nil
}

func (w *wiring) addExecutor(context.Context) error {
	// Nominations have a rate limit of their own, so that a thousand of them do not delay the writing of claims.
	separate := rest.CopyConfig(w.config)
	separate.Burst = max(separate.Burst, nominationBurst)
	nominations, err := client.New(separate, client.Options{Scheme: w.mgr.GetScheme(), Mapper: w.mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("setting up the executor: %w", err)
	}
	wellKnown := map[string]bool{}
	for _, key := range w.store.Vocabulary().Rules.WellKnown {
		wellKnown[key] = true
	}
	w.executor = &execute.Executor{
		Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), Nominations: nominations, Store: w.store, Overlays: w.store.OverlaysOf,
		Metrics: w.metrics, Recorder: w.recorder, WellKnown: wellKnown,
		WriteTimeout: w.o.timers.Write, CordonQuiet: w.o.timers.CordonQuiet, Guard: w.guard,
	}
	return nil
}

// guard returns the guard that checks commands in progress by the rules that the flags set.
func (w *wiring) guard(snap *model.Snapshot) *guard.Guard {
	g := guard.New(snap)
	g.Validation, g.Cause = w.o.timers.Validation, w.causes.Of
	g.Judge = disruption.Judge(snap, w.disruption())
	return g
}

// disruption returns the options of disruption that the flags set.
func (w *wiring) disruption() disruption.Options {
	return disruption.Options{Placement: w.o.placement, UnreadyBrake: w.o.brake, WorkBudget: searchBudgets * w.o.workBudget,
		SpotToSpot: w.o.on.On(gates.SpotToSpotConsolidation), Static: w.o.on.On(gates.StaticCapacity), Last: w.lastPlan()}
}

// snapshot returns the cluster as it is now.
func (w *wiring) snapshot() *model.Snapshot {
	snap := w.store.Snapshot(w.clock.Now())
	w.newest.Store(snap)
	return snap
}

// provisioner returns the loop that launches nodes, which knows the pods that each node was launched for.
func (w *wiring) provisioner(nominate bool) *provision.Loop {
	log := w.mgr.GetLogger()
	log.Info("choosing how pods are placed", "nominate", nominate)
	loop := &provision.Loop{
		Snapshot: w.snapshot,
		Schedule: func(snap *model.Snapshot) *plan.Provision { return placement.Schedule(snap, w.o.placement) },
		Writer:   w.executor, Pending: w.store.Subscribe(state.PodsPending | state.PoolsChanged | state.NodesLost),
		ReplicasAsked: w.store.Subscribe(state.ReplicasAsked), Awaited: w.store.Awaited, HoldDisruption: w.store.Nominate,
		Changed: w.store.Subscribe(state.PodsMoved | state.NodesChanged), WaitForSync: w.store.WaitForSync, Left: &w.departures,
		Nominate: nominate, Timers: w.o.timers, Clock: w.clock,
		Report: provision.Reporter{
			Refusal: explain.Refusal, NoTypes: explain.NoTypes,
			Reasons: func(snap *model.Snapshot, r plan.Refusal) any { return explain.ReasonsOf(snap, r) },
			Metrics: w.metrics, Recorder: w.recorder, Log: log.WithName("provisioner"),
		},
	}
	w.lastPlan = loop.Last
	return loop
}

func (w *wiring) disrupter() *disrupt.Loop {
	return &disrupt.Loop{
		Snapshot: w.snapshot, Propose: func(snap *model.Snapshot, search bool) disruption.Proposal {
			if !w.prices.known() {
				return disruption.Proposal{}
			}
			opts := w.disruption()
			opts.NoSearch = !search
			return disruption.Propose(snap, opts)
		},
		Writer: w.executor,
		Changed: w.store.Subscribe(state.PodsMoved | state.NodesChanged | state.NodesNominated | state.PoolsChanged |
			state.PDBsChanged),
		Timers: w.o.timers, Clock: w.clock,
		Report: disrupt.Reporter{Options: w.disruption(), Why: explain.Verdict, Metrics: w.metrics, Recorder: w.recorder,
			Log: w.mgr.GetLogger().WithName("disruption")},
	}
}

func (w *wiring) replicas() *static.Loop {
	return &static.Loop{
		Snapshot: w.snapshot, Writer: w.executor, On: w.o.on.On(gates.StaticCapacity),
		Changed: w.store.Subscribe(state.NodesChanged | state.PoolsChanged), Timers: w.o.timers, Clock: w.clock,
		Report: static.Reporter{Why: explain.Verdict, Recorder: w.recorder, Log: w.mgr.GetLogger().WithName("static")},
	}
}

// claims returns the controllers of the life of claims. complete sets the last labels of a node.
func (w *wiring) claims(provisioner *provision.Loop, complete func(context.Context, *corev1.Node) error, health *nodepool.Health,
	limiter *removal.Limiter) []part {
	timers := w.o.timers
	return []part{
		&nodeclaim.Reconciler{
			Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), Provider: w.guarded(nodeclaim.Name), Recorder: w.recorder, Metrics: w.metrics,
			Timers: timers, Selection: w.o.selection, Clock: w.clock,
			BeforeReady: beforeReady(complete, provisioner.NominateFor), Registering: registering(w.provider), Attempted: health.Record,
			Failed: func(claim *karpv1.NodeClaim, why string) { w.causes.Note(claim.Name, why) },
			// An offering that is unavailable for one pool must not be planned for another one either.
			SoldOut: func(ctx context.Context, _ *karpv1.NodeClaim) { w.store.RefreshCatalogs(ctx) },
			Price:   w.price,
			Wrote:   w.store.Wrote,
		},
		&nodeclaim.Collector{
			Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), Provider: w.guarded(nodeclaim.CollectorName),
			Metrics: w.metrics, Timers: timers, Selection: w.o.selection, Clock: w.clock, Recorder: w.recorder, Limiter: limiter,
		},
		&nodeclaim.Consistency{Client: w.mgr.GetClient(), Provider: w.provider, Recorder: w.recorder, Timers: timers, Selection: w.o.selection},
		&nodeclaim.DriftReconciler{
			Client: w.mgr.GetClient(), Provider: w.instrumented(nodeclaim.DriftName), Recorder: w.recorder, Metrics: w.metrics,
			Timers: timers, Selection: w.o.selection, Clock: w.clock,
		},
		&nodeclaim.PodEvents{
			Client: w.mgr.GetClient(), Provider: w.provider, Metrics: w.metrics, Timers: timers, Selection: w.o.selection, Clock: w.clock,
		},
		&nodeclaim.Protections{
			Client: w.mgr.GetClient(), Provider: w.provider, Rules: w.o.protection(), Recorder: w.recorder, Timers: timers, Selection: w.o.selection,
		},
	}
}

// pools returns the controllers of pools and quotas.
func (w *wiring) pools(health *nodepool.Health) []part {
	timers := w.o.timers
	return []part{
		&nodepool.Reconciler{
			Client: w.mgr.GetClient(), Provider: w.provider, Timers: timers, Selection: w.o.selection, Clock: w.clock, Health: health,
			Typeless: newTypeless(w.provider, w.store.Vocabulary()).why,
			Recorder: w.recorder, Metrics: w.metrics,
		},
		&nodepool.Counter{Client: w.mgr.GetClient(), Provider: w.provider, Metrics: w.metrics, Timers: timers, Selection: w.o.selection},
		&quota.Status{
			Client: w.mgr.GetClient(), Store: w.store, Recorder: w.recorder, Metrics: w.metrics, Clock: w.clock, Pause: time.Second,
		},
	}
}

// nodes returns the controller of the removal of nodes.
func (w *wiring) nodes(provisioner *provision.Loop, limiter *removal.Limiter) *node.Reconciler {
	return &node.Reconciler{
		Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), Provider: w.guarded(node.Name), Recorder: w.recorder, Metrics: w.metrics,
		Timers: w.o.timers, Selection: w.o.selection, Clock: w.clock, Destination: provisioner.Destination, Protection: w.o.protection(),
		Reports: limiter.Reports, Ahead: w.skew.Ahead,
	}
}

// beforeReady runs just before a node opens for pods: it sets the node's last labels, then nominates the node's pods.
func beforeReady(complete func(context.Context, *corev1.Node) error,
	nominate func(context.Context, *karpv1.NodeClaim, *corev1.Node) error) func(context.Context, *karpv1.NodeClaim, *corev1.Node) error {
	return func(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) error {
		if err := complete(ctx, node); err != nil {
			return err
		}
		return nominate(ctx, claim, node)
	}
}

// registering returns the provider's labels of machines that it completes after their launch, nil if it has none.
func registering(provider cloud.Provider) func(context.Context, *karpv1.NodeClaim) (map[string]string, error) {
	if registrar, ok := provider.(cloud.Registrar); ok {
		return registrar.Registering
	}
	return nil
}

// repair returns the node repair controller, if the gate is enabled and the provider defines repair conditions.
func (w *wiring) repair(limiter *removal.Limiter) []part {
	repairer, knows := w.provider.(cloud.Repairer)
	if !w.o.on.On(gates.NodeRepair) || !knows {
		return nil
	}
	return []part{&node.Repair{
		Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), Provider: w.provider, Policies: repairer.RepairPolicies(),
		Recorder: w.recorder, Metrics: w.metrics, Timers: w.o.timers, Selection: w.o.selection, Clock: w.clock,
		Limiter: limiter, Ahead: w.skew.Ahead,
	}}
}

// limiter is asked before any removal of a machine that neither a user nor a plan requested, also by the provider.
func (w *wiring) limiter() (*removal.Limiter, error) {
	classes, err := controller.ClassesOf(w.provider, w.mgr.GetScheme())
	if err != nil {
		return nil, err
	}
	limiter := &removal.Limiter{
		Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), Provider: w.instrumented("removal"), Classes: classes.Within(w.o.selection),
		Recorder: w.recorder, Metrics: w.metrics, Timers: w.o.timers, Clock: w.clock, Ahead: w.skew.Ahead,
	}
	if remover, removes := w.provider.(cloud.Remover); removes {
		remover.AskBeforeRemoval(limiter.AskFor)
	}
	return limiter, nil
}
