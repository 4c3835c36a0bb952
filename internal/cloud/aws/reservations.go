package aws

import (
	"context"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
)

const (
	// countedFor is how long a count of a reservation is used. The leader reads it more often, with the class.
	countedFor = 3 * time.Minute
	// recountAfter is the pause after a failed read of counts.
	recountAfter = 30 * time.Second
)

// counted records how many instances capacity reservations have room for.
func (p *Provider) counted(found discovery.FoundReservations) {
	p.reserved.Read(countedOf(found), found.AskedAt)
	p.refused()
	if p.opts.Observer.Reservations != nil {
		p.opts.Observer.Reservations(p.reserved.Counts())
	}
}

// countedOf returns the counts in a result.
func countedOf(found discovery.FoundReservations) []instance.CountedReservation {
	list := make([]instance.CountedReservation, len(found.List))
	for i := range found.List {
		r := &found.List[i]
		list[i] = instance.CountedReservation{ID: r.ID, Type: r.InstanceType, Zone: r.AvailabilityZone, Tenancy: r.Tenancy,
			Available: r.Available, Total: r.Total}
	}
	return list
}

// ForTenancyOf returns the types without the capacity reservations of dedicated tenancy, unless the pool allows no other
// tenancy: its machines would be refused there. Types without such reservations are not copied.
func ForTenancyOf(pool *karpv1.NodePool, types []cloud.InstanceType) []cloud.InstanceType {
	dedicated := func(o cloud.Offering) bool {
		return o.CapacityType == karpv1.CapacityTypeReserved && slices.ContainsFunc(o.Requirements, func(r cloud.Requirement) bool {
			return r.Key == awsv1.LabelInstanceTenancy && slices.Equal(r.Values, []string{awsv1.TenancyDedicated})
		})
	}
	any := func(t cloud.InstanceType) bool { return slices.ContainsFunc(t.Offerings, dedicated) }
	if !slices.ContainsFunc(types, any) || launch.TenancyOf(needOf(pool)) == awsv1.TenancyDedicated {
		return types
	}
	types = slices.Clone(types)
	for i := range types {
		if any(types[i]) {
			types[i].Offerings = slices.DeleteFunc(slices.Clone(types[i].Offerings), dedicated)
		}
	}
	return types
}

// recount reads the counts of the class's reservations if they are not known, so that a controller that has just
// started, or become the leader, does not buy on demand what is reserved. On errors they are what they were.
func (p *Provider) recount(ctx context.Context, class *awsv1.EC2NodeClass) {
	now := p.opts.Clock.Now()
	late := func(r awsv1.CapacityReservation) bool { return !p.reserved.CountedSince(r.ID, now.Add(-countedFor)) }
	if p.opts.OpenReservations || !slices.ContainsFunc(class.Status.CapacityReservations, late) {
		return
	}
	if failed, has := p.recountFailed.Load(class.UID); has && now.Sub(failed.(time.Time)) < recountAfter {
		return
	}
	found, err := p.sources.Reservations.Find(ctx, class)
	if err != nil {
		p.recountFailed.Store(class.UID, now)
		ctrl.LoggerFrom(ctx).Error(err, "the room in capacity reservations is not known; the call is retried", "EC2NodeClass", class.Name)
		return
	}
	p.recountFailed.Delete(class.UID)
	p.counted(found)
}
