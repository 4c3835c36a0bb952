package disruption_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Random fleets of 5 to 40 nodes, half used, in which everything occurs that may keep a node or move a pod.

// fleet is the input of a builder, in lists that can be shuffled and changed.
type fleet struct {
	pools   []model.PoolSpec
	nodes   []model.NodeSpec
	pods    []model.PodSpec
	pdbs    []model.PDBSpec
	daemons []model.DaemonSpec
}

// snapshot builds a snapshot, in the order of the lists or shuffled.
func (f *fleet) snapshot(shuffle *rand.Rand) *model.Snapshot {
	b := model.NewBuilder()
	var events []func()
	add := func(tell func()) { events = append(events, tell) }
	for _, p := range f.pools {
		add(func() { b.UpsertPool(p) })
	}
	for _, d := range f.daemons {
		add(func() { b.UpsertDaemon(d) })
	}
	for _, n := range f.nodes {
		add(func() { b.UpsertNode(n) })
	}
	for _, p := range f.pods {
		add(func() { b.UpsertPod(p) })
	}
	for _, p := range f.pdbs {
		add(func() { b.UpsertPDB(p) })
	}
	if shuffle != nil {
		shuffle.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	}
	for _, tell := range events {
		tell()
	}
	return b.Snapshot(noon)
}

const (
	gi        = int64(1) << 30
	keyFamily = "example.com/family"
)

var zones = []string{"a", "b", "c"}

func in(key string, values ...string) label.Requirement {
	return label.Requirement{Key: key, Operator: label.In, Values: values}
}

// dice makes random choices.
type dice struct{ *rand.Rand }

func (d dice) one(of ...string) string { return of[d.IntN(len(of))] }

// chance returns true with a probability of n percent.
func (d dice) chance(n int) bool { return d.IntN(100) < n }

// fleetOf returns the fleet of a seed.
func fleetOf(seed uint64) *fleet {
	d := dice{rand.New(rand.NewPCG(seed, 7))}
	f, c := &fleet{}, d.catalog()
	for i := range 1 + d.IntN(3) {
		f.pools = append(f.pools, d.pool(i, c))
	}
	if d.chance(50) {
		f.daemons = append(f.daemons, model.DaemonSpec{UID: "agent", Namespace: "kube-system", Name: "agent", Tolerations: []model.Toleration{{Exists: true}},
			Requests: []quantity.Amount{{Name: "cpu", Value: 50}, {Name: "pods", Value: 1}}})
	}
	for i := range 5 + d.IntN(36) {
		d.node(f, i)
	}
	for i := range 3 + d.IntN(len(f.nodes)) {
		d.deployment(f, i)
	}
	d.limits(f)
	return f
}

// catalog returns a catalog of sizes from 1 to 16 CPUs in three families; spot is cheaper, and a zone may have its
// own price.
func (d dice) catalog() *model.Catalog {
	c := &model.Catalog{WellKnown: map[string]bool{model.LabelZone: true, model.LabelCapacityType: true, model.LabelType: true, model.LabelPool: true, keyFamily: true}}
	for i, family := range []string{"c", "m", "r"} {
		for cpus := int64(1); cpus <= 16; cpus *= 2 {
			memory := cpus * gi << (i + 1)
			t := model.InstanceType{Name: fmt.Sprintf("%s%d", family, cpus),
				Capacity:    []quantity.Amount{{Name: "cpu", Value: cpus * 1000}, {Name: "memory", Value: memory}, {Name: "pods", Value: 8 + 8*cpus}},
				Allocatable: []quantity.Amount{{Name: "cpu", Value: cpus*1000 - 80}, {Name: "memory", Value: memory - memory/20}, {Name: "pods", Value: 8 + 8*cpus}},
			}
			t.Requirements = []label.Requirement{in(model.LabelType, t.Name), in(keyFamily, family)}
			for _, zone := range zones {
				price := cpus*40_000_000 + memory/gi*4_000_000
				price += price * int64(d.IntN(3)) / 50
				t.Offerings = append(t.Offerings, model.Offering{Zone: zone, CapacityType: "on-demand", Price: price, Available: !d.chance(8)},
					model.Offering{Zone: zone, CapacityType: "spot", Price: price * int64(30+d.IntN(40)) / 100, Available: !d.chance(15)})
			}
			c.Types = append(c.Types, t)
		}
	}
	return c
}

func (d dice) pool(i int, c *model.Catalog) model.PoolSpec {
	p := model.PoolSpec{Name: fmt.Sprintf("pool-%d", i), Weight: int32(d.IntN(2) * 10), Catalog: c}
	p.UID, p.Requirements = "uid-"+p.Name, []label.Requirement{in(model.LabelPool, p.Name)}
	p.Policy = d.one("WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "Balanced", "WhenEmpty")
	p.ConsolidateAfter = []time.Duration{0, 0, 0, 30 * time.Second, -1}[d.IntN(5)]
	p.Payback = []time.Duration{0, 0, 24 * time.Hour, -1}[d.IntN(4)]
	p.MovePrice, p.MinSaving = []int64{0, 0, -1, model.Nano / 100}[d.IntN(4)], []int64{0, 0, model.Nano / 20}[d.IntN(3)]
	p.NodePrice = []int64{0, 0, -1, model.Nano / 50}[d.IntN(4)]
	if d.chance(40) {
		p.Requirements = append(p.Requirements, in(model.LabelCapacityType, d.one("on-demand", "spot")))
	}
	if d.chance(15) {
		p.Requirements = append(p.Requirements, label.Requirement{Key: model.LabelZone, Operator: label.NotIn, Values: []string{d.one(zones...)}})
	}
	if d.chance(15) {
		p.Requirements = append(p.Requirements, label.Requirement{Key: d.one(model.LabelType, keyFamily), Operator: label.Exists, MinValues: 2 + d.IntN(2)})
	}
	if d.chance(20) {
		p.Taints = append(p.Taints, model.Taint{Key: "dedicated", Effect: model.NoSchedule})
	}
	for range d.IntN(3) {
		b := model.Budget{Count: int64(d.IntN(12))}
		if d.chance(50) {
			b = model.Budget{IsPercent: true, Percent: int64(20 + d.IntN(81))}
		}
		if d.chance(30) {
			b.Reasons = []string{d.one("Empty", "Underutilized", "Drifted")}
		}
		p.Budgets = append(p.Budgets, b)
	}
	if d.chance(10) {
		p.Static, p.Replicas, p.Blocked = true, int64(d.IntN(4)), model.StaticBlock()
	}
	return p
}

// node adds a node of a type that its pool offers, or offered before it changed.
func (d dice) node(f *fleet, i int) {
	p := &f.pools[d.IntN(len(f.pools))]
	t := &p.Catalog.Types[d.IntN(len(p.Catalog.Types))]
	o := t.Offerings[d.IntN(len(t.Offerings))]
	for _, r := range p.Requirements {
		if r.Key == model.LabelCapacityType {
			o.CapacityType = r.Values[0]
		}
	}
	name := fmt.Sprintf("node-%02d", i)
	n := model.NodeSpec{Name: name, UID: "uid-" + name, Claim: "claim-" + name, ClaimUID: "uid-claim-" + name, Pool: p.Name, Stage: model.Initialized, Ready: !d.chance(4),
		Taints: p.Taints, Capacity: t.Capacity, Allocatable: t.Allocatable, Created: noon.Add(-time.Duration(10+d.IntN(600)) * time.Minute),
		Labels: map[string]string{model.LabelPool: p.Name, model.LabelType: t.Name, model.LabelZone: o.Zone, model.LabelCapacityType: o.CapacityType,
			model.LabelHostname: name, keyFamily: t.Name[:1]}}
	n.InitializedAt = n.Created.Add(time.Minute)
	if d.chance(30) {
		n.LastPodEvent = noon.Add(-time.Duration(d.IntN(120)) * time.Second)
	}
	n.DoNotDisrupt, n.Replacement, n.DrainBounded = d.chance(4), d.chance(8), d.chance(20)
	if d.chance(8) {
		n.Drifted, n.DriftedSince = "NodePoolDrifted", noon.Add(-time.Duration(d.IntN(60))*time.Minute)
	}
	if d.chance(10) {
		n.ExpiresAt = noon.Add(time.Duration(1+d.IntN(120)) * time.Minute)
	}
	switch d.IntN(40) {
	case 0:
		n.Deleting, n.Disrupted = true, true
	case 1:
		n.Stage, n.InitializedAt = model.Registered, time.Time{}
	case 2:
		n.NominatedUntil = noon.Add(10 * time.Second)
	case 3:
		n.Claim, n.ClaimUID, n.Pool = "", "", ""
		delete(n.Labels, model.LabelPool)
	}
	f.nodes = append(f.nodes, n)
}

// deployment adds identical pods, on nodes that allow them at the moment. They are placed on half of the nodes, so
// that the fleet is not packed; some pods have finished, and some are pending.
func (d dice) deployment(f *fleet, i int) {
	app := fmt.Sprintf("app-%d", i)
	p := model.PodSpec{Namespace: "default", Labels: map[string]string{"app": app}, State: model.Pending, Reschedulable: true, Ready: !d.chance(5),
		Controller: model.Owner{Kind: "ReplicaSet", Name: app, UID: "uid-" + app}, EvictionCost: []int64{1000, 1000, 1000, 0, -500, 5000}[d.IntN(6)],
		Requests: []quantity.Amount{{Name: "cpu", Value: int64(1+d.IntN(20)) * 100}, {Name: "memory", Value: int64(1+d.IntN(16)) * gi / 4}, {Name: "pods", Value: 1}}}
	own := model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{in("app", app)}}
	switch d.IntN(12) {
	case 0:
		p.Spread = []model.Spread{{Key: model.LabelZone, MaxSkew: 1 + d.IntN(2), Selector: own}}
	case 1:
		p.Spread = []model.Spread{{Key: model.LabelHostname, MaxSkew: 1 + d.IntN(2), Selector: own, Soft: d.chance(30)}}
	case 2:
		p.Terms = []model.Term{{Key: model.LabelHostname, Anti: true, Selector: own}}
	case 3:
		p.Terms = []model.Term{{Key: d.one(model.LabelZone, model.LabelHostname), Selector: own}}
	case 4:
		p.Terms = []model.Term{{Key: model.LabelZone, Anti: true, Selector: model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{in("app", "app-0")}}}}
	case 5:
		p.Alternatives = [][]label.Requirement{{in(model.LabelZone, d.one(zones...))}}
	case 6:
		p.Alternatives = [][]label.Requirement{{in(model.LabelCapacityType, "on-demand")}, {in(keyFamily, "m")}}
	}
	if d.chance(50) {
		p.Tolerations = []model.Toleration{{Key: "dedicated", Exists: true}}
	}
	if d.chance(25) {
		f.pdbs = append(f.pdbs, model.PDBSpec{UID: "pdb-" + app, Namespace: "default", Name: app, Selector: own, Allowed: int64(d.IntN(4)), Healthy: d.chance(80), AlwaysEvictUnready: d.chance(30)})
	}
	fresh := &fleet{pools: f.pools, nodes: f.nodes, pods: slices.Clone(f.pods), daemons: f.daemons}
	for k := range 1 + d.IntN(12) {
		p.Name = fmt.Sprintf("%s-%d", app, k)
		p.UID = "uid-" + p.Name
		fresh.pods = append(fresh.pods, p)
	}
	homes := map[string]string{}
	for _, placed := range placement.Schedule(fresh.snapshot(nil), placement.Options{Closed: func(*model.Node) bool { return d.chance(50) }}).Placed {
		for _, pod := range placed.Pods {
			homes[pod.UID] = placed.Node
		}
	}
	pendingToo := d.chance(10)
	for _, pod := range fresh.pods[len(f.pods):] {
		pod.Node = homes[pod.UID]
		if pod.Node == "" && pendingToo {
			f.pods = append(f.pods, pod)
		}
		if pod.Node == "" || d.chance(35) {
			continue
		}
		pod.State = model.Bound
		if d.chance(2) {
			pod.ProtectedUntil = []time.Time{model.Forever, noon.Add(time.Hour), noon.Add(-time.Second)}[d.IntN(3)]
		}
		f.pods = append(f.pods, pod)
	}
}

// limits sets limits of some pools close to their usage.
func (d dice) limits(f *fleet) {
	for i := range f.pools {
		p := &f.pools[i]
		if p.Static || !d.chance(40) {
			continue
		}
		nodes, cpu := int64(0), int64(0)
		for _, n := range f.nodes {
			if n.Pool == p.Name {
				nodes++
				cpu += n.Capacity[0].Value
			}
		}
		if d.chance(50) {
			p.Limits = append(p.Limits, quantity.Amount{Name: model.ResourceNodes, Value: max(0, nodes+int64(d.IntN(4))-1)})
		} else {
			p.Limits = append(p.Limits, quantity.Amount{Name: "cpu", Value: cpu + int64(d.IntN(20))*1000})
		}
	}
}
