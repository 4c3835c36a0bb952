package launch

import (
	"slices"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// chooseSubnets returns a subnet for each zone that has one, and reserves addresses for the given number of machines.
func (l *Launcher) chooseSubnets(p *fleetLaunch, size int,
	from func(class *awsv1.EC2NodeClass, zone string, addresses int64) (string, bool)) map[string]string {
	subnets := map[string]string{}
	p.reserved = map[string]reservedAddresses{}
	for _, zone := range l.zonesWithRoom(p.plan, size) {
		addresses := int64(size) * p.plan.addressesIn(zone)
		if id, found := from(p.plan.order.Class, zone, addresses); found {
			subnets[zone] = id
			p.reserved[id] = reservedAddresses{zone, addresses}
		}
	}
	return subnets
}

// prefixAddresses is the number of addresses in a prefix that the VPC CNI assigns, a /28
// (https://docs.aws.amazon.com/eks/latest/userguide/cni-increase-ip-addresses.html).
const prefixAddresses = 16

// addressesIn returns how many IPv4 addresses a machine of the plan takes in a zone, with those of its pods. With prefix
// delegation it takes whole blocks, and EC2 does not say how many are free. Pods of IPv6 clusters have no IPv4 addresses,
// and with custom networking or another CNI, pods have none of this subnet.
func (p *plan) addressesIn(zone string) int64 {
	pods := podsOf(p.selection.Ways, zone)
	switch {
	case p.order.Cluster.IPv6, p.order.PodsElsewhere:
		return 1
	case p.order.Class.PrefixDelegation():
		return 1 + (pods+prefixAddresses-1)/prefixAddresses*prefixAddresses
	}
	return pods
}

// zonesWithRoom returns the zones of the plan in which a subnet has addresses for its share of the machines and their
// pods; if there is none, those with addresses for one machine; otherwise all. EC2 does not count addresses of pods: it
// would launch machines whose pods do not start. Zones whose free addresses are not known count as having them. All
// zones remain if minValues of the claim need them.
func (l *Launcher) zonesWithRoom(p *plan, size int) []string {
	zones := p.zones()
	share := int64((size + len(zones) - 1) / max(len(zones), 1))
	for _, machines := range []int64{share, 1} {
		var roomy []string
		for _, zone := range zones {
			if free, known := l.opts.Subnets.Room(p.order.Class, zone); !known || free >= machines*p.addressesIn(zone) {
				roomy = append(roomy, zone)
			}
		}
		there := keep(p.selection.Ways, func(w cloud.Choice) bool { return slices.Contains(roomy, w.Offering.Zone) })
		if len(roomy) > 0 && p.order.varied(there) {
			return roomy
		}
	}
	return zones
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
