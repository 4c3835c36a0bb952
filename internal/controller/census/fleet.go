package census

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// amount returns a quantity in the unit of metrics: cores, bytes or units.
func amount(resource string, value int64) float64 {
	if resource == string(corev1.ResourceCPU) {
		return float64(value) / 1000
	}
	return float64(value)
}

// there reports whether the node has a machine, not only a claim.
func there(n *model.Node) bool { return n.Stage >= model.Registered }

// fleet sends the metrics of all nodes together.
func (s sending) fleet(snap *model.Snapshot) {
	var used, usable quantity.Vector
	var all int64
	cost := map[string]int64{}
	for _, pool := range snap.Pools {
		cost[pool.Name] = 0
	}
	for _, n := range snap.Nodes {
		if n.Ours() {
			cost[n.Pool] += n.LeastPrice()
			all += n.LeastPrice()
		}
		if there(n) {
			used, usable = used.Add(n.Used), usable.Add(n.Usable)
		}
	}
	for r, name := range snap.Resources {
		if has := usable.At(quantity.Resource(r)); has > 0 {
			s.send(s.ClusterUtilization, 100*float64(used.At(quantity.Resource(r)))/float64(has), telemetry.ResourceType(name))
		}
	}
	s.send(s.ClusterCost, explain.USD(all))
	for _, c := range snap.Commitments {
		name, _ := model.CommitmentName(c.ID)
		unit, per := "vcpus", 1000.0
		if c.PerPrice {
			unit, per = "usd_per_hour", model.Nano
		}
		s.send(s.CommitmentLimit, float64(c.Limit)/per, name, unit)
		s.send(s.CommitmentUsed, float64(c.Used)/per, name, unit)
	}
	for _, pool := range slices.Sorted(maps.Keys(cost)) {
		s.send(s.PoolCost, explain.USD(cost[pool]), pool)
	}
}

// nodes sends the capacity and usage of each node.
func (s sending) nodes(snap *model.Snapshot) {
	for _, n := range snap.Nodes {
		daemons := daemonsOf(n)
		s.resources(snap, n, func(r quantity.Resource, name string, labels []string) {
			s.send(s.NodeAllocatable, amount(name, n.Usable.At(r)), labels...)
			s.send(s.NodePodRequests, amount(name, n.Used.At(r)), labels...)
			s.send(s.NodeDaemonRequests, amount(name, daemons.At(r)), labels...)
		})
	}
}

// nodeDetail sends the other metrics of each node. limits holds the limits of its pods, by node name.
func (s sending) nodeDetail(snap *model.Snapshot, limits map[string]limited) {
	for _, n := range snap.Nodes {
		s.resources(snap, n, func(r quantity.Resource, name string, labels []string) {
			s.send(s.NodeOverhead, amount(name, max(0, n.Total.At(r)-n.Usable.At(r))), labels...)
			s.send(s.NodePodLimits, limits[n.Name].all[name], labels...)
			s.send(s.NodeDaemonLimits, limits[n.Name].daemons[name], labels...)
		})
		if there(n) {
			s.send(s.NodeLifetime, s.now.Sub(n.Created).Seconds(), slices.Concat(identity(n), s.wellKnown(n))...)
		}
	}
}

// resources calls send for each resource that a node has or that its pods use, with the labels of its series.
func (s sending) resources(snap *model.Snapshot, n *model.Node, send func(r quantity.Resource, name string, labels []string)) {
	if !there(n) {
		return
	}
	wellKnown := s.wellKnown(n)
	for r, name := range snap.Resources {
		r := quantity.Resource(r)
		if name == model.ResourceUSD { // of limits; no pod asks for it
			continue
		}
		if n.Total.At(r) != 0 || n.Used.At(r) != 0 {
			send(r, name, slices.Concat(identity(n), []string{telemetry.ResourceType(name)}, wellKnown))
		}
	}
}

// identity returns the values of the labels node_name, phase and managed.
func identity(n *model.Node) []string { return []string{n.Name, "", strconv.FormatBool(n.Ours())} }

// wellKnown returns the values of the well-known labels of a node.
func (s sending) wellKnown(n *model.Node) []string {
	values := make([]string, 0, len(s.WellKnown))
	for _, key := range s.WellKnown {
		values = append(values, n.Labels[key])
	}
	return values
}

func daemonsOf(n *model.Node) quantity.Vector {
	var sum quantity.Vector
	for _, p := range n.Pods {
		if p.Daemon {
			sum = sum.Add(p.Requests)
		}
	}
	return sum
}

// offer is one offering: a type in a zone with a capacity type.
type offer struct{ instanceType, capacityType, zone string }

// offerings sends the offerings. Where pools have different data about the same offering, the data is merged: the
// offering is available if it is available to one pool, at the lowest price.
func (s sending) offerings(snap *model.Snapshot) {
	type terms struct {
		price     int64
		available bool
	}
	sale, seen, types := map[offer]terms{}, map[*model.Catalog]bool{}, map[string]bool{}
	for _, pool := range snap.Pools {
		if pool.Catalog == nil || seen[pool.Catalog] {
			continue
		}
		seen[pool.Catalog] = true
		for i := range pool.Catalog.Types {
			t := &pool.Catalog.Types[i]
			if !types[t.Name] {
				types[t.Name] = true
				s.size(t)
			}
			for _, o := range t.Offerings {
				at := offer{t.Name, o.CapacityType, o.Zone}
				before, known := sale[at]
				if !known {
					before.price = math.MaxInt64
				}
				sale[at] = terms{min(before.price, o.Price), before.available || o.Available}
			}
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(sale), compareOffers) {
		available := 0.0
		if sale[at].available {
			available = 1
		}
		s.send(s.OfferingPrice, explain.USD(sale[at].price), at.instanceType, at.capacityType, at.zone)
		s.send(s.OfferingAvailable, available, at.instanceType, at.capacityType, at.zone)
	}
}

func compareOffers(a, b offer) int {
	return cmp.Or(strings.Compare(a.instanceType, b.instanceType), strings.Compare(a.capacityType, b.capacityType), strings.Compare(a.zone, b.zone))
}

func (s sending) size(t *model.InstanceType) {
	for _, a := range t.Capacity {
		switch a.Name {
		case string(corev1.ResourceCPU):
			s.send(s.TypeCPU, amount(a.Name, a.Value), t.Name)
		case string(corev1.ResourceMemory):
			s.send(s.TypeMemory, amount(a.Name, a.Value), t.Name)
		}
	}
}
