package allocation_test

import (
	"fmt"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/allocation"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// BenchmarkOf measures the bill of 5,000 nodes with 50,000 pods in 200 namespaces.
func BenchmarkOf(b *testing.B) {
	size := []quantity.Amount{{Name: "cpu", Value: 15890}, {Name: "memory", Value: 59<<30 + 4711}, {Name: "pods", Value: 110}}
	catalog := &model.Catalog{Types: []model.InstanceType{{Name: "large", Capacity: size, Allocatable: size,
		Offerings: []model.Offering{{Zone: "a", CapacityType: "on-demand", Price: 768_123_457, Available: true}}}}}
	f := &fleet{pools: []model.PoolSpec{{Name: "p", UID: "p", Catalog: catalog}}}
	for i := range 5000 {
		name := fmt.Sprint("n", i)
		f.nodes = append(f.nodes, model.NodeSpec{Name: name, UID: name, Claim: name, ClaimUID: name, Pool: "p", Stage: model.Initialized,
			Ready: true, Capacity: size, Allocatable: size, Labels: map[string]string{model.LabelPool: "p", model.LabelType: "large",
				model.LabelZone: "a", model.LabelCapacityType: "on-demand"}})
		for j := range 10 {
			pod := fmt.Sprintf("%s-%d", name, j)
			f.pods = append(f.pods, model.PodSpec{UID: pod, Namespace: fmt.Sprint("team-", (i*7+j)%200), Name: pod, Node: name, State: model.Bound,
				Requests: []quantity.Amount{{Name: "cpu", Value: int64(100 + i%9*50)}, {Name: "memory", Value: int64(1+j) << 28},
					{Name: "pods", Value: 1}}})
		}
	}
	snap := f.snapshot()
	b.ReportAllocs()
	for b.Loop() {
		if bill := allocation.Of(snap, allocation.ByNamespace); len(bill.Rows) != 201 {
			b.Fatalf("%d rows, want one for each namespace and one for what is unused", len(bill.Rows))
		}
	}
}
