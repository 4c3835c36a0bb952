package spotshare_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/engine/spotshare"
)

// TestRestsOfShares: there are twice as many slots as shares, and no more than the zones need for that.
func TestRestsOfShares(t *testing.T) {
	var got []string
	for _, at := range [][2]int{{1, 3}, {10, 3}, {33, 1}, {34, 1}, {50, 1}, {60, 1}, {99, 1}, {60, 3}, {60, 6}} {
		got = append(got, fmt.Sprintf("%d%% in %d: %d", at[0], at[1], spotshare.RestsOf(at[0], at[1])))
	}
	want := []string{
		"1% in 3: 67", "10% in 3: 7", "33% in 1: 8", "34% in 1: 6", "50% in 1: 4", "60% in 1: 4", "99% in 1: 4", "60% in 3: 2", "60% in 6: 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("remainders (-want +got):\n%s", diff)
	}
}

// TestUncertainSpot: two spot nodes of one type exceed the share by half if they are alone, and are within it beside a
// third node that will be spot. A node that may be on-demand does not increase the whole.
func TestUncertainSpot(t *testing.T) {
	in := func(key string, values ...string) label.Requirement {
		return label.Requirement{Key: key, Operator: label.In, Values: values}
	}
	size := []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "memory", Value: 1 << 34}, {Name: "pods", Value: 10}}
	catalog := &model.Catalog{WellKnown: map[string]bool{model.LabelPool: true, model.LabelCapacityType: true, model.LabelZone: true, model.LabelType: true}}
	for _, name := range []string{"one", "two"} {
		catalog.Types = append(catalog.Types, model.InstanceType{Name: name, Capacity: size, Allocatable: size,
			Requirements: []label.Requirement{in(model.LabelType, name)}, Offerings: []model.Offering{
				{Zone: "a", CapacityType: "spot", Price: 1, Available: true}, {Zone: "a", CapacityType: "on-demand", Price: 2, Available: true}}})
	}
	flight := func(capacityTypes ...string) []model.NodeSpec {
		return []model.NodeSpec{{Name: "flight", Claim: "flight", Pool: "pool", Stage: model.Launching, Labels: map[string]string{model.LabelPool: "pool"},
			Requirements: []label.Requirement{in(model.LabelPool, "pool"), in(model.LabelType, "two"), in(model.LabelCapacityType, capacityTypes...)}}}
	}
	spot, demand := plan.Option{Type: "two", Zone: "a", CapacityType: "spot"}, plan.Option{Type: "one", Zone: "a", CapacityType: "on-demand"}
	for name, test := range map[string]struct {
		nodes   []model.NodeSpec
		options []plan.Option
		want    int64
	}{
		"nothing":                     {want: 100},
		"spot in flight":              {nodes: flight("spot"), want: 0},
		"perhaps spot in flight":      {nodes: flight("spot", "on-demand"), want: 100},
		"spot to be launched":         {options: []plan.Option{spot}, want: 0},
		"perhaps spot to be launched": {options: []plan.Option{spot, demand}, want: 100},
		"on demand, to be launched":   {options: []plan.Option{demand}, want: 100},
	} {
		t.Run(name, func(t *testing.T) {
			b := model.NewBuilder()
			b.UpsertPool(model.PoolSpec{Name: "pool", UID: "pool", Catalog: catalog, MaxSpotShare: 50, Requirements: []label.Requirement{in(model.LabelPool, "pool")}})
			for i := range 2 {
				test.nodes = append(test.nodes, model.NodeSpec{Name: fmt.Sprint("node-", i), Claim: fmt.Sprint("node-", i), Pool: "pool", Stage: model.Initialized, Capacity: size, Allocatable: size,
					Labels: map[string]string{model.LabelPool: "pool", model.LabelType: "one", model.LabelZone: "a", model.LabelCapacityType: "spot"}})
			}
			for _, n := range test.nodes {
				b.UpsertNode(n)
			}
			decided := []plan.NewClaim{{Name: "new", Pool: "pool", Options: test.options}}
			got := spotshare.Exceeded(b.Snapshot(time.Unix(0, 0)), "pool", decided)
			if got != test.want {
				t.Errorf("one type in one zone has %d%%, want %d%%", got, test.want)
			}
		})
	}
}
