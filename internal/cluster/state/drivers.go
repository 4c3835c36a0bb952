package state

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// driverNodes counts the nodes that run a CSI driver: with topology keys, and without.
type driverNodes struct{ keyed, bare int }

func (n driverNodes) everywhere() bool { return n.bare > 0 && n.keyed == 0 }

// atDriver represents the nodes that run a CSI driver.
func atDriver(driver string) Ref {
	return Ref{CSINodes, types.NamespacedName{Name: "driver/" + driver}}
}

// Everywhere implements convert.Around.
func (d *dependencies) Everywhere(driver string) bool {
	d.lookedUp = append(d.lookedUp, atDriver(driver))
	return d.drivers[driver].everywhere()
}

// applyDrivers updates which drivers run on a node, and converts the pods again whose volumes are no longer, or now,
// usable on every node.
func (p *podSet) applyDrivers(node string, from *storagev1.CSINode) {
	before, now := p.driversOf[node], convert.DriverTopology(from)
	if now == nil {
		delete(p.driversOf, node)
	} else {
		p.driversOf[node] = now
	}
	was := map[string]bool{}
	count := func(drivers map[string]bool, sign int) {
		for driver, keyed := range drivers {
			n := p.drivers[driver]
			if _, known := was[driver]; !known {
				was[driver] = n.everywhere()
			}
			if keyed {
				n.keyed += sign
			} else {
				n.bare += sign
			}
			if p.drivers[driver] = n; n == (driverNodes{}) {
				delete(p.drivers, driver)
			}
		}
	}
	count(before, -1)
	count(now, 1)
	for driver, everywhere := range was {
		if p.drivers[driver].everywhere() != everywhere {
			p.reconvert(atDriver(driver), nil)
		}
	}
}
