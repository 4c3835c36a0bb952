package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	lowerbound "github.com/karpenter-go/karpenter/internal/engine/bound"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// fleetOf is a cluster of small machines for the tests of commitments: types a (cheap) and b (dear, but committed at half
// price), of 2 and 4 vCPUs, in two zones.
type fleetOf struct {
	limit  int64 // of the commitment, in millicores or nano-USD per hour; 0 for none
	usd    bool
	nodes  []model.NodeSpec
	pods   int
	others int64  // price of type a per vCPU
	most   int64  // limit of the pool, in nano-USD per hour; 0 for none
	flat   bool   // the commitment is at 0.01 USD per hour for each machine
	zone   string // of the commitment; "" for both
}

const bPerCPU = model.Nano / 10

func (f *fleetOf) catalog() *model.Catalog {
	c := &model.Catalog{WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true,
		model.FieldCommitment: true}}
	for _, cpus := range []int64{2, 4} {
		for _, family := range []string{"a", "b"} {
			price := f.others * cpus
			if family == "b" {
				price = bPerCPU * cpus
			}
			size := []quantity.Amount{{Name: "cpu", Value: cpus * 1000}, {Name: "pods", Value: 100}}
			t := model.InstanceType{Name: family + strconv.FormatInt(cpus, 10), Capacity: size, Allocatable: size,
				Requirements: []label.Requirement{in(model.LabelType, family+strconv.FormatInt(cpus, 10))}}
			for _, zone := range []string{"x", "y"} {
				o := model.Offering{Zone: zone, CapacityType: "on-demand", Price: price, Available: true}
				if f.limit > 0 {
					o.Requirements = []label.Requirement{{Key: model.FieldCommitment, Operator: label.DoesNotExist}}
				}
				t.Offerings = append(t.Offerings, o)
				if family == "b" && f.limit > 0 && (f.zone == "" || f.zone == zone) {
					o.Requirements = []label.Requirement{in(model.FieldCommitment, "plan")}
					o.ReservationID, o.Price, o.Limit, o.Units = model.CommitmentID(0, "plan"), price/2, f.limit, cpus*1000
					if f.flat {
						o.Price = model.Nano / 100
					}
					if f.usd {
						o.Units, o.PerPrice = o.Price, 1
					}
					t.Offerings = append(t.Offerings, o)
				}
			}
			c.Types = append(c.Types, t)
		}
	}
	return c
}

func (f *fleetOf) snapshot() *model.Snapshot {
	b := model.NewBuilder()
	var limits []quantity.Amount
	if f.most > 0 {
		limits = []quantity.Amount{{Name: model.ResourceUSD, Value: f.most}}
	}
	b.UpsertPool(model.PoolSpec{Name: "p", UID: "p", Catalog: f.catalog(), Policy: "WhenEmpty", Limits: limits,
		Requirements: []label.Requirement{in(model.LabelCapacityType, "on-demand")}})
	for i := range f.nodes {
		b.UpsertNode(f.nodes[i])
	}
	for i := range f.pods {
		name := fmt.Sprintf("pod-%03d", i)
		b.UpsertPod(model.PodSpec{UID: name, Namespace: "default", Name: name, State: model.Pending, Reschedulable: true,
			Requests: []quantity.Amount{{Name: "cpu", Value: 1900}}})
	}
	return b.Snapshot(noonOf(0))
}

func noonOf(minutes int) time.Time { return time.Date(2026, 5, 1, 12, minutes, 0, 0, time.UTC) }

// machine returns an initialized node of the type that was created at that minute.
func machine(typeName string, minute int) model.NodeSpec {
	cpus, _ := strconv.ParseInt(typeName[1:], 10, 64)
	size := []quantity.Amount{{Name: "cpu", Value: cpus * 1000}, {Name: "pods", Value: 100}}
	name := fmt.Sprintf("%s-%03d", typeName, minute)
	return model.NodeSpec{Name: name, UID: name, Claim: name, ClaimUID: name, Pool: "p", Stage: model.Initialized, Ready: true,
		Created: noonOf(minute), Capacity: size, Allocatable: size, Labels: map[string]string{model.LabelPool: "p",
			model.LabelType: typeName, model.LabelZone: "x", model.LabelCapacityType: "on-demand"}}
}

// bought returns how many vCPUs of each family a plan buys, and with which commitment.
func bought(p *plan.Provision) map[string]int64 {
	sum := map[string]int64{}
	for i := range p.Claims {
		o := p.Claims[i].Options[0]
		cpus, _ := strconv.ParseInt(o.Type[1:], 10, 64)
		commitment, _ := model.CommitmentName(p.Claims[i].Reservation)
		sum[o.Type[:1]+" "+commitment] += cpus
	}
	return sum
}

// TestCommitted: a plan buys committed capacity up to what is committed and no further. Type b costs 0.10 USD per vCPU and
// hour and 0.05 with the commitment, type a 0.08.
func TestCommitted(t *testing.T) {
	const a = model.Nano * 8 / 100
	for _, test := range []struct {
		name  string
		fleet fleetOf
		want  map[string]int64
	}{
		{"none", fleetOf{pods: 8, others: a}, map[string]int64{"a ": 16}},
		{"8 vCPUs", fleetOf{limit: 8000, pods: 8, others: a}, map[string]int64{"a ": 8, "b plan": 8}},
		{"more than is needed", fleetOf{limit: 800_000, pods: 8, others: a}, map[string]int64{"b plan": 16}},
		{"less than the least machine", fleetOf{limit: 1999, pods: 8, others: a}, map[string]int64{"a ": 16}},
		{"0.30 USD per hour", fleetOf{limit: model.Nano * 3 / 10, usd: true, pods: 8, others: a}, map[string]int64{"a ": 10, "b plan": 6}},
		{"partly used", fleetOf{limit: 8000, pods: 8, others: a, nodes: full(machine("b4", -9))}, map[string]int64{"a ": 12, "b plan": 4}},
		{"used by a cheaper type too", fleetOf{limit: 8000, pods: 8, others: bPerCPU / 4}, map[string]int64{"a ": 16}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := placement.Schedule(test.fleet.snapshot(), placement.Options{})
			if diff := cmp.Diff(test.want, bought(p)); diff != "" {
				t.Errorf("vCPUs by family and commitment (-want +got):\n%s", diff)
			}
			for i := range p.Claims {
				for _, r := range p.Claims[i].Requirements {
					if r.Key == model.FieldCommitment {
						t.Errorf("claim %s requires %v, which is no label", p.Claims[i].Name, r)
					}
				}
			}
		})
	}
}

// TestCommittedWithinLimit: a limit in USD per hour counts committed nodes at the list price, in the plan as in the guard.
func TestCommittedWithinLimit(t *testing.T) {
	for _, test := range []struct { // a2 costs 0.16 USD per hour, b2 0.20, and 0.10 committed
		fleet fleetOf
		want  map[string]int64
	}{
		{fleetOf{most: model.Nano * 17 / 100}, map[string]int64{"a ": 2}},
		{fleetOf{most: model.Nano * 25 / 100}, map[string]int64{"b plan": 2}},
		{fleetOf{most: model.Nano * 25 / 100, flat: true}, map[string]int64{"b plan": 2}},
		{fleetOf{most: model.Nano * 15 / 100}, map[string]int64{}},
	} {
		f := test.fleet
		f.limit, f.pods, f.others = 8000, 1, model.Nano*8/100
		if diff := cmp.Diff(test.want, bought(placement.Schedule(f.snapshot(), placement.Options{}))); diff != "" {
			t.Errorf("a limit of %d nano-USD per hour: vCPUs by family and commitment (-want +got):\n%s", f.most, diff)
		}
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 13))
		f := randomFleet(r)
		f.most, f.flat = int64(r.IntN(200))*model.Nano/100, r.IntN(2) == 0
		f.zone = []string{"", "y"}[r.IntN(2)]
		snap := f.snapshot()
		p := placement.Schedule(snap, placement.Options{})
		if _, dropped := guard.CheckProvision(snap, p); len(dropped) > 0 {
			t.Errorf("seed %d: the guard drops %+v", seed, dropped)
		}
	}
}

// TestZonalCommitment: a claim that is bought with a commitment of one zone is launched there, and counts before it is. One
// that must be in the other zone uses none.
func TestZonalCommitment(t *testing.T) {
	f := fleetOf{limit: 8000, pods: 8, others: model.Nano * 8 / 100, zone: "y"}
	p := placement.Schedule(f.snapshot(), placement.Options{})
	if diff := cmp.Diff(map[string]int64{"a ": 8, "b plan": 8}, bought(p)); diff != "" {
		t.Errorf("vCPUs by family and commitment (-want +got):\n%s", diff)
	}
	for i := range p.Claims {
		if c := &p.Claims[i]; c.Reservation != "" && !slices.Equal(zonesOf(c.Requirements), []string{"y"}) {
			t.Errorf("a claim with the commitment requires %v, want zone y", c.Requirements)
		}
	}
	for _, test := range []struct {
		zones []string
		want  int64
	}{{nil, 4000}, {[]string{"x", "y"}, 4000}, {[]string{"y"}, 4000}, {[]string{"x"}, 0}} {
		n := launching("b4", 1)
		if test.zones != nil {
			n.Requirements = append(n.Requirements, in(model.LabelZone, test.zones...))
		}
		f.nodes = []model.NodeSpec{n}
		if used := f.snapshot().Commitments[0].Used; used != test.want {
			t.Errorf("a claim in zones %v uses %d, want %d", test.zones, used, test.want)
		}
	}
}

// launching returns a claim for a machine of the type that is not launched.
func launching(typeName string, minute int) model.NodeSpec {
	n := machine(typeName, minute)
	n.Stage, n.Ready, n.Labels = model.Launching, false, map[string]string{model.LabelPool: "p"}
	n.Requirements = []label.Requirement{in(model.LabelType, typeName), in(model.LabelCapacityType, "on-demand")}
	return n
}

// full returns the nodes without room for pods.
func full(nodes ...model.NodeSpec) []model.NodeSpec {
	for i := range nodes {
		nodes[i].Allocatable = []quantity.Amount{{Name: "cpu", Value: 100}}
	}
	return nodes
}

// TestLimitFarAway: two limits that are far from reached give the same plan, to the byte.
func TestLimitFarAway(t *testing.T) {
	for seed := range uint64(30) {
		f := randomFleet(rand.New(rand.NewPCG(seed, 7)))
		f.limit = 1 << 40
		near := placement.Schedule(f.snapshot(), placement.Options{})
		f.limit = 1 << 50
		far := placement.Schedule(f.snapshot(), placement.Options{})
		if diff := cmp.Diff(near.Claims, far.Claims, cmpopts.IgnoreUnexported(model.Pod{}),
			cmpopts.IgnoreFields(plan.NewClaim{}, "Pods")); diff != "" {
			t.Errorf("seed %d: %s", seed, diff)
		}
	}
}

func randomFleet(r *rand.Rand) fleetOf {
	f := fleetOf{limit: int64(r.IntN(20_000)), usd: r.IntN(2) == 0, pods: r.IntN(12), others: bPerCPU * int64(60+r.IntN(60)) / 100}
	if f.usd {
		f.limit *= model.Nano / 20_000
	}
	types := []string{"a2", "a4", "b2", "b4"}
	for minute := range r.IntN(8) {
		n := machine(types[r.IntN(4)], minute)
		if r.IntN(3) == 0 {
			n = launching(types[r.IntN(4)], minute)
		}
		n.Deleting = r.IntN(6) == 0
		f.nodes = append(f.nodes, n)
	}
	return f
}

// TestCover compares the prices of machines with a plain second computation: each unit of each machine of type b, one by
// one in the order of creation, costs half as long as units are left.
func TestCover(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		f := randomFleet(r)
		shuffled := f
		shuffled.nodes = slices.Clone(f.nodes)
		r.Shuffle(len(f.nodes), func(i, j int) { shuffled.nodes[i], shuffled.nodes[j] = shuffled.nodes[j], shuffled.nodes[i] })
		snap := shuffled.snapshot()
		left, used := float64(f.limit), 0.0
		for i := range f.nodes {
			n := &f.nodes[i]
			cpus, _ := strconv.ParseFloat(n.Name[1:2], 64)
			want := cpus * float64(f.others)
			if n.Name[0] == 'b' {
				want = cpus * bPerCPU
				units := cpus * 1000
				if f.usd {
					units = want / 2
				}
				if took := min(left, units); !n.Deleting && f.limit > 0 {
					want -= want / 2 * took / units
					left, used = left-took, used+took
				}
			}
			if got := float64(snap.Node(n.Name).LeastPrice()); got < want-2 || got > want+2 {
				t.Errorf("seed %d: %s costs %v, want %v", seed, n.Name, got, want)
			}
		}
		if f.limit > 0 && float64(snap.Commitments[0].Used) != used {
			t.Errorf("seed %d: %d used, want %v", seed, snap.Commitments[0].Used, used)
		}
		// What the plan buys with the commitment fits what is left.
		for _, c := range placement.Schedule(snap, placement.Options{}).Claims {
			if c.Reservation == "" {
				continue
			}
			cpus, _ := strconv.ParseFloat(c.Options[0].Type[1:], 64)
			units := cpus * 1000
			if f.usd {
				units = cpus * bPerCPU / 2
			}
			if left -= units; left < 0 {
				t.Errorf("seed %d: claims take more than the commitment has", seed)
			}
		}
	}
}

// TestBoundWithCommitments: no plan costs less than its lower bound, and a commitment lowers the bound by no more than it can
// save: half of the price of the vCPUs that it covers, or as much as its own price.
func TestBoundWithCommitments(t *testing.T) {
	for seed := range uint64(300) {
		f := randomFleet(rand.New(rand.NewPCG(seed, 11)))
		f.nodes = nil
		snap, price := f.snapshot(), int64(0)
		p := placement.Schedule(snap, placement.Options{})
		for i := range p.Claims {
			price += p.Claims[i].Price()
		}
		least := lowerbound.Of(snap, lowerbound.Options{}).Price
		if least > price {
			t.Errorf("seed %d: the plan costs %d, and its lower bound is %d", seed, price, least)
		}
		saves := f.limit
		if !f.usd {
			saves = f.limit * bPerCPU / 2 / 1000
		}
		f.limit = 0
		without := lowerbound.Of(f.snapshot(), lowerbound.Options{}).Price
		if tolerance := without / 1000; least < without-saves-tolerance {
			t.Errorf("seed %d: the bound is %d, and %d without a commitment that saves %d at most", seed, least, without, saves)
		}
	}
}

// TestYoungerMachinesChangeNoPrice: what is added to a fleet changes the price of no older machine.
func TestYoungerMachinesChangeNoPrice(t *testing.T) {
	for seed := range uint64(100) {
		f := randomFleet(rand.New(rand.NewPCG(seed, 5)))
		before := f.snapshot()
		f.nodes = append(f.nodes, machine("b4", 40), machine("b2", 41))
		after := f.snapshot()
		for _, n := range before.Nodes {
			if got := after.Node(n.Name).Price; got != n.Price {
				t.Errorf("seed %d: %s cost %d and now costs %d", seed, n.Name, n.Price, got)
			}
		}
	}
}
