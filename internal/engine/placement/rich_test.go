package placement_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// What rich worlds have beyond plain ones: rules between pods, preferences, volumes, ports, reservations, minValues.

const (
	limitedDriver = "limited.example.com"
	freeDriver    = "free.example.com"
)

// enrichTypes gives most types a volume limit, and some a reserved offering.
func (d dice) enrichTypes(c *model.Catalog) {
	count := map[string]int{"r-1": d.IntN(3), "r-2": 1 + d.IntN(2)}
	for i := range c.Types {
		t := &c.Types[i]
		if !d.chance(20) {
			t.Allocatable = append(t.Allocatable, quantity.Amount{Name: model.VolumeResource(limitedDriver), Value: int64(1 + d.IntN(6))})
		}
		for k := range t.Offerings {
			t.Offerings[k].Requirements = append(t.Offerings[k].Requirements, label.Requirement{Key: keyReservation, Operator: label.DoesNotExist})
		}
		if !d.chance(15) {
			continue
		}
		id := d.one("r-1", "r-2")
		t.Offerings = append(t.Offerings, model.Offering{Zone: d.one(zones...), CapacityType: "reserved", Price: 1000, ReservationID: id,
			Available: count[id] > 0, ReservationCount: count[id], Requirements: []label.Requirement{in(keyReservation, id)}})
	}
}

func (d dice) enrichPool(p *model.PoolSpec) {
	if d.chance(15) {
		p.Requirements = append(p.Requirements, label.Requirement{Key: d.one(model.LabelType, keyFamily, keyCPU), Operator: label.Exists, MinValues: 2 + d.IntN(3)})
	}
	if d.chance(20) {
		p.Taints = append(p.Taints, model.Taint{Key: "avoid", Effect: model.PreferNoSchedule})
	}
}

func (d dice) enrichNode(n *model.NodeSpec) {
	if d.chance(30) {
		n.Labels[keyRack] = d.one("3", "5", "7")
	}
	if d.chance(15) {
		delete(n.Labels, model.LabelZone)
	}
	if d.chance(10) {
		n.Taints = append(slices.Clone(n.Taints), model.Taint{Key: "dedicated", Value: "blue", Effect: model.NoSchedule})
	}
}

// enrichPod gives the pod labels and a few rules.
func (d dice) enrichPod(p *model.PodSpec, app string) {
	p.Labels = map[string]string{"app": app, "tier": d.one("web", "store")}
	if d.chance(15) {
		p.Namespace = "other"
	}
	if d.chance(35) {
		d.spread(p)
	}
	if d.chance(30) {
		for range 1 + d.IntN(2) {
			p.Terms = append(p.Terms, d.term(p))
		}
	}
	for range d.IntN(3) {
		if d.chance(20) {
			p.Preferred = append(p.Preferred, model.Preference{Weight: 1 + d.IntN(100), Requirements: []label.Requirement{d.requirement()}})
		}
	}
	if d.chance(10) {
		p.HostPorts = []model.HostPort{{IP: d.one("", "", "10.0.0.1", "10.0.0.2"), Protocol: d.one("TCP", "TCP", "UDP"), Port: 8080}}
	}
	if d.chance(20) {
		d.volumes(p, app)
	}
	if d.chance(20) {
		p.Tolerations = append(p.Tolerations, model.Toleration{Key: "avoid", Exists: true})
	}
}

var topologyKeys = []string{model.LabelZone, model.LabelZone, model.LabelHostname, model.LabelHostname, model.LabelCapacityType, keyArch, keyRack, keyTeam, keyFamily}

func (d dice) selector(p *model.PodSpec) model.Selector {
	s := model.Selector{Namespaces: []string{p.Namespace}}
	kind := d.IntN(10)
	if !d.foreign {
		kind = 9
	}
	switch kind {
	case 0:
		s.Requirements = []label.Requirement{in("app", fmt.Sprintf("app-%d", d.IntN(8)))}
	case 1:
		s.Requirements = []label.Requirement{in("tier", d.one("web", "store"))}
	case 2:
		s.Requirements = []label.Requirement{{Key: "app", Operator: label.NotIn, Values: d.some("app-0", "app-1", "app-2")}}
	default:
		s.Requirements = []label.Requirement{in("app", p.Labels["app"])}
	}
	return s
}

func (d dice) spread(p *model.PodSpec) {
	for range 1 + d.IntN(2) {
		s := model.Spread{Key: d.one(topologyKeys...), MaxSkew: 1 + d.IntN(3), Soft: d.chance(30), Selector: d.selector(p),
			IgnoreAffinity: d.chance(20), HonorTaints: d.chance(20)}
		if !s.Soft && d.chance(25) {
			s.MinDomains = 1 + d.IntN(4)
		}
		if !slices.ContainsFunc(p.Spread, func(o model.Spread) bool { return o.Key == s.Key && o.Soft == s.Soft }) {
			p.Spread = append(p.Spread, s)
		}
	}
}

func (d dice) term(p *model.PodSpec) model.Term {
	t := model.Term{Key: d.one(topologyKeys...), Anti: d.chance(60), Selector: d.selector(p)}
	if d.chance(35) {
		t.Weight = 1 + d.IntN(100)
	}
	switch d.IntN(8) {
	case 0:
		t.Selector.AllNamespaces, t.Selector.Namespaces = true, nil
	case 1:
		t.Selector.Namespaces = []string{"default", "other"}
	case 2:
		t.Selector.Namespaces = []string{"other"}
	}
	return t
}

func (d dice) volumes(p *model.PodSpec, app string) {
	for i := range 1 + d.IntN(3) {
		v := model.Volume{Claim: fmt.Sprintf("%s/%s-own-%d", p.Namespace, app, i), Driver: d.one(limitedDriver, limitedDriver, freeDriver)}
		if d.chance(25) {
			v.Claim, v.Shared = fmt.Sprintf("%s/shared-%d", p.Namespace, d.IntN(4)), true
			v.Driver = limitedDriver // one claim, one driver
			v.Exclusive = v.Claim == "default/shared-3"
			v.Waits = p.State == model.Pending && strings.HasSuffix(v.Claim, "/shared-2")
		}
		if slices.ContainsFunc(p.Volumes, func(o model.Volume) bool { return o.Claim == v.Claim }) {
			continue
		}
		p.Volumes = append(p.Volumes, v)
		if v.Waits {
			key := "volume:" + v.Claim
			p.Labels[key] = ""
			p.Terms = append(p.Terms, model.Term{Key: model.LabelZone, Together: true,
				Selector: model.Selector{Namespaces: []string{p.Namespace}, Requirements: []label.Requirement{{Key: key, Operator: label.Exists}}}})
		}
	}
	for range d.IntN(3) {
		p.VolumeAlternatives = append(p.VolumeAlternatives, []label.Requirement{in(model.LabelZone, d.some(zones...)...)})
	}
}
