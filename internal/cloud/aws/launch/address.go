package launch

import (
	"slices"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// chooseSubnets returns a subnet for each zone that has one, and reserves addresses for the given number of machines.
func (l *Launcher) chooseSubnets(p *fleetLaunch, size int,
	from func(class *awsv1.EC2NodeClass, zone string, addresses int64) (string, bool)) map[string]string {
	subnets := map[string]string{}
	p.reserved = map[string]reservedAddresses{}
	for _, zone := range p.plan.zones() {
		addresses := int64(size) * podsOf(p.plan.selection.Ways, zone)
		if id, found := from(p.plan.order.Class, zone, addresses); found {
			subnets[zone] = id
			p.reserved[id] = reservedAddresses{zone, addresses}
		}
	}
	return subnets
}

// markFull marks the class's subnets in the plan's zones as full for a while. Otherwise the pods would be planned there
// again immediately and endlessly.
func (l *Launcher) markFull(p *plan) {
	zones := p.zones()
	for _, subnet := range p.order.Class.Status.Subnets {
		if slices.Contains(zones, subnet.Zone) && !l.opts.Unavailable.HasSubnet(subnet.ID) {
			l.opts.Unavailable.MarkSubnet(subnet.ID)
		}
	}
}

// reservedAddresses is a number of reserved addresses of a subnet.
type reservedAddresses struct {
	zone      string
	addresses int64
}

// releaseAddresses releases the addresses of zones in which nothing was launched.
func (l *Launcher) releaseAddresses(p *fleetLaunch) {
	used := map[string]bool{}
	if p.outcome != nil {
		for _, b := range p.outcome.instances {
			used[b.zone] = true
		}
	}
	for id, h := range p.reserved {
		if !used[h.zone] {
			l.opts.Subnets.Return(id, h.addresses)
		}
	}
	p.reserved = nil
}

// reserveAgain reserves addresses again that were released. It skips subnets that have no address left according to
// EC2.
func (l *Launcher) reserveAgain(aside map[string]reservedAddresses) map[string]reservedAddresses {
	again := map[string]reservedAddresses{}
	for id, h := range aside {
		only := &awsv1.EC2NodeClass{Status: awsv1.EC2NodeClassStatus{Subnets: []awsv1.Subnet{{ID: id, Zone: h.zone}}}}
		if _, found := l.opts.Subnets.ChooseCrowded(only, h.zone, h.addresses); found {
			again[id] = h
		}
	}
	return again
}
