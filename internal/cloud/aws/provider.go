package aws

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
)

// Options configure a Provider. Client, Live, Clients, Cluster and Region are required. Every other zero value has a
// default or means none. The flags named below are those of cmd/karpenter.
type Options struct {
	// Client reads classes, claims and nodes, for which a cache is sufficient, and writes claims. Live reads from the
	// API server directly.
	Client client.Client
	Live   client.Reader
	// Clients are the clients of the AWS services.
	Clients Clients
	// Kubernetes is the source of facts about the cluster itself.
	Kubernetes discovery.Kubernetes
	// Cluster is the name of the cluster (--cluster-name), and Region its region.
	Cluster string
	Region  string
	// Namespace is where the memory seen on nodes is stored, kube-system when empty.
	Namespace string
	// Types are the initial instance types, those of the embedded catalog when nil.
	Types []catalog.Type

	// MemoryOverheadPercent is the fraction of a type's memory that is not available on its nodes, 0.075 for 7.5
	// percent (--vm-memory-overhead-percent). ReservedENIs is the number of network interfaces that pods cannot use
	// (--reserved-enis).
	MemoryOverheadPercent float64
	ReservedENIs          int64
	// KubeletExpressions means that the feature gate NodeClassCEL is on.
	KubeletExpressions bool
	// Queue is the name of the SQS interruption queue (--interruption-queue). No queue is read when it is empty.
	Queue string
	// Selection is of this controller's claims (--pool-selector). Failing status checks of other machines are not its.
	Selection karpv1.Selection
	// IsolatedVPC means that IAM and the price list cannot be reached (--isolated-vpc). NoDryRun means that no dry runs
	// are made for classes (--disable-dry-run).
	IsolatedVPC bool
	NoDryRun    bool
	// OpenReservations means that the feature gate ReservedCapacity is off: machines may start in open capacity
	// reservations that match them, as EC2 does by default.
	OpenReservations bool
	// ZonalShift means that zones which traffic is shifted away from are avoided (--enable-zonal-shift).
	ZonalShift bool
	// InterruptionBackoff is the longest time that a spot offering is avoided because of repeated interruptions
	// (--interruption-backoff). With instance.UnavailableFor or less, each interruption counts by itself.
	InterruptionBackoff time.Duration
	// Commitments receives the rules for what the account has committed to EC2, whenever it has been read, concurrently. Nil
	// means that it is not read (--commitments-from-aws).
	Commitments func([]pricerule.Rule)
	// Lifetimes are how long the results of discovery are used (--subnet-refresh-interval, --ami-refresh-interval).
	Lifetimes discovery.Lifetimes

	// Recorder stores launch requests, in annotations of claims when nil.
	Recorder launch.RecordStore
	// Rates are the limits of calls to EC2 by operation, those that EC2 publishes when nil.
	Rates map[string]launch.Rate
	// Clock is the real clock when nil.
	Clock clock.Clock
	// Ahead returns by how much Clock is ahead of the API server's clock. Nil means zero.
	Ahead func() time.Duration
	// Observer receives notifications.
	Observer Observer
	// Changed is called, concurrently, when catalogs may have changed. It must not block.
	Changed func()
}

// Observer receives notifications. Each function may be nil and is called concurrently.
type Observer struct {
	// Called receives each call to AWS.
	Called func(call.Call)
	// Unasked receives items in responses of AWS that the request did not ask for.
	Unasked func(call.Unasked)
	// Launch receives failed launches and terminations, and batches.
	Launch launch.Observer
	// Interruption receives notices. Its Called is the function above.
	Interruption interruption.Observer
	// Event receives events about an object, for its owner.
	Event func(object client.Object, event interruption.Event)
	// UserData receives the size in bytes of the user data of a class's machines, 0 when the class is gone.
	UserData func(class string, bytes int)
	// Unsupported receives a Kubernetes version, such as 1.25, that the program does not support, once.
	Unsupported func(version string)
	// Reservations receives the capacity reservations that classes select, with the number of further instances, whenever
	// EC2 has described some.
	Reservations func([]instance.CountedReservation)
	// Disrupted receives a claim that is deleted because of an interruption.
	Disrupted func(claim *karpv1.NodeClaim, kind interruption.Kind)
	// Shifted receives, on the leader, all zones of the classes. It may be nil.
	Shifted func([]ZoneShift)
}

// ZoneShift is a zone, and how long traffic has been shifted away from it: 0 if it is not.
type ZoneShift struct {
	// Zone is its name, such as us-east-1a, and ZoneID its ID, such as use1-az1.
	Zone, ZoneID string
	Since        time.Duration
}

// Provider is a cloud.Provider, cloud.DriftDetector and cloud.Repairer. SetupWithManager registers its loops.
type Provider struct {
	opts        Options
	sources     *discovery.Sources
	launcher    *launch.Launcher
	unavailable *instance.Unavailable
	reserved    *instance.Reserved
	interrupted *instance.Interruptions
	prices      *instance.Prices
	windows     *instance.WindowsPrices
	memory      *instance.Memory
	catalogs    *catalogCache
	partitions  partitions
	// reported is the version of unavailable and reserved, together, for which Changed was last called.
	reported atomic.Uint64
	// recountFailed has when the counts of a class's reservations could not be read (time.Time), by the class's UID.
	recountFailed sync.Map
	wake          chan struct{}
	// ask is called before a claim is deleted because of information from EC2 (see AskBeforeRemoval). It may be nil.
	ask func(ctx context.Context, removals []cloud.Removal) ([]bool, error)
	// overlay changes the types of a pool for a launch. It may be nil.
	overlay func(pool string, types []cloud.InstanceType) []cloud.InstanceType
	// stored is the version of memory that the ConfigMap holds.
	stored atomic.Uint64
	// shifts follows zonal shifts. It is nil unless Options.ZonalShift is set.
	shifts *shifts
	// commitments follows the account's commitments. It is nil unless Options.Commitments is set.
	commitments *commitments
}

var (
	_ cloud.Provider      = (*Provider)(nil)
	_ cloud.DriftDetector = (*Provider)(nil)
	_ cloud.Repairer      = (*Provider)(nil)
	_ cloud.Remover       = (*Provider)(nil)
	_ cloud.Overlaid      = (*Provider)(nil)
	_ cloud.Registrar     = (*Provider)(nil)
)

// New validates the options and returns a provider. It does no I/O.
func New(opts Options) (*Provider, error) {
	if opts.Client == nil || opts.Live == nil || opts.Clients.EC2 == nil {
		return nil, errors.New("setting up the AWS provider: Options.Client, Live and Clients are needed")
	}
	opts = opts.withDefaults()
	unavailable := instance.NewUnavailable(opts.Clock.Now)
	sources, err := discovery.New(
		discovery.Clients{EC2: opts.Clients.EC2, SSM: opts.Clients.SSM, EKS: opts.Clients.EKS, IAM: opts.Clients.IAM}, opts.Kubernetes,
		discovery.Options{
			Cluster: opts.Cluster, Region: opts.Region, Now: opts.Clock.Now, Lifetimes: opts.Lifetimes, Refused: unavailable.HasSubnet,
			Observe: opts.Observer.Called, Unsupported: opts.Observer.Unsupported, Unasked: opts.Observer.Unasked,
		})
	if err != nil {
		return nil, fmt.Errorf("setting up the AWS provider: %w", err)
	}
	p := &Provider{
		opts: opts, sources: sources, unavailable: unavailable, reserved: instance.NewReserved(opts.Clock.Now),
		interrupted: instance.NewInterruptions(opts.Clock.Now, opts.InterruptionBackoff),
		prices:      instance.NewPrices(opts.Region, catalog.Load()), memory: instance.NewMemory(), wake: make(chan struct{}, 1),
	}
	p.windows = instance.NewWindowsPrices(opts.Region, p.prices, func(name string) (*catalog.Type, bool) { return p.catalogs.typeOf(name) })
	if opts.ZonalShift {
		p.shifts = newShifts(p)
	}
	if opts.Commitments != nil {
		p.commitments = newCommitments(p)
	}
	p.launcher = launch.New(launch.Options{Shifted: p.shifts.isShifted(),
		EC2: opts.Clients.EC2, RecordStore: opts.Recorder, Subnets: sources.Addresses, Unavailable: unavailable,
		Reserved: p.reserved, IgnoreReservations: opts.OpenReservations,
		ClusterName: opts.Cluster, Region: opts.Region, Clock: opts.Clock, Rates: opts.Rates, Observe: opts.Observer.Called,
		Unasked: opts.Observer.Unasked, Observer: opts.Observer.Launch,
	})
	p.catalogs = newCatalogCache(p, opts.Types)
	return p, nil
}

func (o Options) withDefaults() Options {
	if o.Namespace == "" {
		o.Namespace = "kube-system"
	}
	if o.Types == nil {
		o.Types = catalog.Load().Types
	}
	if o.Recorder == nil {
		o.Recorder = &launch.Annotations{Client: o.Client, Live: o.Live}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	o.Observer.Interruption.Called = o.Observer.Called
	if o.Observer.Event == nil {
		o.Observer.Event = func(client.Object, interruption.Event) {}
	}
	if o.Observer.Disrupted == nil {
		o.Observer.Disrupted = func(*karpv1.NodeClaim, interruption.Kind) {}
	}
	return o
}

// Name implements cloud.Provider.
func (p *Provider) Name() string { return "aws" }

// SetOverlay implements cloud.Overlaid.
func (p *Provider) SetOverlay(overlay func(pool string, types []cloud.InstanceType) []cloud.InstanceType) {
	p.overlay = overlay
}

// NodeClasses implements cloud.Provider.
func (p *Provider) NodeClasses() []client.Object { return []client.Object{&awsv1.EC2NodeClass{}} }

// Declared implements cloud.Provider.
func (p *Provider) Declared() cloud.Declared { return Declared() }

// Declared returns the labels that the provider adds to the well-known ones. It needs no Provider.
func Declared() cloud.Declared {
	return cloud.Declared{
		WellKnown:      awsv1.WellKnownLabels(),
		Restricted:     []string{awsv1.Group},
		Aliases:        map[string]string{awsv1.LabelEBSZone: "topology.kubernetes.io/zone"},
		ReservationKey: awsv1.LabelCapacityReservationID,
	}
}

// RepairPolicies implements cloud.Repairer. The conditions other than Ready are those of the EKS node monitoring agent
// (https://docs.aws.amazon.com/eks/latest/userguide/node-health.html).
func (p *Provider) RepairPolicies() []cloud.RepairPolicy {
	const long, short = 30 * time.Minute, 10 * time.Minute
	return []cloud.RepairPolicy{
		{ConditionType: "Ready", ConditionStatus: "False", Toleration: long},
		{ConditionType: "Ready", ConditionStatus: "Unknown", Toleration: long},
		{ConditionType: "AcceleratedHardwareReady", ConditionStatus: "False", Toleration: short},
		{ConditionType: "StorageReady", ConditionStatus: "False", Toleration: long},
		{ConditionType: "NetworkingReady", ConditionStatus: "False", Toleration: long},
		{ConditionType: "KernelReady", ConditionStatus: "False", Toleration: long},
		{ConditionType: "ContainerRuntimeReady", ConditionStatus: "False", Toleration: long},
	}
}

// Sources returns the provider's readers of AWS resources.
func (p *Provider) Sources() *discovery.Sources { return p.sources }

// SetTypes replaces the instance types with those that EC2 describes. The slice must not be modified afterwards.
func (p *Provider) SetTypes(types []catalog.Type) {
	p.catalogs.setTypes(types)
	p.opts.Changed()
}

// Refreshed announces that prices have changed.
func (p *Provider) Refreshed() { p.opts.Changed() }

// refused announces that offerings may have been marked unavailable, or that the count of a reservation may have changed.
func (p *Provider) refused() {
	if version := p.unavailable.Version() + p.reserved.Version(); p.reported.Swap(version) == version {
		return
	}
	p.opts.Changed()
	select {
	case p.wake <- struct{}{}: // the next expiry may be earlier than expected
	default:
	}
}
