package instance

import (
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
)

// Market is what is known at one moment, whoever asks.
type Market struct {
	// OnDemand is the price of a type in USD per hour, Spot that of a type in a zone; Prices has both.
	OnDemand func(typeName string) (price float64, known bool)
	Spot     func(typeName, zone string) (price float64, known bool)
	// Unavailable says whether the cloud is known to have none left; Unavailable.Has is one.
	Unavailable func(Offer) bool
}

// Offer is something that could be bought for a class, described as far as EC2's refusals tell offers apart.
type Offer struct {
	CapacityType string
	Type         string
	Zone         string
	// Class and Subnets in the zone of who wants to buy.
	Class   string
	Subnets []string
	// Group and Partition of a placement group, empty and 0 without one.
	Group     string
	Partition int
}

// Catalogue lists the types with their offerings of this moment, in the order of cloud.SortCatalogue. An offering
// without a known price is not available.
func (a *Assortment) Catalogue(m *Market) []cloud.InstanceType {
	types := make([]cloud.InstanceType, len(a.articles))
	for i := range a.articles {
		types[i] = a.articles[i].instanceType
		types[i].Offerings = a.articles[i].offerings(a.class, m)
	}
	return types
}

func (a *article) offerings(class string, m *Market) []cloud.Offering {
	offerings := make([]cloud.Offering, 0, len(a.zones)*len(a.usage))
	for i := range a.zones {
		z := &a.zones[i]
		for _, capacityType := range a.usage {
			price, known := m.price(a.instanceType.Name, z.name, capacityType)
			offer := Offer{
				CapacityType: capacityType, Type: a.instanceType.Name, Zone: z.name, Class: class, Subnets: z.subnets,
			}
			offerings = append(offerings, cloud.Offering{
				Zone: z.name, CapacityType: capacityType, Price: price,
				Available:    known && !m.Unavailable(offer),
				Requirements: z.labels,
			})
		}
	}
	return offerings
}

// price of an offering. One of spot that is not known is at most that of the same type on demand.
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
