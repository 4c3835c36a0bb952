package model_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// books are the objects whose limits and usage a ledger must know.
type books struct {
	*rand.Rand
	catalog *model.Catalog
	builder *model.Builder
	pools   map[string]model.PoolSpec
	quotas  map[string]model.QuotaSpec
	nodes   map[string]model.NodeSpec
}

func newBooks(seed uint64) *books {
	catalog := &model.Catalog{WellKnown: map[string]bool{model.LabelPool: true, model.LabelCapacityType: true, model.LabelZone: true,
		model.LabelType: true}}
	for i, name := range []string{"large", "medium", "small"} {
		size := []quantity.Amount{{Name: "cpu", Value: int64(8000 >> i)}, {Name: "memory", Value: int64(3+i) << 30}}
		t := model.InstanceType{Name: name, Capacity: size, Allocatable: size, Requirements: []label.Requirement{in(model.LabelType, name)}}
		for z, zone := range []string{"a", "b"} {
			t.Offerings = append(t.Offerings, model.Offering{Zone: zone, CapacityType: "on-demand", Price: int64(8+z-2*i) * model.Nano, Available: z == 0})
		}
		catalog.Types = append(catalog.Types, t)
	}
	return &books{rand.New(rand.NewPCG(seed, 1)), catalog, model.NewBuilder(), map[string]model.PoolSpec{}, map[string]model.QuotaSpec{},
		map[string]model.NodeSpec{}}
}

// limits returns some limits.
func (b *books) limits() []quantity.Amount {
	all := []quantity.Amount{{Name: "cpu", Value: b.Int64N(64_000)}, {Name: model.ResourceNodes, Value: b.Int64N(9)},
		{Name: model.ResourceUSD, Value: b.Int64N(80 * model.Nano)}, {Name: "memory", Value: b.Int64N(40 << 30)}, {Name: "example.com/none", Value: 3}}
	b.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:b.IntN(len(all))]
}

// some returns a few of the values, at least one.
func (b *books) some(values ...string) []string {
	b.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	return values[:1+b.IntN(len(values))]
}

// change adds, replaces or removes an object.
func (b *books) change() {
	name := strconv.Itoa(b.IntN(3))
	switch b.IntN(12) {
	case 0, 1:
		spec := model.PoolSpec{Name: "pool-" + name, UID: name, Static: name == "1", Catalog: b.catalog, Limits: b.limits(),
			Requirements: []label.Requirement{in(model.LabelPool, "pool-"+name)}}
		b.builder.UpsertPool(spec)
		b.pools[spec.Name] = spec
	case 2:
		b.builder.DeletePool("pool-" + name)
		delete(b.pools, "pool-"+name)
	case 3, 4:
		spec := model.QuotaSpec{Name: "quota-" + name, Limits: b.limits()}
		switch b.IntN(4) {
		case 0:
			spec.Selector = []label.Requirement{in(model.LabelZone, b.some("a", "b", "c")...)}
		case 1:
			spec.Selector = []label.Requirement{in(model.LabelType, b.some("large", "small")...)}
		case 2:
			spec.Selector = []label.Requirement{in(model.LabelPool, "pool-1"), in(model.LabelZone, "a")}
		}
		b.builder.UpsertQuota(spec)
		b.quotas[spec.Name] = spec
	case 5:
		b.builder.DeleteQuota("quota-" + name)
		delete(b.quotas, "quota-"+name)
	case 6:
		name := "node-" + strconv.Itoa(b.IntN(12))
		b.builder.DeleteNode(name)
		delete(b.nodes, name)
	default:
		spec := b.node("node-" + strconv.Itoa(b.IntN(12)))
		b.builder.UpsertNode(spec)
		b.nodes[spec.Name] = spec
	}
}

// node returns a node or a claim in flight, of some pool or of none.
func (b *books) node(name string) model.NodeSpec {
	spec := model.NodeSpec{Name: name, UID: name, Stage: model.Initialized, Ready: true, Deleting: b.IntN(4) == 0}
	if n := b.IntN(4); n < 3 {
		spec.Claim, spec.Pool = name, fmt.Sprint("pool-", n)
	}
	if _, exists := b.pools[spec.Pool]; exists && b.IntN(2) == 0 {
		return b.claim(spec)
	}
	kind := b.catalog.Types[b.IntN(3)]
	spec.Capacity = kind.Capacity
	spec.Labels = map[string]string{model.LabelType: kind.Name, model.LabelZone: b.some("a", "b")[0], model.LabelCapacityType: "on-demand"}
	if spec.Pool != "" {
		spec.Labels[model.LabelPool] = spec.Pool
	}
	return spec
}

// claim makes the node a claim that is not launched.
func (b *books) claim(spec model.NodeSpec) model.NodeSpec {
	spec.Stage, spec.Ready = model.Launching, false
	spec.Requirements = []label.Requirement{in(model.LabelPool, spec.Pool), in(model.LabelType, b.some("large", "medium", "small")...),
		in(model.LabelZone, b.some("a", "b")...)}
	return spec
}

// outcome is one node that a node or claim may be.
type outcome struct {
	labels map[string]string
	size   map[string]int64
}

// outcomes returns the nodes that a node or claim may be, with what each counts.
func (b *books) outcomes(n *model.NodeSpec) []outcome {
	wanted := func(key, value string) bool {
		for _, r := range n.Requirements {
			if r.Key == key {
				return slices.Contains(r.Values, value)
			}
		}
		return n.Labels[key] == value
	}
	_, known := b.pools[n.Pool]
	var list []outcome
	for _, t := range b.catalog.Types {
		for _, o := range t.Offerings {
			if !wanted(model.LabelType, t.Name) || !wanted(model.LabelZone, o.Zone) {
				continue
			}
			size := map[string]int64{model.ResourceNodes: 1}
			if n.Pool != "" && (known || n.Stage == model.Initialized && len(b.pools) > 0) { // some pool has the price
				size[model.ResourceUSD] = o.Price
			}
			for _, a := range t.Capacity {
				if known || n.Stage == model.Initialized { // the types of a claim are those of its pool
					size[a.Name] = a.Value
				}
			}
			list = append(list, outcome{map[string]string{model.LabelType: t.Name, model.LabelZone: o.Zone, model.LabelPool: n.Pool}, size})
		}
	}
	return list
}

// count returns what the nodes use of each limit, by the names of the holder and of the resource.
func (b *books) count(nodes []*model.NodeSpec) map[string]int64 {
	used := map[string]int64{}
	add := func(holder string, limits []quantity.Amount, outcomes []outcome) {
		for _, limit := range limits {
			most := int64(0)
			for _, o := range outcomes {
				most = max(most, o.size[limit.Name])
			}
			used[holder+" "+limit.Name] += most
		}
	}
	for _, pool := range b.pools {
		add(pool.Name, pool.Limits, nil)
	}
	for _, quota := range b.quotas {
		add(quota.Name, quota.Limits, nil)
	}
	for _, n := range nodes {
		outcomes := b.outcomes(n)
		if pool, known := b.pools[n.Pool]; known && (!n.Deleting || pool.Static) {
			add(pool.Name, pool.Limits, outcomes)
		}
		for _, quota := range b.quotas {
			if !n.Deleting && slices.ContainsFunc(outcomes, func(o outcome) bool {
				return !slices.ContainsFunc(quota.Selector, func(r label.Requirement) bool { return !slices.Contains(r.Values, o.labels[r.Key]) })
			}) {
				add(quota.Name, quota.Limits, outcomes)
			}
		}
	}
	return used
}

// specs returns the nodes of the books.
func (b *books) specs() []*model.NodeSpec {
	var list []*model.NodeSpec
	for _, name := range slices.Sorted(maps.Keys(b.nodes)) {
		spec := b.nodes[name]
		list = append(list, &spec)
	}
	return list
}

// usage returns what a ledger counts, as count does.
func usage(snap *model.Snapshot, ledger model.Ledger) map[string]int64 {
	used := map[string]int64{}
	add := func(holder string, lines []model.Line) {
		for _, line := range lines {
			used[holder+" "+line.Name] = line.Used
		}
	}
	for _, pool := range snap.Pools {
		add(pool.Name, ledger.Lines(ledger.Own(pool.Name)...))
	}
	for _, quota := range snap.Quotas {
		add(quota.Name, ledger.Lines(ledger.AccountOf(quota)))
	}
	return used
}

// admits reports whether the limits have room for one more node, if the nodes are there already.
func (b *books) admits(nodes []*model.NodeSpec, more *model.NodeSpec) bool {
	before, after := b.count(nodes), b.count(append(slices.Clip(nodes), more))
	within := func(holder string, limits []quantity.Amount) bool {
		return !slices.ContainsFunc(limits, func(limit quantity.Amount) bool {
			key := holder + " " + limit.Name
			return after[key] > before[key] && after[key] > limit.Value
		})
	}
	for _, pool := range b.pools {
		if !within(pool.Name, pool.Limits) {
			return false
		}
	}
	for _, quota := range b.quotas {
		if !within(quota.Name, quota.Limits) {
			return false
		}
	}
	return true
}

// TestLedger compares the ledger, after each change of the cluster and after each charge and release, with sums over all
// nodes.
func TestLedger(t *testing.T) {
	admitted, refused := 0, 0
	for seed := range uint64(40) {
		b := newBooks(seed)
		for step := range 60 {
			b.change()
			snap := b.builder.Snapshot(epoch)
			if diff := cmp.Diff(b.count(b.specs()), usage(snap, snap.Ledger)); diff != "" {
				t.Fatalf("seed %d, step %d: usage (-want +got):\n%s", seed, step, diff)
			}
			if len(snap.Nodes) > 0 {
				gone := snap.Nodes[b.IntN(len(snap.Nodes))]
				rest := slices.DeleteFunc(b.specs(), func(n *model.NodeSpec) bool { return n.Name == gone.Name })
				if diff := cmp.Diff(b.count(rest), usage(snap, snap.Without(gone.Name).Ledger)); diff != "" {
					t.Fatalf("seed %d, step %d: usage without %s (-want +got):\n%s", seed, step, gone.Name, diff)
				}
			}
			if step%10 != 9 || len(b.pools) == 0 {
				continue
			}
			a, r := b.trade(t, snap)
			admitted, refused = admitted+a, refused+r
			if diff := cmp.Diff(b.count(b.specs()), usage(snap, snap.Ledger)); diff != "" {
				t.Fatalf("seed %d, step %d: a clone has changed the ledger (-want +got):\n%s", seed, step, diff)
			}
		}
	}
	if admitted < 100 || refused < 100 {
		t.Errorf("%d claims were admitted and %d refused, want some of both", admitted, refused)
	}
}

// trade charges a clone for claims and releases some of them again. It returns how many claims were admitted and refused.
func (b *books) trade(t *testing.T, snap *model.Snapshot) (admitted, refused int) {
	t.Helper()
	type launch struct {
		spec *model.NodeSpec
		use  model.Use
	}
	ledger, existing := snap.Ledger.Clone(), b.specs()
	var launched []launch
	nodes := func() []*model.NodeSpec {
		all := slices.Clone(existing)
		for _, l := range launched {
			all = append(all, l.spec)
		}
		return all
	}
	names := slices.Sorted(maps.Keys(b.pools))
	for range 20 {
		if len(launched) > 0 && b.IntN(3) == 0 {
			at := b.IntN(len(launched))
			ledger.Release(launched[at].use)
			launched = slices.Delete(launched, at, at+1)
		} else {
			spec := b.claim(model.NodeSpec{Name: "new", Claim: "new", Pool: names[b.IntN(len(names))]})
			use := snap.Use(spec, spec.Requirements[1].Values)
			short, is := ledger.Shortage(use)
			if want := b.admits(nodes(), &spec); ledger.Admit(use) != want || is == want {
				t.Fatalf("Admit is %t, Shortage %+v, want %t", !want, short, want)
			}
			if is {
				refused++
				if short.Need <= short.Left() {
					t.Errorf("%+v is no shortage", short)
				}
			} else {
				admitted++
			}
			ledger.Charge(use)
			launched = append(launched, launch{&spec, use})
		}
		if diff := cmp.Diff(b.count(nodes()), usage(snap, ledger)); diff != "" {
			t.Fatalf("usage after a charge or a release (-want +got):\n%s", diff)
		}
	}
	other := snap.Ledger.Clone()
	if other.Adopt(ledger); !cmp.Equal(usage(snap, ledger), usage(snap, other)) {
		t.Error("a ledger that adopts another one counts something else")
	}
	return admitted, refused
}
