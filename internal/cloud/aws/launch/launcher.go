package launch

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
)

// Options configure a Launcher. All are required except Observe and those with a default.
type Options struct {
	EC2         EC2API
	RecordStore RecordStore
	Subnets     Subnets
	Unavailable *instance.Unavailable
	// Reserved counts the machines in capacity reservations. A nil one counts none.
	Reserved *instance.Reserved
	// IgnoreReservations makes machines in capacity reservations count as on-demand.
	IgnoreReservations bool
	ClusterName        string
	Region             string
	// Clock is the real clock when nil.
	Clock clock.Clock
	// Rates are the limits of calls by operation, PublishedRate for operations without a record.
	Rates map[string]Rate
	// Settle is the time after which every search is assumed to find an instance, a minute when zero. EC2 guarantees no
	// bound (https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html).
	Settle time.Duration
	// Observe receives every call to EC2.
	Observe func(call.Call)
	// Unasked receives items in EC2's responses that the request did not ask for. It may be nil.
	Unasked func(call.Unasked)
	// Observer receives the results of the calls.
	Observer Observer
	// Shifted reports whether traffic is shifted away from the zone with an ID (see shift.go). Nil means that zonal
	// shifts are not followed.
	Shifted func(zoneID string) bool
}

const (
	// launchTimeout is how long one process works on a fleet launch. If the claim is retried later, the work continues.
	launchTimeout = 5 * time.Minute
	// retention is how long a decided fleet launch is kept in memory. Later the claim's record has the information.
	retention = 30 * time.Minute
)

// Launcher launches instances. It is safe for concurrent use.
type Launcher struct {
	opts         Options
	limiters     map[string]*rateLimiter
	templates    templates
	batches      *batcher[*pendingOrder]
	lookups      *batcher[*lookup]
	terminations *batcher[*lookup]
	placements   placements
	lastSeen     lastShown

	mu       sync.Mutex
	pending  map[types.UID]*pendingOrder
	launches map[string]*fleetLaunch // by token
	recent   map[string]time.Time    // when instances were launched
	swept    time.Time
}

// New returns a Launcher.
func New(o Options) *Launcher {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Reserved == nil {
		o.Reserved = instance.NewReserved(o.Clock.Now)
	}
	if o.Settle == 0 {
		o.Settle = time.Minute
	}
	l := &Launcher{
		opts: o, limiters: map[string]*rateLimiter{}, templates: templates{known: map[string]*known{}},
		pending: map[types.UID]*pendingOrder{}, launches: map[string]*fleetLaunch{}, recent: map[string]time.Time{},
		lastSeen: lastShown{away: o.Shifted},
	}
	for name, published := range rates {
		if rate, ok := o.Rates[name]; ok {
			published = rate
		}
		l.limiters[name] = newRateLimiter(o.Clock, published)
	}
	l.batches = newBatcher(o.Clock, 35*time.Millisecond, 1000, l.launchBatch)
	l.lookups = newBatcher(o.Clock, 100*time.Millisecond, mostFilterValues, l.describeBatch)
	l.terminations = newBatcher(o.Clock, 100*time.Millisecond, 500, l.terminateBatch)
	l.batches.observe, l.lookups.observe, l.terminations.observe = l.batched("create_fleet"), l.batched("describe_instances"), l.batched("terminate_instances")
	return l
}

// rates are EC2's published limits for the calls of this package.
var rates = map[string]Rate{
	"CreateFleet": PublishedRate, "CreateLaunchTemplate": PublishedRate, "DeleteLaunchTemplate": PublishedRate,
	"DescribeLaunchTemplates": {100, 20}, "DescribeInstances": {100, 20}, "TerminateInstances": {100, 5}, "CreateTags": {100, 10},
}

// pendingOrder is a claim for which an instance is being launched, or has been.
type pendingOrder struct {
	order *Order
	plan  *plan
	// record is the claim's record, if recordRead is set. undecided means that its fleet launch is not decided yet.
	record     Record
	recordRead bool
	undecided  bool

	done    chan struct{} // closed when the fields below are set
	machine *cloud.Machine
	err     error
}

func (s *pendingOrder) name() string { return s.order.Claim.Name }

// Launch launches an instance for the claim, or returns the one that was launched before. The launch continues when ctx
// ends, and a repeated call gets its result. Errors: *cloud.InsufficientCapacityError, *cloud.CreateError. All other
// errors can be retried.
func (l *Launcher) Launch(ctx context.Context, o *Order) (*cloud.Machine, error) {
	s := l.pendingOrderFor(ctx, o)
	select {
	case <-s.done:
		return s.machine, s.err
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the launch for NodeClaim %q: %w", o.Claim.Name, ctx.Err())
	}
}

// pendingOrderFor returns the claim's pending order: the current one, or a new one with the knowledge of the last one.
func (l *Launcher) pendingOrderFor(ctx context.Context, o *Order) *pendingOrder {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetDecided()
	s := &pendingOrder{order: o, done: make(chan struct{})}
	if old := l.pending[o.Claim.UID]; old != nil {
		select {
		case <-old.done:
			if old.machine != nil {
				return old
			}
			s.record, s.recordRead, s.undecided = old.record, old.recordRead, old.undecided
		default:
			return old
		}
	}
	l.pending[o.Claim.UID] = s
	go l.process(context.WithoutCancel(ctx), s)
	return s
}

// forgetDecided drops old decided fleet launches. The caller holds the lock.
func (l *Launcher) forgetDecided() {
	now := l.opts.Clock.Now()
	if now.Sub(l.swept) < time.Minute {
		return
	}
	l.swept = now
	for token, p := range l.launches {
		if now.Sub(p.record.RecordedAt) > retention {
			delete(l.launches, token)
		}
	}
	for uid, s := range l.pending {
		select {
		case <-s.done:
			if s.record.RecordedAt.IsZero() || now.Sub(s.record.RecordedAt) > retention {
				delete(l.pending, uid)
			}
		default:
		}
	}
	for id, at := range l.recent {
		if now.Sub(at) > l.opts.Settle {
			delete(l.recent, id)
		}
	}
}

// process continues the fleet launch in the claim's record, and joins a batch if it resulted in no instance.
func (l *Launcher) process(ctx context.Context, s *pendingOrder) {
	ctx, cancel := context.WithTimeout(ctx, launchTimeout)
	defer cancel()
	if !s.recordRead {
		rec, err := l.opts.RecordStore.Read(ctx, s.order.Claim)
		if err != nil {
			l.fail(s, err)
			return
		}
		s.record, s.recordRead, s.undecided = rec, true, rec != Record{}
	}
	if s.undecided {
		b, err := l.resumeFor(ctx, s)
		switch {
		case err != nil:
			s.recordRead = !errors.Is(err, ErrChanged)
			l.fail(s, err)
			return
		case b != nil:
			l.succeed(s, *b)
			return
		}
		s.undecided = false
	}
	p, err := newPlan(s.order, l.opts.Region)
	if err != nil {
		l.fail(s, planError(err))
		return
	}
	s.plan = p
	l.batches.add(p.key(), s)
}

// acquire locks a mutex that is held during calls to EC2. Its waiters can give up when their context ends.
func acquire(ctx context.Context, mu *semaphore.Weighted) error {
	if err := mu.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("waiting for another caller with the same task: %w", err)
	}
	return nil
}

// planError returns the claim's error for a plan that cannot be made.
func planError(err error) error {
	var insufficient *cloud.InsufficientCapacityError
	if errors.As(err, &insufficient) {
		return err
	}
	reason := awsv1.ReasonInvalidUserData
	if size := new(userdata.SizeError); errors.As(err, &size) {
		reason = awsv1.ReasonUserDataSizeLimitExceeded
	}
	return &cloud.CreateError{Reason: reason, Message: err.Error(), Err: err}
}

func (l *Launcher) fail(s *pendingOrder, err error) {
	s.err = err
	close(s.done)
}

func (l *Launcher) failAll(pending []*pendingOrder, err error) {
	for _, s := range pending {
		l.fail(s, err)
	}
}

func (l *Launcher) succeed(s *pendingOrder, b launched) {
	l.mu.Lock()
	l.recent[b.id] = l.opts.Clock.Now()
	l.mu.Unlock()
	if b.origin == (Origin{}) { // found by its tag
		b.origin = s.record.Origin
	}
	if b.origin == (Origin{}) { // the record is of a version without this field
		b.origin = s.order.origin()
	}
	if b.hold.ID != "" {
		l.opts.Reserved.Launched(b.hold.ID, b.id)
	}
	l.placements.noteLaunched(s.order.Placement, b.zone)
	s.machine = l.machineFor(s.order, b)
	close(s.done)
}

// machineFor returns the machine that was launched for an order.
func (l *Launcher) machineFor(o *Order, b launched) *cloud.Machine {
	m := &cloud.Machine{
		ProviderID: providerID(b.zone, b.id), Claim: o.Claim.Name, ImageID: b.image, Created: l.opts.Clock.Now(),
		Annotations: map[string]string{
			awsv1.AnnotationInstanceProfile: b.origin.Profile, awsv1.AnnotationNodeClassHash: b.origin.Hash,
			awsv1.AnnotationNodeClassHashVersion: b.origin.HashVersion,
		},
	}
	tenancy := TenancyOf(cloud.NeedOf(o.Claim))
	for i := range o.Types {
		t := &o.Types[i]
		if t.Name != b.typeName {
			continue
		}
		offering := &cloud.Offering{Zone: b.zone, CapacityType: b.capacityType}
		for j := range t.Offerings {
			if o := &t.Offerings[j]; o.Zone == b.zone && o.CapacityType == b.capacityType && o.ReservationID == b.hold.ID {
				offering = o
			}
		}
		tenancy = cmp.Or(labelOf(offering, awsv1.LabelInstanceTenancy), tenancy)
		m.Labels = cloud.NeedOf(o.Claim).MachineLabels(cloud.Choice{Type: t, Offering: offering})
		m.Capacity, m.Allocatable = t.Capacity, t.Allocatable()
	}
	if m.Labels == nil { // the class no longer offers the type
		m.Labels = map[string]string{}
	}
	m.Labels[corev1.LabelInstanceTypeStable], m.Labels[corev1.LabelTopologyZone] = b.typeName, b.zone
	m.Labels[karpv1.LabelCapacityType] = b.capacityType
	if b.image != "" {
		m.Labels[awsv1.LabelInstanceAMIID] = b.image
	}
	b.hold.addTo(m.Labels)
	m.Labels[awsv1.LabelInstanceTenancy] = tenancy
	o.labelPlacement(m.Labels)
	if pool := poolOf(o.Claim); pool != "" {
		m.Labels[karpv1.LabelNodePool] = pool
	}
	return m
}

// providerID returns the provider ID in the format that the cloud controller writes on nodes.
func providerID(zone, id string) string { return "aws:///" + zone + "/" + id }

// instanceID returns the last part of a provider ID.
func instanceID(providerID string) (string, error) {
	id := providerID[strings.LastIndex(providerID, "/")+1:]
	if !strings.HasPrefix(providerID, "aws:///") || !strings.HasPrefix(id, "i-") {
		return "", fmt.Errorf("provider id %q: want aws:///ZONE/INSTANCE", providerID)
	}
	return id, nil
}

// newBatch returns a unique ID: 32 hexadecimal digits.
func newBatch() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // crypto/rand never fails
	return hex.EncodeToString(id[:])
}
