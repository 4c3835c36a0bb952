package bound_test

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/bound"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/testing/workloads"
)

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// BenchmarkWorkloads computes the bound of the workloads in the folders of KARPENTER_WORKLOADS (each with
// instance-types.json, nodepools.json and pods.json) and compares it with the cost of the plan of package placement.
func BenchmarkWorkloads(b *testing.B) { workloads.Snapshots(b, epoch, compare) }

func compare(b *testing.B, snap *model.Snapshot) {
	plan := placement.Schedule(snap, placement.Options{})
	price, cost, opts := planned(plan)
	var a bound.Answer
	for b.Loop() {
		a = bound.Of(snap, opts)
	}
	if a.Price > price || a.Cost > cost {
		b.Errorf("the plan costs %d (%d with the price of nodes), less than the bound %d (%d)", price, cost, a.Price, a.Cost)
	}
	b.ReportMetric(float64(a.Price)/model.Nano, "price-bound")
	b.ReportMetric(float64(a.Cost)/model.Nano, "cost-bound")
	b.ReportMetric(float64(price)/model.Nano, "plan-price")
	b.ReportMetric(float64(cost)/model.Nano, "plan-cost")
	refused := 0
	for _, r := range plan.Refused {
		refused += len(r.Pods)
	}
	b.ReportMetric(float64(refused), "refused")
	b.ReportMetric(100*(float64(cost)/float64(a.Cost)-1), "gap-%")
}
