package placement_test

import (
	"fmt"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Three pods of 1,500 millicores share one node of 8 CPUs, which costs less than three nodes of 2 CPUs. A pod that
// requests more than any instance type has is refused.
func ExampleSchedule() {
	instanceType := func(name string, cpu, price int64) model.InstanceType {
		capacity := []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "memory", Value: 16 << 30}, {Name: "pods", Value: 110}}
		return model.InstanceType{Name: name, Capacity: capacity, Allocatable: capacity,
			Requirements: []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: []string{name}}},
			Offerings:    []model.Offering{{Zone: "zone-a", CapacityType: "on-demand", Price: price, Available: true}}}
	}
	wellKnown := map[string]bool{model.LabelPool: true, model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "default", UID: "uid-of-the-pool",
		Requirements: []label.Requirement{{Key: model.LabelPool, Operator: label.In, Values: []string{"default"}}},
		Catalog: &model.Catalog{WellKnown: wellKnown, Types: []model.InstanceType{
			instanceType("small", 2000, 20*model.Nano/100), instanceType("large", 8000, 50*model.Nano/100),
		}}})
	for name, cpu := range map[string]int64{"web-1": 1500, "web-2": 1500, "web-3": 1500, "batch": 9000} {
		b.UpsertPod(model.PodSpec{UID: name, Namespace: "default", Name: name, Reschedulable: true,
			Requests: []quantity.Amount{{Name: "cpu", Value: cpu}}})
	}

	p := placement.Schedule(b.Snapshot(time.Unix(0, 0)), placement.Options{})

	for _, claim := range p.Claims {
		fmt.Printf("launch %s for %d pods\n", claim.Types()[0], len(claim.Pods))
	}
	for _, refused := range p.Refused {
		fmt.Println("unschedulable:", refused.Pods[0].Key())
	}
	// Output:
	// launch large for 3 pods
	// unschedulable: default/batch
}
