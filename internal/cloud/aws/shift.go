package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/upkeep"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/zonalshift"
)

const (
	// shiftsEvery is the time between two readings of the zonal shifts.
	shiftsEvery = 30 * time.Second
	// announcedBefore is the age from which a shift that a new leader finds counts as announced by its predecessor.
	announcedBefore = 5 * time.Minute
)

// Event reasons of zonal shifts.
const (
	reasonShiftActive  = "ZonalShiftActive"
	reasonShiftCleared = "ZonalShiftCleared"
)

// shifts follows the zonal shifts of the cluster, on every replica, so that a new leader knows them. The effects are
// those of instance.Unavailable.Shift and of package launch. The leader announces them.
type shifts struct {
	p       *Provider
	reader  zonalshift.Reader
	elected <-chan struct{}

	mu sync.Mutex
	// began holds the starts of the shifts in the last answer, by zone ID.
	began map[string]time.Time

	// announced and untold are used by announce alone. announced are the zone IDs of the shifts that pools have events
	// about; it is nil before the first announcement. untold are the pools, by zone ID, whose class could not be read then.
	announced map[string]bool
	untold    map[string][]string
}

func newShifts(p *Provider) *shifts {
	return &shifts{p: p, reader: zonalshift.Reader{API: p.opts.Clients.ZonalShift, Calls: p.sources.Calls, Now: p.opts.Clock.Now,
		ARN: func(ctx context.Context) (string, error) {
			facts, err := p.sources.Cluster.Facts(ctx)
			return facts.ARN, err
		}}}
}

// isShifted returns the function that package launch needs, nil if zonal shifts are not followed.
func (s *shifts) isShifted() func(zoneID string) bool {
	if s == nil {
		return nil
	}
	return func(id string) bool { return !s.p.unavailable.Shifted(id).IsZero() }
}

// refresh replaces the shifts by those of a new answer. A cluster that is not registered has none. After other errors the
// known ones stay, each until its own end.
func (s *shifts) refresh(ctx context.Context) error {
	found, err := s.reader.Read(ctx)
	if err != nil && call.KindOf(err) != call.NotFound {
		return err
	}
	until := map[string]time.Time{}
	s.mu.Lock()
	s.began = map[string]time.Time{}
	for id, shift := range found {
		until[id], s.began[id] = shift.Until, shift.Began
	}
	s.mu.Unlock()
	s.p.unavailable.Shift(until)
	s.p.refused()
	return err
}

// rounds returns the loop that refreshes and announces.
func (s *shifts) rounds(log logr.Logger) *upkeep.Rounds {
	do := func(ctx context.Context) error {
		err := s.refresh(ctx)
		select {
		case <-s.elected:
			if told := s.announce(logr.NewContext(ctx, log)); told != nil {
				log.Error(told, "announcing zonal shifts; it is tried again")
			}
		default:
		}
		return err
	}
	return &upkeep.Rounds{List: []upkeep.Round{{Name: "zonal shifts", Period: shiftsEvery, Do: do}}, Clock: s.p.opts.Clock,
		Failed: logChanges(log, "zonal shifts are not known; those that are known hold until their end, and it is tried again",
			"zonal shifts are read again")}
}

// announce emits events on the pools that may buy in a zone when a shift of it begins or ends, and reports every zone. If
// the class of a pool cannot be read, its event is emitted by a later call, and those of other pools are not repeated. A
// shift that is older than the leader is announced already, unless it has begun just before.
func (s *shifts) announce(ctx context.Context) error {
	zones, err := s.zones(ctx)
	if err != nil {
		return err
	}
	var pools karpv1.NodePoolList
	if err := s.p.opts.Client.List(ctx, &pools); err != nil {
		return fmt.Errorf("listing the pools: %w", err)
	}
	s.mu.Lock()
	began := maps.Clone(s.began)
	s.mu.Unlock()
	now, first := s.p.opts.Clock.Now(), s.announced == nil
	active, untold := map[string]bool{}, map[string][]string{}
	var list []ZoneShift
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(zones)) {
		since := time.Duration(0)
		if !s.p.unavailable.Shifted(id).IsZero() {
			active[id], since = true, max(now.Sub(began[id]), time.Second)
		}
		list = append(list, ZoneShift{Zone: zones[id], ZoneID: id, Since: since})
		due := func(pool string) bool { return slices.Contains(s.untold[id], pool) }
		if active[id] != s.announced[id] && !(first && since > announcedBefore) {
			logr.FromContextOrDiscard(ctx).Info("zonal shift", "zone", zones[id], "zoneID", id, "active", active[id])
			due = func(string) bool { return true }
		}
		for i := range pools.Items {
			if pool := &pools.Items[i]; due(pool.Name) {
				if err := s.tell(ctx, pool, zones[id], id, active[id]); err != nil {
					untold[id], errs = append(untold[id], pool.Name), append(errs, err)
				}
			}
		}
	}
	s.announced, s.untold = active, untold
	if s.p.opts.Observer.Shifted != nil {
		s.p.opts.Observer.Shifted(list)
	}
	return errors.Join(errs...)
}

// zones returns the names of the zones in which classes have subnets, by ID.
func (s *shifts) zones(ctx context.Context) (map[string]string, error) {
	var classes awsv1.EC2NodeClassList
	if err := s.p.opts.Client.List(ctx, &classes); err != nil {
		return nil, fmt.Errorf("listing the node classes: %w", err)
	}
	names := map[string]string{}
	for i := range classes.Items {
		for _, subnet := range classes.Items[i].Status.Subnets {
			if subnet.ZoneID != "" {
				names[subnet.ZoneID] = subnet.Zone
			}
		}
	}
	return names, nil
}

// tell emits an event that a shift has begun or ended on a pool that may buy in the zone.
func (s *shifts) tell(ctx context.Context, pool *karpv1.NodePool, zone, id string, active bool) error {
	if buys, err := s.buysIn(ctx, pool, zone, id); !buys || err != nil {
		return err
	}
	event := interruption.Event{Reason: reasonShiftCleared,
		Message: fmt.Sprintf("Zonal shift ended: offerings in zone %s (%s) are available for this NodePool again", zone, id)}
	if active {
		event = interruption.Event{Reason: reasonShiftActive, Warning: true,
			Message: fmt.Sprintf("Zonal shift detected: offerings in zone %s (%s) are unavailable for this NodePool", zone, id)}
	}
	s.p.opts.Observer.Event(pool, event)
	return nil
}

// buysIn reports whether this controller manages the pool, and its requirements and the subnets of its class allow the
// zone. The error is that the class cannot be read.
func (s *shifts) buysIn(ctx context.Context, pool *karpv1.NodePool, zone, id string) (bool, error) {
	if !s.p.opts.Selection.Admits(pool.Labels) {
		return false, nil
	}
	class, err := s.p.class(ctx, refOf(pool.Spec.Template.Spec.NodeClassRef))
	if other := new(cloud.NodeClassNotReadyError); errors.Is(err, cloud.ErrNotFound) || errors.As(err, &other) {
		return false, nil
	}
	if err != nil || !slices.ContainsFunc(class.Status.Subnets, func(s awsv1.Subnet) bool { return s.ZoneID == id }) {
		return false, err
	}
	need := needOf(pool)
	allows := func(key, value string) bool {
		values, restricted := need.Labels[key]
		return !restricted || values.Has(value)
	}
	return allows(corev1.LabelTopologyZone, zone) && allows(awsv1.LabelZoneID, id), nil
}
