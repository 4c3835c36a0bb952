package instance

import (
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// Market holds prices and availability at one moment, for all classes.
type Market struct {
	// OnDemand returns the price of a type in USD per hour, and Spot that of a type in a zone. Prices implements both.
	OnDemand func(typeName string) (price float64, known bool)
	Spot     func(typeName, zone string) (price float64, known bool)
	// Unavailable returns until when the cloud is assumed to have no capacity, zero if it may have some. Unavailable.Until
	// is an implementation.
	Unavailable func(Offer) time.Time
	// Left returns how many more instances a capacity reservation has room for, and its tenancy, empty if it is not known.
	// Reserved.Left is an implementation. Without it, no reservation has any.
	Left func(reservationID string) (count int, tenancy string)
	// Shifted returns until when the zone with an ID is avoided as a whole, zero if it is not. Unavailable.Shifted is an
	// implementation. It may be nil.
	Shifted func(zoneID string) time.Time
	// Interrupted returns because of how many interruptions a type is not launched as spot in a zone, 0 if there are no
	// such. Interruptions.Avoided is an implementation. It may be nil.
	Interrupted func(typeName, zone string) int
}

// Offer is a potential launch for a class, described by the attributes that EC2's refusals distinguish.
type Offer struct {
	CapacityType string
	Type         string
	Zone         string
	// Class and Subnets are the class, and its subnets in the zone.
	Class   string
	Subnets []string
	// Group and Partition are of a placement group, empty and 0 without one.
	Group     string
	Partition int
}

// Catalog returns the types with their current offerings, in the order of cloud.SortCatalog. An offering without a
// known price is not available, until a NodeOverlay gives its price.
func (a *TypeSet) Catalog(m *Market) []cloud.InstanceType {
	types, avoided := make([]cloud.InstanceType, len(a.entries)), a.avoided(m)
	for i := range a.entries {
		types[i] = a.entries[i].instanceType
		types[i].Offerings = a.entries[i].offerings(a.class, a.placement, m)
		avoid(types[i].Offerings, avoided)
	}
	return types
}

func (a *typeEntry) offerings(class string, group PlacementGroup, m *Market) []cloud.Offering {
	offerings := make([]cloud.Offering, 0, len(a.zones)*len(a.usage))
	for i := range a.zones {
		z := &a.zones[i]
		for _, capacityType := range a.usage {
			price, known := m.price(a.instanceType.Name, z.name, capacityType)
			offer := Offer{
				CapacityType: capacityType, Type: a.instanceType.Name, Zone: z.name, Class: class, Subnets: z.subnets,
				Group: group.ID,
			}
			offering := cloud.Offering{Zone: z.name, CapacityType: capacityType, Price: price, Available: known, Unpriced: !known,
				Requirements: z.labels}
			refuse(&offering, m.Unavailable(offer))
			offering.Interruptions = m.interruptions(&offer, &offering)
			if group.Partitions > 0 {
				offerings = append(offerings, group.byPartition(offering, offer, m)...)
				continue
			}
			offerings = append(offerings, offering)
		}
	}
	if len(a.reserved) == 0 {
		return offerings
	}
	for i := range a.reserved {
		offerings = append(offerings, a.reserved[i].offering(class, group.ID, m))
	}
	cloud.SortCatalog([]cloud.InstanceType{{Offerings: offerings}})
	return offerings
}

// price returns the price of an offering. An unknown spot price is assumed to be the on-demand price of the type, which
// is an upper bound.
func (m *Market) price(typeName, zone, capacityType string) (price float64, known bool) {
	if capacityType == karpv1.CapacityTypeSpot {
		if price, known = m.Spot(typeName, zone); known {
			return price, true
		}
		price, _ = m.OnDemand(typeName)
		return price, false
	}
	return m.OnDemand(typeName)
}

// interruptions returns because of how many interruptions the offering is avoided, 0 if it is not.
func (m *Market) interruptions(o *Offer, offering *cloud.Offering) int {
	if offering.RetryAt.IsZero() || o.CapacityType != karpv1.CapacityTypeSpot || m.Interrupted == nil {
		return 0
	}
	return m.Interrupted(o.Type, o.Zone)
}
