package kwok

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
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
	opts   Options
	types  []cloud.InstanceType
	labels []string
	// reservation is the label of reservations, "" if the types have none. reserving serializes launches then.
	reservation string
	reserving   sync.Mutex
	queue       workqueue.TypedRateLimitingInterface[string] // names of machines with pending work
	locks       [64]chan struct{}                            // by hash of the machine's name; full while held
	// overlay changes the types of a pool for a launch. It may be nil.
	overlay func(pool string, types []cloud.InstanceType) []cloud.InstanceType
}

var (
	_ cloud.Provider      = (*Provider)(nil)
	_ cloud.Repairer      = (*Provider)(nil)
	_ cloud.DriftDetector = (*Provider)(nil)
	_ cloud.Overlaid      = (*Provider)(nil)
)

// New validates the options and returns a provider. It does no I/O.
func New(opts Options) (*Provider, error) {
	if opts.Client == nil {
		return nil, errors.New("setting up the kwok provider: Options.Client is nil, want a client of the cluster")
	}
	opts = opts.withDefaults()
	labels := append(declaredLabels(), opts.ProviderLabels...)
	slices.Sort(labels)
	catalog := withSizeLabels(opts.Types)
	cloud.SortCatalog(catalog)
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](opts.RetryBackoff, 30*time.Second)
	p := &Provider{
		opts:   opts,
		types:  catalog,
		labels: slices.Compact(labels), reservation: ReservationKey(catalog),
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

// SetOverlay implements cloud.Overlaid.
func (p *Provider) SetOverlay(overlay func(pool string, types []cloud.InstanceType) []cloud.InstanceType) {
	p.overlay = overlay
}

// NodeClasses implements cloud.Provider.
func (p *Provider) NodeClasses() []client.Object {
	return []client.Object{&kwokv1alpha1.KWOKNodeClass{}}
}

// Declared implements cloud.Provider. It returns the size labels and every label from the instance types file.
func (p *Provider) Declared() cloud.Declared {
	return cloud.Declared{
		WellKnown:  slices.Clone(p.labels),
		Restricted: []string{kwokv1alpha1.Group}, ReservationKey: p.reservation,
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

// Catalog implements cloud.Provider. All pools get the same types. The contents of the types are shared and must not be
// modified. Reservations have the count that the machines leave.
func (p *Provider) Catalog(ctx context.Context, _ *karpv1.NodePool) ([]cloud.InstanceType, error) {
	used, err := p.usedReservations(ctx)
	if used == nil {
		return slices.Clone(p.types), err
	}
	return WithUse(p.types, used, p.opts.Clock.Now()), nil
}

func classRef(ref karpv1.NodeClassReference) cloud.ClassRef {
	return cloud.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}
}
