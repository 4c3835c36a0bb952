package kwok

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cloud"
)

// Options configure a Provider. Client is required. Every other zero value has a default or means none.
type Options struct {
	// Client writes objects, and reads node classes, for which a cache is sufficient.
	Client client.Client
	// Reader reads records and Nodes and must not be a cache (use manager.GetAPIReader). Client when nil.
	Reader client.Reader
	// Namespace is the namespace of the machines' records, kube-system when empty.
	Namespace string
	// Types are the instance types, and ProviderLabels the label keys that they add to the well-known ones, as returned
	// by ReadInstanceTypes. The embedded catalog when empty.
	Types          []cloud.InstanceType
	ProviderLabels []string
	// LaunchDelay is the time until a launch returns. The machine exists from the start of the launch.
	LaunchDelay time.Duration
	// RegistrationDelay is the time from the end of the launch to the creation of the Node, for classes that do not set
	// spec.nodeRegistrationDelay.
	RegistrationDelay time.Duration
	// TerminationDelay is the time from the first call of Terminate until the machine is gone.
	TerminationDelay time.Duration
	// Unavailable lists the unavailable offerings, in the format of AnnotationUnavailable.
	Unavailable []string
	// SoldOutFor is how long the catalog shows an offering as unavailable after a launch found it unavailable, 3
	// minutes when zero. The offering is shown as available earlier if no option or annotation lists it as unavailable
	// any more.
	SoldOutFor time.Duration
	// Changed is called, from any goroutine, when an offering that a launch found unavailable is shown as available
	// again. Nil means no call. It must not block.
	Changed func()
	// RepairToleration is how long a node may be not ready before it must be replaced, 10 minutes when zero.
	RepairToleration time.Duration
	// APITimeout limits one request to the API server, 10 s when zero. RetryBackoff is the wait before the first of
	// three retries, doubled each time, 100 ms when zero.
	APITimeout   time.Duration
	RetryBackoff time.Duration
	// Workers is the number of Nodes that are created concurrently, 10 when zero.
	Workers int
	// Clock is the real clock when nil.
	Clock clock.WithTicker
}

func (o Options) withDefaults() Options {
	if o.Reader == nil {
		o.Reader = o.Client
	}
	if o.Namespace == "" {
		o.Namespace = "kube-system"
	}
	if len(o.Types) == 0 {
		o.Types, o.ProviderLabels = EmbeddedTypes()
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	if o.SoldOutFor == 0 {
		o.SoldOutFor = 3 * time.Minute
	}
	if o.RepairToleration == 0 {
		o.RepairToleration = 10 * time.Minute
	}
	if o.APITimeout == 0 {
		o.APITimeout = 10 * time.Second
	}
	if o.RetryBackoff == 0 {
		o.RetryBackoff = 100 * time.Millisecond
	}
	if o.Workers == 0 {
		o.Workers = 10
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// Provider is a cloud.Provider, cloud.Repairer and cloud.DriftDetector, and a controller-runtime Runnable that needs
// leader election: Start simulates the booting machines.
type Provider struct {
	opts        Options
	types       []cloud.InstanceType
	labels      []string
	unavailable []pattern
	soldOut     soldOut
	failures    failures
	queue       workqueue.TypedRateLimitingInterface[string] // names of machines with pending work
	locks       [64]chan struct{}                            // by hash of the machine's name; full while held
}

var (
	_ cloud.Provider      = (*Provider)(nil)
	_ cloud.Repairer      = (*Provider)(nil)
	_ cloud.DriftDetector = (*Provider)(nil)
)

// New validates the options and returns a provider. It does no I/O.
func New(opts Options) (*Provider, error) {
	if opts.Client == nil {
		return nil, errors.New("setting up the kwok provider: Options.Client is nil, want a client of the cluster")
	}
	opts = opts.withDefaults()
	unavailable, err := parsePatterns(opts.Unavailable)
	if err != nil {
		return nil, fmt.Errorf("unavailable offerings: %w", err)
	}
	labels := append(declaredLabels(), opts.ProviderLabels...)
	slices.Sort(labels)
	catalog := withSizeLabels(opts.Types)
	cloud.SortCatalog(catalog)
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](opts.RetryBackoff, 30*time.Second)
	p := &Provider{
		opts:        opts,
		types:       catalog,
		labels:      slices.Compact(labels),
		unavailable: unavailable,
		soldOut:     soldOut{until: map[offeringKey]time.Time{}},
		failures:    failures{count: map[types.UID]int{}},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[string]{Clock: opts.Clock}),
	}
	for i := range p.locks {
		p.locks[i] = make(chan struct{}, 1)
	}
	return p, nil
}

// Name implements cloud.Provider.
func (p *Provider) Name() string { return "kwok" }

// NodeClasses implements cloud.Provider.
func (p *Provider) NodeClasses() []client.Object {
	return []client.Object{&kwokv1alpha1.KWOKNodeClass{}}
}

// Declared implements cloud.Provider. It returns the size labels and every label from the instance types file.
func (p *Provider) Declared() cloud.Declared {
	return cloud.Declared{
		WellKnown:  slices.Clone(p.labels),
		Restricted: []string{kwokv1alpha1.Group},
	}
}

// RepairPolicies implements cloud.Repairer. The conditions are those of upstream's kwok provider
// (https://github.com/kubernetes-sigs/karpenter/tree/main/kwok).
func (p *Provider) RepairPolicies() []cloud.RepairPolicy {
	return []cloud.RepairPolicy{
		{ConditionType: "Ready", ConditionStatus: "False", Toleration: p.opts.RepairToleration},
		{ConditionType: "Ready", ConditionStatus: "Unknown", Toleration: p.opts.RepairToleration},
	}
}

// Catalog implements cloud.Provider. All pools get the same types. An offering that a launch found unavailable is
// unavailable to pools of those classes for which it is still unavailable. The contents of the types are shared and
// must not be modified.
func (p *Provider) Catalog(ctx context.Context, pool *karpv1.NodePool) ([]cloud.InstanceType, error) {
	catalog := slices.Clone(p.types)
	if p.soldOut.empty() {
		return catalog, nil
	}
	patterns := p.unavailable
	if pool != nil {
		class, err := p.class(ctx, classRef(pool.Spec.Template.Spec.NodeClassRef))
		if isAPIFailure(err) {
			return nil, fmt.Errorf("reading the node class of pool %q: %w", pool.Name, err)
		}
		if err == nil {
			patterns = class.unavailable
		}
	}
	now := p.opts.Clock.Now()
	for i := range catalog {
		p.markSoldOut(&catalog[i], patterns, now)
	}
	return catalog, nil
}

func (p *Provider) markSoldOut(t *cloud.InstanceType, patterns []pattern, now time.Time) {
	copied := false
	for i := range t.Offerings {
		key := keyOf(t, &t.Offerings[i])
		if !t.Offerings[i].Available || !anyMatches(patterns, key) || !p.soldOut.remembers(key, now) {
			continue
		}
		if !copied {
			t.Offerings, copied = slices.Clone(t.Offerings), true
		}
		t.Offerings[i].Available = false
	}
}

// soldOut holds the offerings that a launch found unavailable, and until when they are shown so.
type soldOut struct {
	mu    sync.Mutex
	until map[offeringKey]time.Time
}

func (s *soldOut) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.until) == 0
}

func (s *soldOut) remember(key offeringKey, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until[key] = until
}

func (s *soldOut) remembers(key offeringKey, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, known := s.until[key]
	if known && !now.Before(until) {
		delete(s.until, key)
		return false
	}
	return known
}

// failures counts the launches that were made to fail, by claim UID.
type failures struct {
	mu    sync.Mutex
	count map[types.UID]int
}

// next reports whether the next launch of the claim is among its first n.
func (f *failures) next(claim types.UID, n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count[claim] >= n {
		delete(f.count, claim)
		return false
	}
	f.count[claim]++
	return true
}

func classRef(ref karpv1.NodeClassReference) cloud.ClassRef {
	return cloud.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}
}
