package launch

import (
	"slices"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// choose is a subnet for each zone that has one, with addresses set aside for so many machines.
func (l *Launcher) choose(p *purchase, size int, from func(class *awsv1.EC2NodeClass, zone string, addresses int64) (string, bool)) map[string]string {
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

// markFull has what would be launched into the plan's zones left out of plans for a while: otherwise its pods are planned there
// again at once, and for ever.
func (l *Launcher) markFull(p *plan) {
	zones := p.zones()
	for _, subnet := range p.order.Class.Status.Subnets {
		if slices.Contains(zones, subnet.Zone) && !l.opts.Unavailable.HasSubnet(subnet.ID) {
			l.opts.Unavailable.MarkSubnet(subnet.ID)
		}
	}
}

// held are addresses of a subnet that are set aside.
type held struct {
	zone      string
	addresses int64
}

// giveBack returns the addresses of zones in which nothing was launched.
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

// setAside sets addresses aside again that were given back. Subnets in which EC2 says that none is left are left out.
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
