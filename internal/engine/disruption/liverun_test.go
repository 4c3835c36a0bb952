package disruption_test

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/cluster/convert/converttest"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// BenchmarkLive carries out the plans of workloads with kube-scheduler in the way (live_test.go).
func BenchmarkLive(b *testing.B) {
	converttest.Folders(b, func(b *testing.B, folder string) {
		read := converttest.Read(b, folder)
		f := &fleet{pools: read.Pools, nodes: read.Nodes, pods: read.Pods}
		for b.Loop() {
			l := newLive(1, disruption.Options{}, f)
			before := l.snapshot()
			planned := untilStable(before, func(s *model.Snapshot) []plan.Command { return disruption.Propose(s, disruption.Options{}).Commands })
			l.run(b, 2*time.Hour)
			b.ReportMetric(planned.price, "USD/h-planned")
			b.ReportMetric(float64(planned.moved), "moved-planned")
			b.ReportMetric(priceOf(l.snapshot()), "USD/h-after")
			b.ReportMetric(float64(l.tally.moved), "moved")
			b.ReportMetric(float64(l.tally.moved)/(priceOf(before)-priceOf(l.snapshot())), "moved/USD")
			b.ReportMetric(float64(l.tally.bought), "bought")
			b.ReportMetric(float64(l.tally.spent)/model.Nano, "USD/h-bought")
			b.ReportMetric(float64(l.losses()), "losses")
			b.ReportMetric(float64(len(l.worth)), "commands")
			b.ReportMetric(float64(l.tally.abandoned), "abandoned")
			b.ReportMetric(float64(l.tally.rounds), "rounds")
			b.ReportMetric(l.now.Sub(noon).Minutes(), "minutes")
		}
	})
}
