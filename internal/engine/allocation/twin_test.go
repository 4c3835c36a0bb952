package allocation_test

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/allocation"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// fleet is a cluster as it is given to the model, which the second implementation reads.
type fleet struct {
	pools []model.PoolSpec
	nodes []model.NodeSpec
	pods  []model.PodSpec
	pdbs  []model.PDBSpec
}

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func (f *fleet) snapshot() *model.Snapshot {
	b := model.NewBuilder()
	for _, p := range f.pools {
		b.UpsertPool(p)
	}
	for _, n := range f.nodes {
		b.UpsertNode(n)
	}
	for _, p := range f.pods {
		b.UpsertPod(p)
	}
	for _, p := range f.pdbs {
		b.UpsertPDB(p)
	}
	return b.Snapshot(noon)
}

// kinds are the types of machines of random fleets: cpu in millicores, memory in bytes, GPUs, nano-USD per hour.
var kinds = []struct {
	name             string
	cpu, memory, gpu int64
	price            int64
}{
	{"small", 1930, 3<<30 + 12345, 0, 96_000_001},
	{"large", 15890, 59<<30 + 7, 0, 768_123_457},
	{"memory", 7910, 61<<30 - 1, 0, 504_000_000},
	{"gpu", 47810, 180<<30 + 3, 4, 5_672_000_003},
	{"cheap", 3920, 14 << 30, 0, 3}, // fewer nano-dollars than pods
}

// draw returns a random fleet.
func draw(seed uint64) *fleet {
	rng := rand.New(rand.NewPCG(seed, 1))
	f := &fleet{}
	catalog := &model.Catalog{}
	for _, k := range kinds {
		size := []quantity.Amount{{Name: "cpu", Value: k.cpu}, {Name: "memory", Value: k.memory}, {Name: "pods", Value: 110}}
		if k.gpu > 0 {
			size = append(size, quantity.Amount{Name: "nvidia.com/gpu", Value: k.gpu}, quantity.Amount{Name: "vpc.amazonaws.com/efa", Value: 1})
		}
		catalog.Types = append(catalog.Types, model.InstanceType{Name: k.name, Capacity: size, Allocatable: size,
			Offerings: []model.Offering{{Zone: "a", CapacityType: "on-demand", Price: k.price, Available: true}}})
	}
	f.pools = []model.PoolSpec{{Name: "p", UID: "p", Catalog: catalog}}
	for i := range 1 + rng.IntN(12) {
		f.addNode(rng, fmt.Sprint("n", i), catalog)
	}
	return f
}

func (f *fleet) addNode(rng *rand.Rand, name string, catalog *model.Catalog) {
	kind := catalog.Types[rng.IntN(len(catalog.Types))]
	n := model.NodeSpec{Name: name, UID: name, Claim: "claim-" + name, ClaimUID: "claim-" + name, Pool: "p", Stage: model.Initialized,
		Ready: true, Capacity: kind.Capacity, Allocatable: kind.Allocatable, Labels: map[string]string{model.LabelPool: "p",
			model.LabelType: kind.Name, model.LabelZone: "a", model.LabelCapacityType: "on-demand"}}
	switch rng.IntN(12) {
	case 0:
		n.Labels[model.LabelType] = "of-yesterday" // its price is unknown
	case 1:
		n.Claim, n.ClaimUID = "", ""
	case 2:
		n.Allocatable = nil // the kubelet has not reported yet
	}
	f.nodes = append(f.nodes, n)
	f.addPod(rng, n.Name, "DaemonSet")
	owners := []string{"", "ReplicaSet", "StatefulSet", "Job", "Node"}
	for range rng.IntN(9) {
		f.addPod(rng, n.Name, owners[rng.IntN(len(owners))])
	}
}

func (f *fleet) addPod(rng *rand.Rand, node, owner string) {
	p := model.PodSpec{UID: fmt.Sprint("u", len(f.pods)), Namespace: fmt.Sprint("ns", rng.IntN(3)), Name: fmt.Sprint("p", len(f.pods)),
		Node: node, State: model.Bound, Created: noon, Daemon: owner == "DaemonSet" || owner == "Node", Labels: map[string]string{},
		Requests: []quantity.Amount{{Name: "pods", Value: 1}}}
	add := func(name string, value int64) {
		p.Requests = append(p.Requests, quantity.Amount{Name: name, Value: value})
	}
	if rng.IntN(8) > 0 {
		add("cpu", rng.Int64N(3000))
		add("memory", rng.Int64N(9<<30))
	}
	switch rng.IntN(6) {
	case 0:
		add("nvidia.com/gpu", 1+rng.Int64N(2))
	case 1:
		add("vpc.amazonaws.com/efa", 1)
	case 2: // it uses less than its successor will
		p.Successor = slices.Concat(p.Requests, []quantity.Amount{{Name: "cpu", Value: 700}})
	}
	if team := rng.IntN(4); team > 0 {
		p.Labels["team"] = []string{"", "a", "b"}[team-1]
	}
	switch p.Controller = (model.Owner{Kind: owner, Name: fmt.Sprint("w", rng.IntN(2)), UID: "w"}); owner {
	case "":
		p.Controller = model.Owner{}
	case "ReplicaSet":
		p.Controller.Name += "-abc"
		p.Labels["pod-template-hash"] = "abc"
	case "Node":
		p.Name = fmt.Sprintf("static%d-%s", len(f.pods), node)
		p.Controller.Name = node
	}
	f.pods = append(f.pods, p)
}

// twin is the bill of a fleet in the simplest way: rows by a text, with fractions.
func twin(f *fleet, by func(p *model.PodSpec) string) map[string]int64 {
	rows := map[string]int64{}
	for i := range f.nodes {
		n := &f.nodes[i]
		price := int64(0)
		for _, k := range kinds {
			if k.name == n.Labels[model.LabelType] {
				price = k.price
			}
		}
		if n.Claim == "" || price == 0 {
			continue
		}
		names, fractions, placed := twinShares(f, n, by)
		last := "empty"
		if placed {
			last = "unused"
		}
		for at, part := range twinRound(price, fractions) {
			rows[append(names, last)[at]] += part
		}
	}
	return rows
}

// twinShares returns the rows of the pods of a node and the parts of its price that they have, and last that of the rest.
func twinShares(f *fleet, n *model.NodeSpec, by func(p *model.PodSpec) string) (rows []string, parts []*big.Rat, placed bool) {
	of := func(list []quantity.Amount, name string) int64 {
		for _, a := range list {
			if a.Name == name {
				return a.Value
			}
		}
		return 0
	}
	var pods []*model.PodSpec
	for i := range f.pods {
		if f.pods[i].Node == n.Name {
			pods = append(pods, &f.pods[i])
		}
	}
	slices.SortFunc(pods, func(a, b *model.PodSpec) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	sum := new(big.Rat)
	for _, p := range pods {
		share := new(big.Rat)
		for _, name := range []string{"cpu", "memory", "nvidia.com/gpu"} {
			if has := of(n.Allocatable, name); has > 0 {
				if s := big.NewRat(of(p.Requests, name), has); s.Cmp(share) > 0 {
					share = s
				}
			}
		}
		rows, parts, placed = append(rows, by(p)), append(parts, share), placed || !p.Daemon
		sum.Add(sum, share)
	}
	one := big.NewRat(1, 1)
	if sum.Cmp(one) > 0 {
		for _, s := range parts {
			s.Quo(s, sum)
		}
		sum = one
	}
	return rows, append(parts, new(big.Rat).Sub(one, sum)), placed
}

// twinRound divides a price by fractions of 1, with the largest remainders.
func twinRound(price int64, parts []*big.Rat) []int64 {
	whole, rests, left := make([]int64, len(parts)), make([]*big.Rat, len(parts)), price
	for i, p := range parts {
		exact := new(big.Rat).Mul(p, new(big.Rat).SetInt64(price))
		floor := new(big.Int).Quo(exact.Num(), exact.Denom())
		whole[i], rests[i] = floor.Int64(), exact.Sub(exact, new(big.Rat).SetInt(floor))
		left -= whole[i]
	}
	for ; left > 0; left-- {
		most := 0
		for i := range rests {
			if rests[i].Cmp(rests[most]) > 0 {
				most = i
			}
		}
		whole[most]++
		rests[most] = big.NewRat(-1, 1)
	}
	return whole
}

var groupings = map[string]struct {
	by   allocation.By
	twin func(p *model.PodSpec) string
}{
	"namespace": {allocation.ByNamespace, func(p *model.PodSpec) string { return p.Namespace + "//" }},
	"label": {allocation.ByLabel("team"), func(p *model.PodSpec) string {
		if team, has := p.Labels["team"]; has {
			return "/Label/" + team
		}
		return "//"
	}},
	"workload": {allocation.ByWorkload, func(p *model.PodSpec) string {
		switch {
		case p.Controller.Kind == "":
			return p.Namespace + "/Pod/" + p.Name
		case p.Controller.Kind == "Node":
			return p.Namespace + "/StaticPod/" + strings.Split(p.Name, "-")[0]
		case p.Controller.Kind == "ReplicaSet":
			return p.Namespace + "/Deployment/" + strings.Split(p.Controller.Name, "-")[0]
		}
		return p.Namespace + "/" + p.Controller.Kind + "/" + p.Controller.Name
	}},
}

func nameOf(r *allocation.Row) string {
	if r.Kind == allocation.Unused || r.Kind == allocation.Empty {
		return r.Kind.String()
	}
	return fmt.Sprint(r.Kind, " ", r.Key.Namespace, "/", r.Key.Kind, "/", r.Key.Name)
}

// prices returns the prices of a bill by row.
func prices(b *allocation.Bill) map[string]int64 {
	rows := map[string]int64{}
	for i := range b.Rows {
		rows[nameOf(&b.Rows[i])] += b.Rows[i].Price
	}
	return rows
}

func withoutZeros(rows map[string]int64) map[string]int64 {
	for name, price := range rows {
		if price == 0 {
			delete(rows, name)
		}
	}
	return rows
}

// TestTwin compares random fleets with the second implementation, row by row and to the nano-dollar, and checks that the
// rows add up to the prices of the nodes.
func TestTwin(t *testing.T) {
	for seed := range uint64(400) {
		f := draw(seed)
		snap := f.snapshot()
		var sum int64
		for _, n := range snap.Nodes {
			if n.Ours() {
				sum += n.LeastPrice()
			}
		}
		for name, g := range groupings {
			b := allocation.Of(snap, g.by)
			want := twin(f, func(p *model.PodSpec) string {
				if p.Daemon {
					return "daemons " + g.twin(p)
				}
				return "pods " + g.twin(p)
			})
			if diff := gocmp.Diff(withoutZeros(want), withoutZeros(prices(b))); diff != "" {
				t.Fatalf("fleet %d by %s (-twin +bill):\n%s", seed, name, diff)
			}
			var rows int64
			for _, r := range b.Rows {
				rows += r.Price
			}
			if rows != sum || b.Price != sum {
				t.Fatalf("fleet %d by %s: the rows add up to %d, the bill says %d, the nodes cost %d", seed, name, rows, b.Price, sum)
			}
		}
	}
}

// TestNeutral checks that what changes no request and no price changes no bill, and that a pod changes only the rows of
// its node.
func TestNeutral(t *testing.T) {
	by := groupings["workload"].by
	for seed := range uint64(100) {
		f := draw(seed)
		before := allocation.Of(f.snapshot(), by)
		changes := map[string]func(*fleet){
			"a PodDisruptionBudget": func(f *fleet) {
				f.pdbs = append(f.pdbs, model.PDBSpec{UID: "b", Namespace: "ns0", Name: "b", Selector: model.Selector{Namespaces: []string{"ns0"}}})
			},
			"a far limit": func(f *fleet) { f.pools[0].Limits = []quantity.Amount{{Name: "cpu", Value: 1 << 40}} },
			"an idle pool": func(f *fleet) {
				f.pools = append(f.pools, model.PoolSpec{Name: "idle", UID: "idle", Catalog: f.pools[0].Catalog})
			},
			"a pending pod": func(f *fleet) {
				f.pods = append(f.pods, model.PodSpec{UID: "new", Namespace: "ns0", Name: "new", Requests: []quantity.Amount{{Name: "cpu", Value: 1}}})
			},
			"another order": func(f *fleet) { slices.Reverse(f.pods); slices.Reverse(f.nodes) },
		}
		for name, change := range changes {
			changed := draw(seed)
			change(changed)
			if diff := gocmp.Diff(before, allocation.Of(changed.snapshot(), by)); diff != "" {
				t.Fatalf("fleet %d with %s:\n%s", seed, name, diff)
			}
		}
		checkOnePod(t, seed, before, by)
	}
}

// checkOnePod adds a pod to the first node: rows of workloads that are not on it stay.
func checkOnePod(t *testing.T, seed uint64, before *allocation.Bill, by allocation.By) {
	t.Helper()
	f := draw(seed)
	on := map[string]bool{"unused": true, "empty": true, "pods ns9/Pod/added": true}
	snap := f.snapshot()
	for _, p := range snap.Node("n0").Pods {
		row := allocation.Row{Kind: allocation.Pods, Key: by(p)}
		if p.Daemon {
			row.Kind = allocation.Daemons
		}
		on[nameOf(&row)] = true
	}
	f.pods = append(f.pods, model.PodSpec{UID: "added", Namespace: "ns9", Name: "added", Node: "n0", State: model.Bound,
		Requests: []quantity.Amount{{Name: "cpu", Value: 450}}})
	was, is := prices(before), prices(allocation.Of(f.snapshot(), by))
	for name := range on {
		delete(was, name)
		delete(is, name)
	}
	if diff := gocmp.Diff(was, is); diff != "" {
		t.Fatalf("fleet %d: a pod on n0 changed other rows:\n%s", seed, diff)
	}
}
