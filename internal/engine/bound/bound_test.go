package bound_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/bound"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/audit"
)

const nodePrice = placement.ProductionNodePrice

// planned returns the cost of a plan, without and with the price of nodes, and the options for its bound.
func planned(p *plan.Provision) (price, cost int64, opts bound.Options) {
	placed := map[*model.Pod]bool{}
	for i := range p.Claims {
		price += p.Claims[i].Price()
		for _, pod := range p.Claims[i].Pods {
			placed[pod] = true
		}
	}
	for _, on := range p.Placed {
		for _, pod := range on.Pods {
			placed[pod] = true
		}
	}
	cost = price + int64(len(p.Claims))*nodePrice
	return price, cost, bound.Options{NodePrice: nodePrice, Pods: func(pod *model.Pod) bool { return placed[pod] }}
}

// TestBelowPlans compares the bound with the plans of package placement. It skips plans that the audit rejects,
// because they may be cheaper; the tests of placement cover those.
func TestBelowPlans(t *testing.T) {
	var sum, costs float64
	wrong := 0
	for seed := range uint64(300) {
		snap := randomWorld(seed, 8, 40, 12).snapshot(nil)
		p := placement.Schedule(snap, placement.Options{})
		if len(audit.Provision(snap, p)) > 0 {
			wrong++
			continue
		}
		price, cost, opts := planned(p)
		a := bound.Of(snap, opts)
		if a.Price > price || a.Cost > cost {
			t.Errorf("seed %d: the plan costs %d, with the price of nodes %d; the bounds are %d and %d", seed, price, cost, a.Price, a.Cost)
		}
		sum, costs = sum+float64(a.Cost), costs+float64(cost)
	}
	if wrong > 15 {
		t.Errorf("the audit rejects %d plans: too few remain to compare", wrong)
	}
	t.Logf("all bounds are %.1f%% of all costs, the audit rejects %d plans", 100*sum/costs, wrong)
	if sum < 0.8*costs {
		t.Errorf("all bounds are %.0f%% of all costs: the bound is loose", 100*sum/costs)
	}
}

// TestShuffled checks that the order in which the objects are added does not change the result.
func TestShuffled(t *testing.T) {
	for seed := range uint64(30) {
		w := randomWorld(seed, 8, 40, 12)
		opts := bound.Options{NodePrice: nodePrice}
		a, b := bound.Of(w.snapshot(nil), opts), bound.Of(w.snapshot(rand.New(rand.NewPCG(seed, 1))), opts)
		if diff := cmp.Diff(worths(a.OfCost), worths(b.OfCost)); diff != "" {
			t.Fatalf("seed %d: the order of objects changes the worths:\n%s", seed, diff)
		}
		if a.Price != b.Price || a.Cost != b.Cost {
			t.Fatalf("seed %d: the order of objects changes price and cost: %d and %d, %d and %d", seed, a.Price, a.Cost, b.Price, b.Cost)
		}
	}
}

func worths(c bound.Certificate) []string {
	var list []string
	for _, w := range c.Worth {
		list = append(list, fmt.Sprintf("%d of %s at %d", w.Count, w.Group.Pods[0].Key(), w.Each))
	}
	return list
}

// TestCertificates verifies the certificates of small clusters by exhaustive search.
func TestCertificates(t *testing.T) {
	for seed := range uint64(150) {
		w := randomWorld(seed, 3, 4, 5)
		a := bound.Of(w.snapshot(nil), bound.Options{NodePrice: nodePrice})
		w.verify(t, seed, a.OfCost)
		w.verify(t, seed, a.OfPrice)
	}
}

func (w world) verify(t *testing.T, seed uint64, c bound.Certificate) {
	t.Helper()
	each := map[string]int64{}
	counted := 0
	for _, v := range c.Worth {
		counted += int(v.Count)
		for _, p := range v.Group.Pods {
			each[p.UID] = v.Each
		}
	}
	if counted > len(w.pods) {
		t.Fatalf("seed %d: the certificate counts %d pods, there are %d", seed, counted, len(w.pods))
	}
	sale, exist := w.machines(c.NodePrice)
	var credit int64
	best := map[string]int64{} // by reservation
	for _, m := range sale {
		worth := m.best(w.pods, each, 0)
		switch {
		case m.reservation != "":
			best[m.reservation] = max(best[m.reservation], int64(m.count)*max(0, worth-m.price))
		case worth > m.price:
			t.Errorf("seed %d: %v costs %d and holds pods of worth %d", seed, m.labels, m.price, worth)
		}
	}
	for _, x := range best {
		credit += x
	}
	for _, m := range exist {
		credit += m.best(w.pods, each, 0)
	}
	if c.Total() > 0 && credit > c.Credit {
		t.Errorf("seed %d: existing capacity is worth %d, the credit is %d", seed, credit, c.Credit)
	}
}

// best returns the highest worth of a set of the pods, from the given index on, that the machine can hold.
func (m *machine) best(pods []model.PodSpec, each map[string]int64, from int) int64 {
	var most int64
	for i := from; i < len(pods); i++ {
		p := &pods[i]
		if each[p.UID] == 0 || !m.takes(p) || i > from && alike(p, &pods[i-1]) && each[p.UID] == each[pods[i-1].UID] {
			continue // the previous pod is identical: starting with it gives the same result
		}
		m.take(p.Requests, 1)
		m.pods = append(m.pods, p)
		most = max(most, each[p.UID]+m.best(pods, each, i+1))
		m.pods = m.pods[:len(m.pods)-1]
		m.take(p.Requests, -1)
	}
	return most
}

func alike(p, q *model.PodSpec) bool { return p.Labels["app"] == q.Labels["app"] }

// TestBelowOptimum compares the bound with the cheapest plan of tiny clusters, found by exhaustive search.
func TestBelowOptimum(t *testing.T) {
	met, some := 0, 0
	for seed := range uint64(200) {
		w := randomWorld(seed, 3, 2, 4)
		snap := w.snapshot(nil)
		for _, each := range []int64{0, nodePrice} {
			sale, exist := w.machines(each)
			s := &exhaustive{sale: sale, open: exist, best: math.MaxInt64, pods: w.pods, reserved: map[string]int{}}
			s.try(0, 0)
			if s.best == math.MaxInt64 {
				continue // some pod is unschedulable
			}
			a := bound.Of(snap, bound.Options{NodePrice: each})
			if a.Cost > s.best {
				t.Errorf("seed %d: the best plan costs %d, the bound is %d", seed, s.best, a.Cost)
			}
			if s.best > 0 {
				some++
				if float64(a.Cost) > 0.999*float64(s.best) {
					met++
				}
			}
		}
	}
	t.Logf("of %d clusters the bound equals the optimum in %d", some, met)
	if some < 60 || met < some/3 {
		t.Errorf("of %d clusters the bound equals the optimum in %d: the bound is loose, or the clusters are unusual", some, met)
	}
}

// exhaustive searches all plans.
type exhaustive struct {
	sale, open []machine
	pods       []model.PodSpec
	reserved   map[string]int
	best       int64
}

func (s *exhaustive) try(pod int, cost int64) {
	if cost >= s.best {
		return
	}
	if pod == len(s.pods) {
		s.best = cost
		return
	}
	p := &s.pods[pod]
	for i := range s.open {
		s.put(&s.open[i], pod, cost)
	}
	for _, m := range s.sale {
		if m.reservation != "" && s.reserved[m.reservation] >= m.count || !m.takes(p) {
			continue
		}
		s.reserved[m.reservation]++
		fresh := m
		fresh.free = map[string]int64{}
		for name, n := range m.free {
			fresh.free[name] = n
		}
		s.open = append(s.open, fresh)
		s.put(&s.open[len(s.open)-1], pod, cost+m.price)
		s.open = s.open[:len(s.open)-1]
		s.reserved[m.reservation]--
	}
}

func (s *exhaustive) put(m *machine, pod int, cost int64) {
	p := &s.pods[pod]
	if !m.takes(p) {
		return
	}
	m.take(p.Requests, 1)
	m.pods = append(slices.Clip(m.pods), p)
	held := m.pods
	s.try(pod+1, cost)
	m.pods = held[:len(held)-1]
	m.take(p.Requests, -1)
}

// TestWorked covers small clusters with a known optimum.
func TestWorked(t *testing.T) {
	c := &model.Catalog{WellKnown: map[string]bool{model.LabelZone: true, model.LabelCapacityType: true, model.LabelType: true, arch: true, model.LabelPool: true}}
	for i, size := range []int64{1, 4} {
		c.Types = append(c.Types, model.InstanceType{Name: fmt.Sprint("type-", i), Capacity: amounts(size*1000, size*4*gi, 100, 0),
			Allocatable: amounts(size*1000, size*4*gi, 100, 0), Requirements: []label.Requirement{in(model.LabelType, fmt.Sprint("type-", i)), in(arch, "amd64")},
			Offerings: []model.Offering{{Zone: "a", CapacityType: "spot", Price: size * 100_000_000, Available: true}}})
	}
	pool := model.PoolSpec{Name: "p", UID: "p", Catalog: c, Requirements: []label.Requirement{in(model.LabelPool, "p")}}
	pods := func(n int, change func(*model.PodSpec)) []model.PodSpec {
		var list []model.PodSpec
		for i := range n {
			p := model.PodSpec{UID: fmt.Sprint(i), Name: fmt.Sprint(i), Namespace: "default", Labels: map[string]string{"app": "x"}, Requests: amounts(600, gi, 1, 0)}
			if change != nil {
				change(&p)
			}
			list = append(list, p)
		}
		return list
	}
	own := model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{in("app", "x")}}
	node := model.NodeSpec{Name: "n", UID: "n", Stage: model.Initialized, Ready: true, Capacity: amounts(1000, 8*gi, 10, 0), Allocatable: amounts(1000, 8*gi, 10, 0),
		Labels: map[string]string{model.LabelHostname: "n"}}
	for _, test := range []struct {
		name        string
		world       world
		price, cost int64 // thousandths of a USD
	}{
		{"no pods", world{}, 0, 0},
		{"one pod, one small node", world{pods: pods(1, nil)}, 100, 105},
		{"a whole pod a node: two do not share a small one", world{pods: pods(2, nil)}, 200, 210},
		{"six fill a large node, which is cheaper than six small ones", world{pods: pods(6, nil)}, 400, 405},
		{"apart, each has its own", world{pods: pods(6, func(p *model.PodSpec) {
			p.Terms = []model.Term{{Key: model.LabelHostname, Anti: true, Selector: own}}
		})}, 600, 630},
		{"two a node", world{pods: pods(6, func(p *model.PodSpec) {
			p.Requests = amounts(200, gi, 1, 0)
			p.Spread = []model.Spread{{Key: model.LabelHostname, MaxSkew: 2, Selector: own}}
		})}, 300, 315},
		{"a port each", world{pods: pods(3, func(p *model.PodSpec) {
			p.Requests = amounts(100, gi, 1, 0)
			p.HostPorts = []model.HostPort{{Protocol: "TCP", Port: 80}}
		})}, 300, 315},
		{"what exists takes one of two", world{pods: pods(2, nil), nodes: []model.NodeSpec{node}}, 100, 105},
		{"what exists takes all", world{pods: pods(1, nil), nodes: []model.NodeSpec{node}}, 0, 0},
		{"who fits nothing is left out", world{pods: append(pods(1, nil), model.PodSpec{UID: "big", Name: "big", Namespace: "default",
			Requests: amounts(100_000, gi, 1, 0)})}, 100, 105},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.world.pools = []model.PoolSpec{pool}
			a := bound.Of(test.world.snapshot(nil), bound.Options{NodePrice: nodePrice})
			for _, pair := range [][2]int64{{a.Price, test.price * 1_000_000}, {a.Cost, test.cost * 1_000_000}} {
				if got, want := pair[0], pair[1]; got > want || float64(got) < 0.99999*float64(want) {
					t.Errorf("bound %d, the optimum is %d", got, want)
				}
			}
			if a.Price > a.OfPrice.Total() || a.Cost > max(a.OfCost.Total(), a.Price) {
				t.Errorf("got %d and %d, the certificates prove %d and %d", a.Price, a.Cost, a.OfPrice.Total(), a.OfCost.Total())
			}
		})
	}
}
