package placement_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/audit"
	"github.com/karpenter-go/karpenter/internal/testing/workloads"
)

// The benchmarks time Schedule alone, on an existing snapshot. They report the cost of the plan in USD per hour, the
// number of nodes, and the price as a multiple of a bound: the fractional cost of cpu and memory at the best price that
// any type has for both, which no plan can undercut. The bound is weak where pods select their nodes.
//
// With KARPENTER_WORKLOADS set to a folder of workloads (each a folder with instance-types.json, nodepools.json and
// pods.json) BenchmarkWorkloads times those too.

func BenchmarkInflate(b *testing.B) {
	for _, pods := range []int{1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(pods), func(b *testing.B) {
			w := world{pools: []model.PoolSpec{{Name: "default", UID: "default", Catalog: wideCatalog(400),
				Requirements: []label.Requirement{in(model.LabelPool, "default")}}}}
			for i := range pods {
				w.pods = append(w.pods, model.PodSpec{UID: strconv.Itoa(i), Namespace: "default", Name: fmt.Sprintf("inflate-%d", i), Created: epoch,
					Requests: []quantity.Amount{{Name: "cpu", Value: 100}, {Name: "memory", Value: 256 * mi}, {Name: "pods", Value: 1}}})
			}
			benchmark(b, w.snapshot(nil))
		})
	}
}

// BenchmarkHeterogeneous has 500 shapes that select on architecture, zone, capacity type, family and size, in ten
// pools.
func BenchmarkHeterogeneous(b *testing.B) {
	for _, pods := range []int{1_000, 10_000} {
		b.Run(strconv.Itoa(pods), func(b *testing.B) { benchmark(b, heterogeneous(pods).snapshot(nil)) })
	}
}

// BenchmarkCold builds a first snapshot; BenchmarkNext builds one after an event.
func BenchmarkCold(b *testing.B) {
	w := heterogeneous(10_000)
	b.ReportAllocs()
	for b.Loop() {
		w.snapshot(nil)
	}
}

func BenchmarkNext(b *testing.B) {
	w := heterogeneous(10_000)
	builder := model.NewBuilder()
	for _, p := range w.pools {
		builder.UpsertPool(p)
	}
	for _, p := range w.pods {
		builder.UpsertPod(p)
	}
	builder.Snapshot(epoch)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		builder.UpsertPod(w.pods[i%len(w.pods)])
		builder.Snapshot(epoch)
	}
}

func BenchmarkWorkloads(b *testing.B) { workloads.Snapshots(b, epoch, benchmark) }

func benchmark(b *testing.B, snap *model.Snapshot) {
	b.ReportAllocs()
	for b.Loop() {
		placement.Schedule(snap, placement.Options{})
	}
	p := placement.Schedule(snap, placement.Options{})
	if problems := audit.Provision(snap, p); len(problems) > 0 {
		b.Fatal(problems[0])
	}
	var price int64
	for i := range p.Claims {
		price += p.Claims[i].Price()
	}
	b.ReportMetric(float64(price)/model.Nano, "USD/hour")
	b.ReportMetric(float64(len(p.Claims)), "nodes")
	b.ReportMetric(float64(p.Work), "questions")
	refused := 0
	for _, r := range p.Refused {
		refused += len(r.Pods)
	}
	b.ReportMetric(float64(refused), "refused")
	if bound := bound(snap); bound > 0 && refused == 0 && len(snap.Nodes) == 0 {
		b.ReportMetric(float64(price)/bound, "price/bound")
	}
}

// bound returns a valid lower bound on the price of all pending pods, nano-USD per hour: with weights u on cpu and
// memory such that no offering has more weight than price, the weight of the demand. It uses the best of a grid of
// weights.
func bound(snap *model.Snapshot) float64 {
	var cpu, memory float64
	for _, g := range snap.Groups {
		cpu += float64(g.Requests.At(quantity.CPU)) * float64(len(g.Pods))
		memory += float64(g.Requests.At(quantity.Memory)) * float64(len(g.Pods))
	}
	best := 0.0
	for i := range 101 {
		share := float64(i) / 100
		weigh := func(c, m float64) float64 { return share*c/max(cpu, 1) + (1-share)*m/max(memory, 1) }
		cheapest := 0.0
		for _, p := range snap.Pools {
			for t := range p.Eligible.All() {
				for _, class := range p.Types.Classes {
					if !class.Types.Has(t) {
						continue
					}
					weight := weigh(float64(p.Rooms.Possible(p.Start).Least(t).At(quantity.CPU)), float64(p.Rooms.Possible(p.Start).Least(t).At(quantity.Memory)))
					if weight <= 0 {
						continue
					}
					if unit := float64(class.Price[t]) / weight; cheapest == 0 || unit < cheapest {
						cheapest = unit
					}
				}
			}
		}
		best = max(best, cheapest)
	}
	return best
}

// wideCatalog has types of many families, generations and sizes, in three zones, similar to a cloud.
func wideCatalog(n int) *model.Catalog {
	d := newDice(7)
	c := &model.Catalog{WellKnown: wellKnown()}
	for i := 0; len(c.Types) < n; i++ {
		family := []string{"c", "m", "r"}[i%3]
		arch := []string{"amd64", "amd64", "arm64"}[i/3%3]
		t := d.kind(family, arch, int64(1)<<(i/9%8), 0)
		t.Name = fmt.Sprintf("%s-%d", t.Name, i)
		t.Requirements[0] = in(model.LabelType, t.Name)
		factor := int64(70 + d.IntN(50))
		for k := range t.Offerings {
			t.Offerings[k].Price = t.Offerings[k].Price * factor / 100
		}
		c.Types = append(c.Types, t)
	}
	return c
}

func heterogeneous(pods int) world {
	d := newDice(11)
	c := wideCatalog(800)
	var w world
	for i := range 10 {
		p := model.PoolSpec{Name: fmt.Sprintf("pool-%d", i), UID: fmt.Sprintf("pool-%d", i), Weight: int32(10 * (10 - i)), Catalog: c}
		p.Requirements = []label.Requirement{in(model.LabelPool, p.Name)}
		switch i % 4 {
		case 0:
			p.Taints = []model.Taint{{Key: "dedicated", Value: []string{"red", "blue", "green"}[i/4], Effect: model.NoSchedule}}
		case 1:
			p.Requirements = append(p.Requirements, in(keyArch, "arm64"), in(model.LabelCapacityType, "spot"))
			p.Limits = []quantity.Amount{{Name: "cpu", Value: int64(pods) * 200}}
		case 2:
			p.Requirements = append(p.Requirements, in(model.LabelCapacityType, "spot"))
			p.Limits = []quantity.Amount{{Name: "cpu", Value: int64(pods) * 100}}
		}
		w.pools = append(w.pools, p)
	}
	shapes := make([]model.PodSpec, 500)
	for i := range shapes {
		shapes[i] = shape(d)
	}
	zipf := rand.NewZipf(d.Rand, 1.2, 8, uint64(len(shapes)-1))
	for i := range pods {
		p := shapes[zipf.Uint64()]
		p.UID, p.Name, p.Namespace, p.Created = strconv.Itoa(i), fmt.Sprintf("pod-%d", i), "default", epoch
		w.pods = append(w.pods, p)
	}
	return w
}

func shape(d dice) model.PodSpec {
	p := model.PodSpec{Requests: []quantity.Amount{{Name: "cpu", Value: int64(1+d.IntN(40)) * 100}, {Name: "memory", Value: int64(1+d.IntN(64)) * 128 * mi}, {Name: "pods", Value: 1}}}
	var reqs []label.Requirement
	switch d.IntN(8) {
	case 0:
		reqs = append(reqs, in(keyArch, d.one("amd64", "arm64")))
	case 1:
		reqs = append(reqs, in(model.LabelZone, d.some(zones...)...))
	case 2:
		reqs = append(reqs, in(model.LabelCapacityType, d.one("on-demand", "spot")))
	case 3:
		reqs = append(reqs, label.Requirement{Key: keyFamily, Operator: label.NotIn, Values: []string{d.one("c", "m", "r")}})
	case 4:
		reqs = append(reqs, label.Requirement{Key: keyCPU, Operator: label.Gt, Values: []string{"3"}})
	}
	if len(reqs) > 0 {
		p.Alternatives = [][]label.Requirement{reqs}
	}
	if d.chance(15) {
		p.Tolerations = []model.Toleration{{Key: "dedicated", Value: d.one("red", "blue", "green")}}
	}
	return p
}
