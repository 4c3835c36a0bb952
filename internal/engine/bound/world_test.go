package bound_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// world is the input of a builder. It is simple enough for the reference implementation: labels have one value, and
// pods use only the operators In and NotIn.
type world struct {
	pools   []model.PoolSpec
	nodes   []model.NodeSpec
	pods    []model.PodSpec
	daemons []model.DaemonSpec
}

const (
	arch   = "kubernetes.io/arch"
	team   = "team"
	device = "example.com/device"
	// reservation is the provider's label for the ID of a reservation.
	reservation = "example.com/reservation"
	gi          = 1 << 30
)

var zones = []string{"a", "b"}

func (w world) snapshot(shuffle *rand.Rand) *model.Snapshot {
	b := model.NewBuilder()
	var events []func()
	for _, p := range w.pools {
		events = append(events, func() { b.UpsertPool(p) })
	}
	for _, n := range w.nodes {
		events = append(events, func() { b.UpsertNode(n) })
	}
	for _, p := range w.pods {
		events = append(events, func() { b.UpsertPod(p) })
	}
	for _, d := range w.daemons {
		events = append(events, func() { b.UpsertDaemon(d) })
	}
	if shuffle != nil {
		shuffle.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	}
	for _, tell := range events {
		tell()
	}
	return b.Snapshot(epoch)
}

func in(key string, values ...string) label.Requirement {
	return label.Requirement{Key: key, Operator: label.In, Values: values}
}

func amounts(cpu, memory, pods, devices int64) []quantity.Amount {
	list := []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "memory", Value: memory}, {Name: "pods", Value: pods}}
	if devices > 0 {
		list = append(list, quantity.Amount{Name: device, Value: devices})
	}
	return list
}

type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 7))} }

func (d dice) chance(n int) bool { return d.IntN(100) < n }

func (d dice) one(of ...string) string { return of[d.IntN(len(of))] }

func (d dice) catalog(n int) *model.Catalog {
	c := &model.Catalog{WellKnown: map[string]bool{}}
	for _, key := range []string{model.LabelPool, model.LabelCapacityType, model.LabelType, model.LabelZone, arch, reservation} {
		c.WellKnown[key] = true
	}
	for i := range n {
		cpus := int64(1) << d.IntN(4)
		t := model.InstanceType{Name: fmt.Sprintf("type-%d", i)}
		var devices int64
		if d.chance(10) {
			devices, t.Special = 1+int64(d.IntN(2)), true
		}
		memory := cpus * gi * int64(1+d.IntN(6))
		t.Capacity = amounts(cpus*1000, memory, 4+4*cpus, devices)
		t.Allocatable = amounts(cpus*1000-60, memory-gi/4, 4+4*cpus, devices)
		t.Requirements = []label.Requirement{in(model.LabelType, t.Name), in(arch, d.one("amd64", "arm64"))}
		price := cpus*int64(30+d.IntN(20))*1_000_000 + memory/gi*4_000_000 + devices*500_000_000
		for _, zone := range zones {
			for _, ct := range []string{"on-demand", "spot"} {
				p := price
				if ct == "spot" {
					p = price * int64(30+d.IntN(40)) / 100
				}
				if !d.chance(15) {
					t.Offerings = append(t.Offerings, model.Offering{Zone: zone, CapacityType: ct, Price: p, Available: !d.chance(15),
						Requirements: []label.Requirement{{Key: reservation, Operator: label.DoesNotExist}}})
				}
			}
			if d.chance(10) {
				id := fmt.Sprintf("%s-%s", t.Name, zone)
				t.Offerings = append(t.Offerings, model.Offering{Zone: zone, CapacityType: "reserved", Price: price / 100, Available: true,
					ReservationID: id, ReservationCount: 1 + d.IntN(2), Requirements: []label.Requirement{in(reservation, id)}})
			}
		}
		c.Types = append(c.Types, t)
	}
	return c
}

func (d dice) pool(i int, c *model.Catalog) model.PoolSpec {
	p := model.PoolSpec{Name: fmt.Sprintf("pool-%d", i), UID: fmt.Sprintf("pool-%d", i), Weight: int32(d.IntN(2)), Catalog: c}
	p.Requirements = []label.Requirement{in(model.LabelPool, p.Name)}
	if d.chance(30) {
		p.Requirements = append(p.Requirements, in(arch, d.one("amd64", "arm64")))
	}
	if d.chance(30) {
		p.Requirements = append(p.Requirements, in(model.LabelCapacityType, d.one("on-demand", "spot")))
	}
	if d.chance(40) {
		p.Requirements = append(p.Requirements, in(team, d.one("red", "blue")))
	}
	if d.chance(20) {
		p.Taints = []model.Taint{{Key: "dedicated", Value: "red", Effect: model.NoSchedule}}
	}
	return p
}

// deployment adds identical pods.
func (w *world) deployment(d dice, i, count int) {
	p := model.PodSpec{Namespace: "default", State: model.Pending, Reschedulable: true,
		Labels: map[string]string{"app": fmt.Sprint(i), "tier": d.one("front", "back")}}
	var devices int64
	if d.chance(8) {
		devices = 1
	}
	p.Requests = amounts(int64(1+d.IntN(20))*100, int64(1+d.IntN(30))*gi/8, 1, devices)
	if d.chance(40) {
		r := in(d.one(arch, model.LabelZone, model.LabelCapacityType, team))
		r.Values = []string{map[string]string{arch: d.one("amd64", "arm64"), model.LabelZone: d.one(zones...),
			model.LabelCapacityType: d.one("on-demand", "spot"), team: d.one("red", "blue")}[r.Key]}
		if d.chance(30) {
			r.Operator = label.NotIn
		}
		p.Alternatives = [][]label.Requirement{{r}}
	}
	if d.chance(20) {
		p.Tolerations = []model.Toleration{{Key: "dedicated", Exists: true}}
	}
	key := d.one("app", "tier")
	selector := model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{in(key, p.Labels[key])}}
	switch d.IntN(6) {
	case 0:
		p.Terms = []model.Term{{Key: model.LabelHostname, Anti: true, Selector: selector}}
	case 1:
		p.Spread = []model.Spread{{Key: model.LabelHostname, MaxSkew: 1 + d.IntN(2), Selector: selector}}
	case 2:
		p.HostPorts = []model.HostPort{{Protocol: "TCP", Port: int32(80 + d.IntN(2))}}
	}
	for k := range count {
		p.Name = fmt.Sprintf("app-%d-%d", i, k)
		p.UID = p.Name
		w.pods = append(w.pods, p)
	}
}

func (w *world) node(d dice, i int) {
	c := w.pools[0].Catalog
	t := c.Types[d.IntN(len(c.Types))]
	w.nodes = append(w.nodes, model.NodeSpec{Name: fmt.Sprintf("node-%d", i), UID: fmt.Sprint(i), Stage: model.Initialized, Created: epoch, Ready: true,
		Capacity: t.Capacity, Allocatable: t.Allocatable, Deleting: d.chance(10),
		Labels: map[string]string{model.LabelType: t.Name, model.LabelZone: d.one(zones...), model.LabelCapacityType: "spot",
			model.LabelHostname: fmt.Sprintf("node-%d", i), arch: t.Requirements[1].Values[0], team: d.one("red", "blue")}})
}

// randomWorld returns a world with the given number of deployments, each with at most the given number of pods.
func randomWorld(seed uint64, deployments, pods, types int) world {
	d := newDice(seed)
	c := d.catalog(types)
	var w world
	for i := range 1 + d.IntN(3) {
		w.pools = append(w.pools, d.pool(i, c))
	}
	for i := range d.IntN(3) {
		w.node(d, i)
	}
	if d.chance(30) {
		w.daemons = append(w.daemons, model.DaemonSpec{UID: "daemon", Namespace: "default", Name: "daemon", Requests: amounts(100, gi/8, 1, 0)})
	}
	if seed%3 == 0 { // no random number, so that the other worlds stay the same
		reqs := []label.Requirement{in(model.LabelCapacityType, "spot")}
		if seed%2 == 0 {
			reqs = []label.Requirement{in(model.LabelZone, "a")}
		}
		w.daemons = append(w.daemons, model.DaemonSpec{UID: "some", Namespace: "default", Name: "some",
			Alternatives: [][]label.Requirement{reqs}, Requests: amounts(1500, gi, 1, 0)})
	}
	for i := range 1 + d.IntN(deployments) {
		w.deployment(d, i, 1+d.IntN(pods))
	}
	return w
}

// machine is a node that the reference implementation fills. price includes the price per node and is 0 for an
// existing node.
type machine struct {
	price       int64
	labels      map[string]string
	taints      []model.Taint
	free        map[string]int64
	reservation string
	count       int
	pods        []*model.PodSpec
}

func vectorOf(list []quantity.Amount) map[string]int64 {
	v := map[string]int64{}
	for _, a := range list {
		v[a.Name] += a.Value
	}
	return v
}

// machines returns the available and the existing machines.
func (w world) machines(nodePrice int64) (sale, exist []machine) {
	for _, p := range w.pools {
		for _, t := range p.Catalog.Types {
			for _, o := range t.Offerings {
				labels := map[string]string{model.LabelZone: o.Zone, model.LabelCapacityType: o.CapacityType, model.LabelType: t.Name}
				labels[arch] = t.Requirements[1].Values[0]
				if !o.Available || !setLabels(labels, p.Requirements) {
					continue
				}
				m := machine{price: o.Price + nodePrice, labels: labels, taints: p.Taints, free: vectorOf(t.Allocatable), reservation: o.ReservationID, count: o.ReservationCount}
				for _, d := range w.daemons {
					if _, no := model.Untolerated(p.Taints, d.Tolerations); !no && runsOn(d, labels) {
						m.take(d.Requests, 1)
					}
				}
				sale = append(sale, m)
			}
		}
	}
	for _, n := range w.nodes {
		if n.Deleting {
			continue
		}
		exist = append(exist, machine{labels: n.Labels, taints: n.Taints, free: vectorOf(n.Allocatable)})
	}
	return sale, exist
}

// runsOn reports whether the labels satisfy one of the alternatives of the daemon, which have In requirements only.
func runsOn(d model.DaemonSpec, labels map[string]string) bool {
	return len(d.Alternatives) == 0 || slices.ContainsFunc(d.Alternatives, func(reqs []label.Requirement) bool {
		return !slices.ContainsFunc(reqs, func(r label.Requirement) bool { return !slices.Contains(r.Values, labels[r.Key]) })
	})
}

// setLabels adds the labels of the pool, and reports whether the pool allows the machine.
func setLabels(labels map[string]string, reqs []label.Requirement) bool {
	for _, r := range reqs {
		if value, has := labels[r.Key]; !has {
			labels[r.Key] = r.Values[0]
		} else if !slices.Contains(r.Values, value) {
			return false
		}
	}
	return true
}

func (m *machine) take(list []quantity.Amount, times int64) {
	for _, a := range list {
		m.free[a.Name] -= times * a.Value
	}
}

// takes reports whether the machine can hold the pod in addition to its current pods.
func (m *machine) takes(p *model.PodSpec) bool {
	for _, a := range p.Requests {
		if m.free[a.Name] < a.Value {
			return false
		}
	}
	if _, no := model.Untolerated(m.taints, p.Tolerations); no {
		return false
	}
	for _, reqs := range p.Alternatives {
		for _, r := range reqs {
			value, has := m.labels[r.Key]
			if match := has && slices.Contains(r.Values, value); match != (r.Operator == label.In) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(m.pods, func(q *model.PodSpec) bool { return repel(p, q) || repel(q, p) }) && m.spreads(p)
}

// repel reports whether p must not run on the same node as q.
func repel(p, q *model.PodSpec) bool {
	for _, t := range p.Terms {
		if t.Selector.Selects(q.Namespace, q.Labels) {
			return true
		}
	}
	for _, port := range p.HostPorts {
		if slices.ContainsFunc(q.HostPorts, port.Conflicts) {
			return true
		}
	}
	return false
}

// spreads reports whether the number of pods with the same hostname spread constraint is within the largest maxSkew
// among them. Pods that are counted but do not carry the constraint can always be bound last.
func (m *machine) spreads(p *model.PodSpec) bool {
	for _, s := range p.Spread {
		n, room := 1, s.MaxSkew
		for _, q := range m.pods {
			for _, other := range q.Spread {
				if slices.EqualFunc(s.Selector.Requirements, other.Selector.Requirements, same) {
					n, room = n+1, max(room, other.MaxSkew)
				}
			}
		}
		if n > room {
			return false
		}
	}
	return true
}

func same(a, b label.Requirement) bool { return a.Key == b.Key && slices.Equal(a.Values, b.Values) }
