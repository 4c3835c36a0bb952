package fleetsim_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/fleetsim"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func room(milli int64) []quantity.Amount {
	return []quantity.Amount{{Name: "cpu", Value: milli}, {Name: "memory", Value: milli << 20}, {Name: "pods", Value: 1}}
}

// pool sells a small and a large type of spot capacity, for 0.1 and 0.4 USD per hour.
func pool() model.PoolSpec {
	p := model.PoolSpec{Name: "pool", UID: "uid-pool", Policy: "WhenEmptyOrUnderutilized", Catalog: &model.Catalog{WellKnown: map[string]bool{
		model.LabelZone: true, model.LabelCapacityType: true, model.LabelType: true, model.LabelPool: true}},
		Budgets:      []model.Budget{{IsPercent: true, Percent: 100}},
		Requirements: []label.Requirement{{Key: model.LabelPool, Operator: label.In, Values: []string{"pool"}}}}
	for i, name := range []string{"small", "large"} {
		cpus := int64(2 + 6*i)
		amounts := []quantity.Amount{{Name: "cpu", Value: cpus * 1000}, {Name: "memory", Value: cpus << 30}, {Name: "pods", Value: 50}}
		p.Catalog.Types = append(p.Catalog.Types, model.InstanceType{Name: name, Capacity: amounts, Allocatable: amounts,
			Requirements: []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: []string{name}}},
			Offerings:    []model.Offering{{Zone: "a", CapacityType: "spot", Price: cpus * model.Nano / 20, Available: true}}})
	}
	return p
}

var template = model.PodSpec{Namespace: "default", Reschedulable: true, Ready: true, EvictionCost: 1000, Requests: room(1000),
	Controller: model.Owner{Kind: "ReplicaSet", Name: "app", UID: "uid-app"}}

// TestCluster scales up and down and interrupts a node: the pods move to a new one, and the meter has what that cost.
func TestCluster(t *testing.T) {
	c := fleetsim.New(1, disruption.Options{}, noon, fleetsim.Fleet{Pools: []model.PoolSpec{pool()}})
	c.Poll = 10 * time.Second
	advance := func(d time.Duration) {
		t.Helper()
		if err := c.Advance(c.Now.Add(d)); err != nil {
			t.Fatal(err)
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	c.Scale(template, 2)
	advance(2 * time.Minute)
	if all, bound := c.Count("uid-app"); all != 2 || bound != 2 || len(c.Spot()) != 1 {
		t.Fatalf("%d pods, %d on nodes %v; want 2, 2 and one node", all, bound, c.Spot())
	}
	first := c.Spot()[0]
	fresh, err := c.Fresh()
	if err != nil || fresh != c.Cost() {
		t.Errorf("costs %d, fresh %d, %v", c.Cost(), fresh, err)
	}
	if want := 2 * 30 * time.Second.Hours(); math.Abs(c.Meter.Pending-want) > 1e-9 || c.Meter.Longest != 30*time.Second {
		t.Errorf("%v pod hours pending, longest %v; want %v and the time of a machine", c.Meter.Pending, c.Meter.Longest, want)
	}
	if want := 0.105 * (2 * time.Minute).Hours(); math.Abs(c.Meter.Cost-want) > 1e-9 {
		t.Errorf("has cost %v, want %v", c.Meter.Cost, want)
	}

	c.Interrupt(first)
	advance(5 * time.Minute)
	if names := c.Spot(); len(names) != 1 || names[0] == first || c.Tally.Interrupted != 2 || c.Tally.Moved != 0 {
		t.Errorf("after an interruption: nodes %v, %+v", names, c.Tally)
	}

	c.Scale(template, 8)
	advance(5 * time.Minute)
	c.Scale(template, 1)
	advance(time.Hour)
	if all, bound := c.Count("uid-app"); all != 1 || bound != 1 || c.Cost() != fresh {
		t.Errorf("%d pods, %d on nodes, %d nano-USD per hour; want 1, 1 and %d", all, bound, c.Cost(), fresh)
	}
	c.Scale(template, 0)
	advance(time.Hour)
	if c.Cost() != 0 {
		t.Errorf("without pods, costs %d nano-USD per hour", c.Cost())
	}
}

// TestCheck checks that an overfull node is found.
func TestCheck(t *testing.T) {
	p, node := pool(), model.NodeSpec{Name: "n", UID: "n", Claim: "n", ClaimUID: "n", Pool: "pool", Stage: model.Initialized, Ready: true,
		Capacity: room(1000), Allocatable: room(1000), Labels: map[string]string{model.LabelPool: "pool"}}
	pod := template
	pod.UID, pod.Name, pod.Node, pod.State = "p", "p", "n", model.Bound
	for _, c := range []struct {
		milli int64
		err   string
	}{{1000, ""}, {1001, "node n is overfull: 1001 of 1000 cpu"}} {
		pod.Requests = room(1000)
		pod.Requests[0].Value = c.milli
		f := fleetsim.Fleet{Pools: []model.PoolSpec{p}, Nodes: []model.NodeSpec{node}, Pods: []model.PodSpec{pod}}
		err := fleetsim.New(1, disruption.Options{}, noon, f).Check()
		if text := ""; err != nil {
			text = err.Error()
			if !strings.Contains(text, c.err) || c.err == "" {
				t.Errorf("%d: %v, want %q", c.milli, err, c.err)
			}
		} else if c.err != text {
			t.Errorf("%d: no error, want %q", c.milli, c.err)
		}
	}
}
