package provision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// TestPendingByZone verifies that a pod counts for the only existing zone that its terms and its volumes permit.
func TestPendingByZone(t *testing.T) {
	in := func(zones ...string) []label.Requirement {
		return []label.Requirement{{Key: model.LabelZone, Operator: label.In, Values: zones}}
	}
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "p", UID: "p", Catalog: &model.Catalog{Types: []model.InstanceType{{
		Name: "t", Offerings: []model.Offering{{Zone: "a", CapacityType: "spot", Available: true}, {Zone: "b", CapacityType: "spot"}},
	}}}})
	b.UpsertNode(model.NodeSpec{Name: "n", UID: "n", Stage: model.Initialized, Labels: map[string]string{model.LabelZone: "c"}})
	for _, pod := range []struct {
		name           string
		terms, volumes [][]label.Requirement
	}{
		{name: "anywhere"},
		{name: "a", terms: [][]label.Requirement{in("a")}},
		{name: "c", terms: [][]label.Requirement{in("c")}},
		{name: "a or b", terms: [][]label.Requirement{in("a"), in("b")}},
		{name: "volume", terms: [][]label.Requirement{in("a", "b")}, volumes: [][]label.Requirement{in("b", "c")}},
		{name: "elsewhere", terms: [][]label.Requirement{in("d")}},
		{name: "not a, not b", terms: [][]label.Requirement{{{Key: model.LabelZone, Operator: label.NotIn, Values: []string{"a", "b"}}}}},
	} {
		b.UpsertPod(model.PodSpec{UID: pod.name, Namespace: "default", Name: pod.name, Alternatives: pod.terms, VolumeAlternatives: pod.volumes,
			Requests: []quantity.Amount{{Name: "pods", Value: 1}}})
	}
	want := map[string]int{"a": 1, "b": 1, "c": 2, zoneFlexible: 2, zoneNone: 1}
	if diff := cmp.Diff(want, pendingByZone(b.Snapshot(time.Unix(0, 0)))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestMeasureZones verifies that series of zones that no pod requires any more end, those of other zones remain, and
// none is missing while they are set.
func TestMeasureZones(t *testing.T) {
	p := &Reporter{Metrics: telemetry.New(prometheus.NewRegistry())}
	p.Metrics.SchedulerPendingByZone.WithLabelValues("other", "a").Set(7)
	p.measureZones(map[string]int{"a": 1, "b": 2})
	b := p.Metrics.SchedulerPendingByZone.WithLabelValues(provisioner, "b")
	p.measureZones(map[string]int{"b": 3, "c": 4})
	if b != p.Metrics.SchedulerPendingByZone.WithLabelValues(provisioner, "b") {
		t.Error("the series of a zone that remains was deleted and created again")
	}
	got := map[string]float64{"other a": testutil.ToFloat64(p.Metrics.SchedulerPendingByZone.WithLabelValues("other", "a"))}
	for _, zone := range []string{"b", "c"} {
		got[zone] = testutil.ToFloat64(p.Metrics.SchedulerPendingByZone.WithLabelValues(provisioner, zone))
	}
	if diff := cmp.Diff(map[string]float64{"other a": 7, "b": 3, "c": 4}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := testutil.CollectAndCount(p.Metrics.SchedulerPendingByZone); n != 3 {
		t.Errorf("%d series, want 3: no pod requires zone a any more", n)
	}
}
