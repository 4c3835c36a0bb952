package instance

import (
	"slices"
	"strconv"
	"time"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

// Reservation is one capacity reservation in the status of the class.
type Reservation struct {
	ID, Type, Zone string
	// Kind is default or capacity-block. Interruptible means that its owner can reclaim the instances.
	Kind          string
	Interruptible bool
	// Expiring means that a capacity block is about to end. From LeaveAt on it is, zero for never.
	Expiring bool
	LeaveAt  time.Time
}

func reservationOf(r *awsv1.CapacityReservation) Reservation {
	return Reservation{ID: r.ID, Type: r.InstanceType, Zone: r.AvailabilityZone, Kind: r.ReservationType, Interruptible: r.Interruptible,
		Expiring: r.State == awsv1.ReservationExpiring, LeaveAt: r.ExpiringAt()}
}

// ReservedDiscount is by what the on-demand price is divided for reserved capacity, which is paid for already. The
// order of types by price remains. Upstream uses the same number.
const ReservedDiscount = 10_000_000

// leastPrice is the least price above zero that the engine distinguishes, in USD per hour.
const leastPrice = 1e-9

// reservedOffering is what a class offers of one reservation, without what changes.
type reservedOffering struct {
	Reservation
	subnets []string
	labels  labels
}

// reservedOf returns the reservations of the class for a type, in zones in which the class has subnets.
func (b *builder) reservedOf(t *catalog.Type) []reservedOffering {
	var list []reservedOffering
	for _, r := range b.class.Reservations {
		k := slices.IndexFunc(b.zones, func(z zone) bool { return z.name == r.Zone })
		if r.Type != t.Name || k < 0 || b.settings.IgnoreReservations {
			continue
		}
		one := reservedOffering{Reservation: r, subnets: b.zones[k].subnets, labels: slices.Clone(b.zones[k].labels)}
		one.labels.has(awsv1.LabelCapacityReservationID, r.ID)
		one.labels.has(awsv1.LabelCapacityReservationType, r.Kind)
		one.labels.has(awsv1.LabelCapacityReservationInterruptible, strconv.FormatBool(r.Interruptible))
		list = append(list, one)
	}
	return list
}

// reservationKeys are the labels of nodes in capacity reservations.
var reservationKeys = []string{awsv1.LabelCapacityReservationID, awsv1.LabelCapacityReservationType,
	awsv1.LabelCapacityReservationInterruptible}

// unreserved moves the absence of the labels of reservations from the type, whose nodes may have them, to the zones, for
// the offerings without a reservation.
func (a *typeEntry) unreserved() {
	t := &a.instanceType
	t.Requirements = slices.DeleteFunc(slices.Clone(t.Requirements), func(r cloud.Requirement) bool {
		return slices.Contains(reservationKeys, r.Key)
	})
	a.zones = slices.Clone(a.zones)
	for i := range a.zones {
		a.zones[i].labels = slices.Clone(a.zones[i].labels)
		a.zones[i].labels.lacks(reservationKeys...)
	}
}

// offering returns the offering of a reservation at this moment.
func (r *reservedOffering) offering(class, group string, m *Market) cloud.Offering {
	o := cloud.Offering{Zone: r.Zone, CapacityType: karpv1.CapacityTypeReserved, ReservationID: r.ID, ReservationEnd: r.LeaveAt,
		Requirements: r.labels}
	if price, known := m.OnDemand(r.Type); known {
		o.Price = max(price/ReservedDiscount, leastPrice)
	}
	left, tenancy := m.left(r.ID)
	if tenancy != "" {
		o.Requirements = slices.Clone(o.Requirements)
		(*labels)(&o.Requirements).has(awsv1.LabelInstanceTenancy, tenancy)
	}
	o.ReservationCount, o.Available = left, left > 0 && !r.Expiring
	offer := Offer{CapacityType: o.CapacityType, Type: r.Type, Zone: r.Zone, Class: class, Group: group, Subnets: r.subnets}
	if until := m.Unavailable(offer); !until.IsZero() {
		o.Available, o.RefusedAt, o.RetryAt = false, until.Add(-UnavailableFor), until
	}
	return o
}

func (m *Market) left(id string) (count int, tenancy string) {
	if m.Left == nil {
		return 0, ""
	}
	return m.Left(id)
}
