package placement_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
)

// world is the input of a builder, in lists that can be shuffled and extended.
type world struct {
	pods    []model.PodSpec
	nodes   []model.NodeSpec
	pools   []model.PoolSpec
	daemons []model.DaemonSpec
	quotas  []model.QuotaSpec

	// What scenarios read in addition.
	catalog *model.Catalog
	storage *storage
	attach  map[string]*storagev1.CSINode
}

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// snapshot builds a snapshot from the lists, in their order, or in a random order when there is a shuffle.
func (w world) snapshot(shuffle *rand.Rand) *model.Snapshot {
	b := model.NewBuilder()
	var events []func()
	for _, p := range w.pools {
		events = append(events, func() { b.UpsertPool(p) })
	}
	for _, q := range w.quotas {
		events = append(events, func() { b.UpsertQuota(q) })
	}
	for _, d := range w.daemons {
		events = append(events, func() { b.UpsertDaemon(d) })
	}
	for _, n := range w.nodes {
		events = append(events, func() { b.UpsertNode(n) })
	}
	for _, p := range w.pods {
		events = append(events, func() { b.UpsertPod(p) })
	}
	if shuffle != nil {
		shuffle.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	}
	for _, tell := range events {
		tell()
	}
	return b.Snapshot(epoch)
}

// launching adds the claims of a plan as they are in the API after their creation.
func (w world) launching(claims []plan.NewClaim) world {
	w.nodes = slices.Clone(w.nodes)
	for _, c := range claims {
		var pool model.PoolSpec
		for _, p := range w.pools {
			if p.Name == c.Pool {
				pool = p
			}
		}
		w.nodes = append(w.nodes, inFlight(c, pool))
	}
	return w
}

// inFlight returns a claim that was created for the plan: its labels are those of the plan, the custom ones that its
// pool fixes, and the pool's.
func inFlight(c plan.NewClaim, pool model.PoolSpec) model.NodeSpec {
	labels := map[string]string{}
	for _, r := range c.Requirements {
		if r.Operator == label.In && !pool.Catalog.WellKnown[r.Key] {
			labels[r.Key] = slices.Min(r.Values)
		}
	}
	maps.Copy(labels, c.Labels)
	labels[model.LabelPool] = c.Pool
	reqs := slices.Clone(c.Requirements)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		reqs = append(reqs, label.Requirement{Key: key, Operator: label.In, Values: []string{labels[key]}})
	}
	return model.NodeSpec{
		Name: c.Name, UID: "uid-" + c.Name, Claim: c.Name, ClaimUID: "uid-" + c.Name, Pool: c.Pool, Stage: model.Launching, Created: epoch,
		Labels: labels, Taints: pool.Taints, Requirements: reqs, Requests: c.Requests, LaunchedFor: c.PodRefs(),
	}
}

// keeping returns the snapshot with the reservations of the last plan.
func keeping(snap *model.Snapshot, last *plan.Provision) *model.Snapshot {
	return snap.WithReservations(reserve.Derive(snap, reserve.Sources{Last: last}))
}

// The labels of random worlds: the provider's own, and the users' own.
const (
	keyArch   = "kubernetes.io/arch"
	keyOS     = "kubernetes.io/os"
	keyRegion = "topology.kubernetes.io/region"
	keyFamily = "example.com/family"
	keyCPU    = "example.com/cpu"
	keyDevice = "example.com/device"
	keyTeam   = "team"
	keyRack   = "rack"
	// keyReservation is the provider's label of a reservation's id.
	keyReservation = "example.com/reservation"
	device         = "example.com/accelerator"
	encoder        = "example.com/encoder"
	mi             = 1 << 20
	gi             = 1 << 30
)

func wellKnown() map[string]bool {
	known := map[string]bool{}
	for _, key := range []string{model.LabelPool, model.LabelCapacityType, model.LabelType, model.LabelZone, keyArch, keyOS, keyRegion,
		keyFamily, keyCPU, keyDevice, keyReservation} {
		known[key] = true
	}
	return known
}

func in(key string, values ...string) label.Requirement {
	return label.Requirement{Key: key, Operator: label.In, Values: values}
}

var zones = []string{"a", "b", "c"}

// dice makes random choices. When it is rich, pods have rules between each other, volumes, ports and preferences too.
type dice struct {
	*rand.Rand
	rich bool
	// foreign: selectors may select other pods than those of the same workload.
	foreign bool
}

func newDice(seed uint64) dice { return dice{Rand: rand.New(rand.NewPCG(seed, 1))} }

func (d dice) one(of ...string) string { return of[d.IntN(len(of))] }

// chance is true n times in a hundred.
func (d dice) chance(n int) bool { return d.IntN(100) < n }

// some returns one or two of the words.
func (d dice) some(of ...string) []string {
	words := []string{d.one(of...)}
	if other := d.one(of...); other != words[0] && d.chance(40) {
		words = append(words, other)
	}
	return words
}

// catalog has sizes from 1 to 16 CPUs in three families, two architectures, with and without devices.
func (d dice) catalog() *model.Catalog {
	c := &model.Catalog{WellKnown: wellKnown()}
	for _, family := range []string{"c", "m", "r"} {
		for cpus := int64(1); cpus <= 16; cpus *= 2 {
			for _, arch := range []string{"amd64", "arm64"} {
				if d.chance(30) {
					continue
				}
				c.Types = append(c.Types, d.kind(family, arch, cpus, 0))
			}
		}
	}
	for n := int64(1); n <= 4; n *= 2 {
		c.Types = append(c.Types, d.kind("g", "amd64", 4*n, n))
	}
	if d.rich {
		d.enrichTypes(c)
	}
	return c
}

func (d dice) kind(family, arch string, cpus, devices int64) model.InstanceType {
	memory := map[string]int64{"c": 2, "m": 4, "r": 8, "g": 4}[family] * cpus * gi
	t := model.InstanceType{
		Name:     fmt.Sprintf("%s%d-%s", family, cpus, arch),
		Capacity: []quantity.Amount{{Name: "cpu", Value: cpus * 1000}, {Name: "memory", Value: memory}, {Name: "pods", Value: 8 + 8*cpus}},
		Allocatable: []quantity.Amount{{Name: "cpu", Value: cpus*1000 - 80 - 10*cpus}, {Name: "memory", Value: memory - 300*mi - memory/50},
			{Name: "pods", Value: 8 + 8*cpus}},
		Requirements: []label.Requirement{in(model.LabelType, fmt.Sprintf("%s%d-%s", family, cpus, arch)), in(keyArch, arch), in(keyOS, "linux"),
			in(keyFamily, family), in(keyCPU, strconv.FormatInt(cpus, 10))},
		Special: devices > 0,
	}
	if d.chance(20) {
		t.Requirements[2] = in(keyOS, "linux", "windows")
	}
	if devices > 0 {
		for _, name := range []string{device, encoder} {
			t.Capacity = append(t.Capacity, quantity.Amount{Name: name, Value: devices})
			t.Allocatable = append(t.Allocatable, quantity.Amount{Name: name, Value: devices})
		}
		t.Requirements = append(t.Requirements, in(keyDevice, "v1"))
	} else {
		t.Requirements = append(t.Requirements, label.Requirement{Key: keyDevice, Operator: label.DoesNotExist})
	}
	price := cpus*40_000_000 + memory/gi*4_000_000 + devices*900_000_000
	for _, zone := range zones {
		if d.chance(10) {
			continue
		}
		for _, ct := range []string{"on-demand", "spot"} {
			p := price
			if ct == "spot" {
				p = price * int64(25+d.IntN(40)) / 100
			}
			t.Offerings = append(t.Offerings, model.Offering{Zone: zone, CapacityType: ct, Price: p, Available: !d.chance(12)})
		}
	}
	return t
}

func (d dice) pool(i int, c *model.Catalog) model.PoolSpec {
	p := model.PoolSpec{Name: fmt.Sprintf("pool-%d", i), UID: fmt.Sprintf("pool-uid-%d", i), Weight: int32(d.IntN(3) * 10), Catalog: c}
	p.Requirements = []label.Requirement{in(model.LabelPool, p.Name), in("example.com/class", "default")}
	add := func(chance int, r label.Requirement) {
		if d.chance(chance) {
			p.Requirements = append(p.Requirements, r)
		}
	}
	add(25, in(keyArch, d.some("amd64", "arm64")...))
	add(20, in(model.LabelZone, d.some(zones...)...))
	add(15, label.Requirement{Key: model.LabelZone, Operator: label.NotIn, Values: d.some(zones...)})
	add(30, in(model.LabelCapacityType, d.some("on-demand", "spot")...))
	add(20, label.Requirement{Key: keyFamily, Operator: label.NotIn, Values: d.some("c", "m", "r")})
	add(15, label.Requirement{Key: keyCPU, Operator: label.Gt, Values: []string{d.one("1", "2")}})
	add(15, in(keyOS, "linux"))
	add(30, in(keyTeam, d.some("red", "blue", "green")...))
	add(10, label.Requirement{Key: keyTeam, Operator: label.Exists})
	add(20, label.Requirement{Key: keyRack, Operator: label.Gte, Values: []string{d.one("3", "7")}})
	add(10, label.Requirement{Key: keyRack, Operator: label.NotIn, Values: []string{"5"}})
	if d.chance(25) {
		p.Taints = append(p.Taints, model.Taint{Key: "dedicated", Value: d.one("red", "blue"), Effect: model.NoSchedule})
	}
	if d.chance(10) {
		p.Taints = append(p.Taints, model.Taint{Key: "soft", Effect: model.PreferNoSchedule})
	}
	if d.chance(20) {
		p.Limits = append(p.Limits, quantity.Amount{Name: "cpu", Value: int64(d.IntN(40)) * 1000})
	}
	if d.chance(10) {
		p.Limits = append(p.Limits, quantity.Amount{Name: "memory", Value: int64(d.IntN(64)) * gi})
	}
	if d.chance(15) {
		p.Limits = append(p.Limits, quantity.Amount{Name: model.ResourceNodes, Value: int64(d.IntN(5))})
	}
	if d.chance(10) {
		p.Limits = append(p.Limits, quantity.Amount{Name: device, Value: 0})
	}
	if d.rich {
		d.enrichPool(&p)
	}
	if d.chance(7) {
		p.Blocked = &model.Rejection{Field: "status", Reason: "not ready"}
	}
	return p
}

func (d dice) requirement() label.Requirement {
	values := map[string][]string{
		keyArch: {"amd64", "arm64"}, keyOS: {"linux", "windows"}, keyRegion: {"north", "south"}, keyFamily: {"c", "m", "r", "g"},
		keyCPU: {"1", "2", "4", "8"}, keyDevice: {"v1", "v2"}, keyTeam: {"red", "blue", "green"}, keyRack: {"3", "5", "7", "09"},
		model.LabelZone: zones, model.LabelCapacityType: {"on-demand", "spot"}, model.LabelType: {"c2-amd64", "m4-arm64", "g4-amd64"},
		model.LabelHostname: {"node-1", "node-9"}, model.LabelPool: {"pool-0", "pool-1"},
		model.LabelRegistered: {"true", "false"}, model.LabelInitialized: {"true", "false"},
	}
	keys := slices.Sorted(maps.Keys(values))
	key := keys[d.IntN(len(keys))]
	r := label.Requirement{Key: key}
	switch d.IntN(10) {
	case 0, 1, 2, 3, 4:
		r.Operator, r.Values = label.In, d.some(values[key]...)
	case 5, 6, 7:
		r.Operator, r.Values = label.NotIn, d.some(values[key]...)
	case 8:
		r.Operator = []label.Operator{label.Exists, label.DoesNotExist}[d.IntN(2)]
	default:
		r.Operator, r.Values = []label.Operator{label.Gt, label.Lt}[d.IntN(2)], []string{d.one("2", "4", "6")}
	}
	return r
}

func (d dice) alternatives() [][]label.Requirement {
	if d.chance(50) {
		return nil
	}
	var all [][]label.Requirement
	for range 1 + d.IntN(2) {
		var reqs []label.Requirement
		for range 1 + d.IntN(2) {
			reqs = append(reqs, d.requirement())
		}
		all = append(all, reqs)
	}
	return all
}

func (d dice) tolerations() []model.Toleration {
	switch d.IntN(6) {
	case 0:
		return []model.Toleration{{Key: "dedicated", Value: "red"}}
	case 1:
		return []model.Toleration{{Key: "dedicated", Exists: true, Effect: model.NoSchedule}}
	case 2:
		return []model.Toleration{{Exists: true}}
	}
	return nil
}

// deployment adds up to count identical pending pods.
func (w *world) deployment(d dice, name string, count int) {
	p := model.PodSpec{
		Namespace: "default", State: model.Pending, Alternatives: d.alternatives(), Tolerations: d.tolerations(), Reschedulable: true,
		Requests: []quantity.Amount{{Name: "cpu", Value: int64(1+d.IntN(30)) * 100}, {Name: "memory", Value: int64(1+d.IntN(60)) * 128 * mi}, {Name: "pods", Value: 1}},
	}
	if d.chance(10) {
		p.Priority = int32(d.IntN(3)) * 100
	}
	if d.chance(12) {
		p.Requests = append(p.Requests, quantity.Amount{Name: device, Value: 1})
	}
	if d.chance(8) {
		p.Requests = append(p.Requests, quantity.Amount{Name: encoder, Value: int64(1 + d.IntN(2))})
	}
	if d.chance(5) {
		p.Requests[0].Value = 40_000
	}
	if d.rich {
		d.enrichPod(&p, name)
	}
	for i := range 1 + d.IntN(count) {
		p.Name = fmt.Sprintf("%s-%d", name, i)
		p.UID, p.Created = "uid-"+p.Name, epoch.Add(time.Duration(d.IntN(100))*time.Second)
		w.pods = append(w.pods, p)
	}
}

func (w *world) daemonSet(d dice, i int) {
	s := model.DaemonSpec{UID: fmt.Sprintf("daemon-%d", i), Namespace: "kube-system", Name: fmt.Sprintf("daemon-%d", i),
		Requests: []quantity.Amount{{Name: "cpu", Value: int64(1+d.IntN(5)) * 50}, {Name: "memory", Value: int64(1+d.IntN(4)) * 64 * mi}, {Name: "pods", Value: 1}}}
	if d.chance(50) {
		s.Tolerations = []model.Toleration{{Exists: true}}
	}
	if d.chance(60) {
		s.Alternatives = d.alternatives()
	}
	if d.rich && d.chance(50) {
		s.Labels = map[string]string{"app": fmt.Sprintf("app-%d", d.IntN(8)), "tier": "daemon"}
		if d.chance(30) {
			s.Terms = []model.Term{{Key: model.LabelHostname, Anti: true, Selector: model.Selector{AllNamespaces: true, Requirements: []label.Requirement{in("app", fmt.Sprintf("app-%d", d.IntN(8)))}}}}
		}
	}
	if d.rich && d.chance(40) {
		s.HostPorts = []model.HostPort{{IP: d.one("", "10.0.0.1"), Protocol: "TCP", Port: 8080}}
	}
	w.daemons = append(w.daemons, s)
}

// node adds an existing node, with pods on it.
func (w *world) node(d dice, i int) {
	c := w.pools[0].Catalog
	t := c.Types[d.IntN(len(c.Types))]
	pool := w.pools[d.IntN(len(w.pools))]
	n := model.NodeSpec{
		Name: fmt.Sprintf("node-%d", i), UID: fmt.Sprintf("node-uid-%d", i), Stage: model.Stage(1 + d.IntN(3)), Created: epoch,
		Capacity: t.Capacity, Allocatable: t.Allocatable, Ready: true,
		Labels: map[string]string{model.LabelType: t.Name, model.LabelZone: d.one(zones...), model.LabelCapacityType: d.one("on-demand", "spot"),
			model.LabelHostname: fmt.Sprintf("node-%d", i), keyArch: t.Requirements[1].Values[0], keyOS: "linux"},
	}
	if d.chance(70) {
		n.Pool, n.Claim, n.ClaimUID = pool.Name, fmt.Sprintf("claim-%d", i), fmt.Sprintf("claim-uid-%d", i)
		n.Labels[model.LabelPool] = pool.Name
		n.Taints = pool.Taints
	}
	if d.chance(30) {
		n.Labels[keyTeam] = d.one("red", "blue")
	}
	if n.Claim != "" && n.Stage >= model.Registered {
		n.Labels[model.LabelRegistered] = "true"
	}
	if n.Claim != "" && n.Stage == model.Initialized {
		n.Labels[model.LabelInitialized] = "true"
	}
	n.Deleting, n.Disrupted = d.chance(10), d.chance(10)
	if d.rich {
		d.enrichNode(&n)
	}
	w.nodes = append(w.nodes, n)
	for k := range d.IntN(4) {
		p := model.PodSpec{
			UID: fmt.Sprintf("bound-%d-%d", i, k), Namespace: "default", Name: fmt.Sprintf("bound-%d-%d", i, k), State: model.Bound, Node: n.Name,
			Requests: []quantity.Amount{{Name: "cpu", Value: 300}, {Name: "memory", Value: 512 * mi}, {Name: "pods", Value: 1}}, Reschedulable: true,
		}
		if d.rich {
			d.enrichPod(&p, fmt.Sprintf("app-%d", d.IntN(8)))
			p.Terminating = d.chance(10)
		}
		w.pods = append(w.pods, p)
	}
	for _, set := range w.daemons {
		if d.chance(40) {
			w.pods = append(w.pods, model.PodSpec{
				UID: set.UID + "-on-" + n.Name, Namespace: set.Namespace, Name: set.Name + "-" + n.Name, State: model.Bound, Node: n.Name,
				Requests: set.Requests, HostPorts: set.HostPorts, Daemon: true, Controller: model.Owner{Kind: "DaemonSet", Name: set.Name, UID: set.UID},
			})
		}
	}
}

// randomWorld is a small cluster with everything that placement considers.
func randomWorld(seed uint64) world { return newDice(seed).world() }

func (d dice) world() world {
	c := d.catalog()
	var w world
	for i := range 1 + d.IntN(4) {
		w.pools = append(w.pools, d.pool(i, c))
	}
	for i := range d.IntN(3) {
		w.daemonSet(d, i)
	}
	for i := range d.IntN(5) {
		w.node(d, i)
	}
	for i := range 1 + d.IntN(8) {
		w.deployment(d, fmt.Sprintf("app-%d", i), 12)
	}
	if d.chance(20) {
		w.pods[len(w.pods)-1].Rejected = &model.Rejection{Field: "spec", Reason: "is odd", Silent: d.chance(50)}
	}
	return w
}

// later is the world after a while: pods were added and removed, offerings became unavailable and available again, and
// some claims in flight do not list the pods they were launched for.
func (w world) later(d dice) world {
	w.pods = slices.DeleteFunc(slices.Clone(w.pods), func(model.PodSpec) bool { return d.chance(30) })
	w.nodes = slices.Clone(w.nodes)
	for i := range w.nodes {
		if d.chance(50) {
			w.nodes[i].LaunchedFor = nil
		}
	}
	c := *w.pools[0].Catalog
	c.Types = slices.Clone(c.Types)
	for i := range c.Types {
		c.Types[i].Offerings = slices.Clone(c.Types[i].Offerings)
		for k := range c.Types[i].Offerings {
			c.Types[i].Offerings[k].Available = !d.chance(25)
		}
	}
	w.pools = slices.Clone(w.pools)
	for i := range w.pools {
		w.pools[i].Catalog = &c
	}
	for i := range 1 + d.IntN(4) {
		w.deployment(d, fmt.Sprintf("later-%d", i), 10)
	}
	return w
}
