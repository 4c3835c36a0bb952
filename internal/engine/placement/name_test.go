package placement_test

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestNameIsKept: a claim keeps the name of the previous plan, also when a name that precedes it becomes free. A
// claim that was created without a reply is not in the snapshot; under another name it would be created again.
func TestNameIsKept(t *testing.T) {
	room := []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "memory", Value: 1000}, {Name: "pods", Value: 10}}
	pool := model.PoolSpec{Name: "pool", UID: "pool", Requirements: []label.Requirement{{Key: model.LabelPool, Operator: label.In, Values: []string{"pool"}}},
		Catalog: &model.Catalog{Types: []model.InstanceType{{Name: "m", Capacity: room, Allocatable: room,
			Requirements: []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: []string{"m"}}},
			Offerings:    []model.Offering{{Zone: "z", CapacityType: "on-demand", Price: model.Nano, Available: true}}}},
			WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}}}
	// next plans for one pod beside claims that are being deleted.
	next := func(last *plan.Provision, deleting ...string) *plan.Provision {
		t.Helper()
		b := model.NewBuilder()
		b.UpsertPool(pool)
		b.UpsertPod(model.PodSpec{UID: "pod", Namespace: "default", Name: "pod", Requests: []quantity.Amount{{Name: "cpu", Value: 500}}, Reschedulable: true})
		for _, name := range deleting {
			b.UpsertNode(model.NodeSpec{Name: name, Claim: name, ClaimUID: "uid-" + name, Pool: "pool", Stage: model.Launching, Deleting: true})
		}
		p := placement.Schedule(keeping(b.Snapshot(time.Unix(0, 0)), last), placement.Options{})
		if len(p.Claims) != 1 {
			t.Fatalf("%d claims, want 1: %+v", len(p.Claims), p)
		}
		return p
	}
	first := next(nil)
	if first.Renamed != nil {
		t.Errorf("renamed %v, want none", first.Renamed)
	}
	a := first.Claims[0].Name
	second := next(first, a)
	b := second.Claims[0].Name
	if a == b {
		t.Fatalf("the new claim has the name of one that is being deleted, %s", a)
	}
	third := next(second)
	if name := third.Claims[0].Name; name != b {
		t.Errorf("the name is %s when %s is free again, want %s as before", name, a, b)
	}
	if name := next(third).Claims[0].Name; name != b {
		t.Errorf("the name is %s in the plan after that, want %s", name, b)
	}
	if name := next(third, b).Claims[0].Name; name != a {
		t.Errorf("the name is %s when the claim with the name %s is being deleted, want %s", name, b, a)
	}
	if name := next(nil).Claims[0].Name; name != a {
		t.Errorf("the name is %s without a previous plan, want %s", name, a)
	}
	// A claim of the pool is gone, and another series begins. What may have been created without a reply keeps its name.
	pool.ClaimSeries = "1"
	if name := next(second).Claims[0].Name; name != b {
		t.Errorf("the name is %s in a new series, want %s as before", name, b)
	}
	names := map[string]bool{a: true, b: true}
	for _, pool.ClaimSeries = range []string{"1", "2"} {
		fresh := next(nil)
		name := fresh.Claims[0].Name
		if names[name] {
			t.Errorf("the name %s is used again in series %s", name, pool.ClaimSeries)
		}
		if names[name] = true; next(nil).Claims[0].Name != name {
			t.Errorf("after a crash, another name than %s", name)
		}
		if again := next(fresh).Claims[0].Name; again != name {
			t.Errorf("the name is %s in the next plan, want %s", again, name)
		}
	}
}
