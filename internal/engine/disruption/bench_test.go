package disruption_test

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/workloads"
)

// The benchmarks need KARPENTER_WORKLOADS, a folder of workloads with nodes (go -C test run ./bench workload
// cluster-500 FOLDER/cluster-500).

// BenchmarkWhatIf measures the what-if for the removal of one node.
func BenchmarkWhatIf(b *testing.B) {
	workloads.Snapshots(b, noon, func(b *testing.B, snap *model.Snapshot) {
		ask, fit := disruption.FitsAlone(snap, disruption.Options{}), 0
		b.ReportAllocs()
		i := 0
		for ; b.Loop(); i++ {
			if ask(i % len(snap.Nodes)) {
				fit++
			}
		}
		b.ReportMetric(float64(fit)/float64(i), "fit")
	})
}

// BenchmarkSweep measures the what-if for every node.
func BenchmarkSweep(b *testing.B) {
	workloads.Snapshots(b, noon, func(b *testing.B, snap *model.Snapshot) {
		for b.Loop() {
			ask := disruption.FitsAlone(snap, disruption.Options{})
			for i := range snap.Nodes {
				ask(i)
			}
		}
	})
}

// BenchmarkPropose measures one run of the planner. BenchmarkStable measures runs until nothing changes.
func BenchmarkPropose(b *testing.B) {
	workloads.Snapshots(b, noon, func(b *testing.B, snap *model.Snapshot) {
		for b.Loop() {
			disruption.Propose(snap, disruption.Options{})
		}
	})
}

func BenchmarkStable(b *testing.B) {
	for _, kind := range []struct {
		name string
		opts disruption.Options
	}{
		{"usual", disruption.Options{}},
		{"cheap", disruption.Options{Economics: disruption.Economics{Payback: 24 * 3600e9, MovePrice: -1}}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			workloads.Snapshots(b, noon, func(b *testing.B, snap *model.Snapshot) {
				for b.Loop() {
					report(b, snap, untilStable(snap, func(s *model.Snapshot) []plan.Command { return disruption.Propose(s, kind.opts).Commands }))
				}
			})
		})
	}
}

func BenchmarkNaive(b *testing.B) {
	workloads.Snapshots(b, noon, func(b *testing.B, snap *model.Snapshot) {
		for b.Loop() {
			report(b, snap, untilStable(snap, func(s *model.Snapshot) []plan.Command {
				if c, found := disruption.Naive(s, disruption.Options{}); found {
					return []plan.Command{c}
				}
				return nil
			}))
		}
	})
}

// stable holds the final state of a cluster.
type stable struct {
	snap           *model.Snapshot
	rounds, steps  int
	moved          int
	price, savings float64 // USD per hour
}

func untilStable(snap *model.Snapshot, propose func(*model.Snapshot) []plan.Command) stable {
	s := stable{snap: snap}
	for commands := propose(s.snap); len(commands) > 0; commands = propose(s.snap) {
		s.rounds++
		for _, c := range commands {
			s.snap = disruption.After(s.snap, c)
			s.steps, s.moved, s.savings = s.steps+1, s.moved+c.Worth.Pods, s.savings+float64(c.Worth.Saving)/model.Nano
		}
	}
	s.price = priceOf(s.snap)
	return s
}

func priceOf(snap *model.Snapshot) float64 {
	price := 0.0
	for _, n := range snap.Nodes {
		price += float64(n.Price) / model.Nano
	}
	return price
}

func report(b *testing.B, before *model.Snapshot, s stable) {
	b.ReportMetric(priceOf(before), "USD/h-before")
	b.ReportMetric(s.price, "USD/h-after")
	b.ReportMetric(s.price+0.005*float64(len(s.snap.Nodes)), "cost/h-after")
	b.ReportMetric(float64(s.moved), "moved")
	b.ReportMetric(float64(s.rounds), "rounds")
	b.ReportMetric(float64(s.steps), "steps")
	b.ReportMetric(float64(s.moved)/max(s.savings, 1e-9), "moved/USD")
}
