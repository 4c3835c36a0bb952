package launch

import (
	"slices"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// choose returns a subnet for each zone that has one, and reserves addresses for the given number of machines.
func (l *Launcher) choose(p *purchase, size int,
	from func(class *awsv1.EC2NodeClass, zone string, addresses int64) (string, bool)) map[string]string {
	subnets := map[string]string{}
	p.aside = map[string]held{}
	for _, zone := range p.plan.zones() {
		addresses := int64(size) * podsOf(p.plan.selection.Ways, zone)
		if id, found := from(p.plan.order.Class, zone, addresses); found {
			subnets[zone] = id
			p.aside[id] = held{zone, addresses}
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

// held is a number of reserved addresses of a subnet.
type held struct {
	zone      string
	addresses int64
}

// giveBack releases the addresses of zones in which nothing was launched.
func (l *Launcher) giveBack(p *purchase) {
	used := map[string]bool{}
	if p.decided != nil {
		for _, b := range p.decided.instances {
			used[b.zone] = true
		}
	}
	for id, h := range p.aside {
		if !used[h.zone] {
			l.opts.Subnets.Return(id, h.addresses)
		}
	}
	p.aside = nil
}

// setAside reserves addresses again that were released. It skips subnets that have no address left according to EC2.
func (l *Launcher) setAside(aside map[string]held) map[string]held {
	again := map[string]held{}
	for id, h := range aside {
		only := &awsv1.EC2NodeClass{Status: awsv1.EC2NodeClassStatus{Subnets: []awsv1.Subnet{{ID: id, Zone: h.zone}}}}
		if _, found := l.opts.Subnets.ChooseCrowded(only, h.zone, h.addresses); found {
			again[id] = h
		}
	}
	return again
}
