package aws

import (
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
)

// offeringState is an offering of EC2 in the region, independent of node classes.
type offeringState struct {
	Type, Zone, CapacityType string
	// Price is in USD per hour, 0 if unknown.
	Price float64
	// Available is false while EC2 is known to have no capacity.
	Available bool
}

// offeringStates returns all offerings of the region with their current state.
func (p *Provider) offeringStates() []offeringState {
	var sales []offeringState
	instanceTypes := p.catalogs.types()
	for i := range instanceTypes {
		t := &instanceTypes[i]
		for _, zone := range t.ZonesIn(p.opts.Region) {
			if t.SupportsUsage(catalog.UsageOnDemand) {
				price, known := p.prices.OnDemand(t.Name)
				sales = append(sales, p.stateOf(t, zone, karpv1.CapacityTypeOnDemand, price, known))
			}
			if t.SupportsUsage(catalog.UsageSpot) {
				price, known := p.prices.Spot(t.Name, zone)
				sales = append(sales, p.stateOf(t, zone, karpv1.CapacityTypeSpot, price, known))
			}
		}
	}
	return sales
}

func (p *Provider) stateOf(t *catalog.Type, zone, capacityType string, price float64, known bool) offeringState {
	gone := p.unavailable.Has(instance.Offer{CapacityType: capacityType, Type: t.Name, Zone: zone})
	return offeringState{Type: t.Name, Zone: zone, CapacityType: capacityType, Price: price, Available: known && !gone}
}
