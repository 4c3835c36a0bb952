package explain

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestShortage covers pods for which the cloud has no capacity: the text names the refused offerings that the pods
// could use, and no others.
func TestShortage(t *testing.T) {
	at := time.Date(2026, 1, 1, 20, 49, 0, 0, time.UTC)
	in := func(key string, values ...string) label.Requirement {
		return label.Requirement{Key: key, Operator: label.In, Values: values}
	}
	amounts := func(cpu int64) []quantity.Amount {
		return []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "memory", Value: 64 * gi}, {Name: "pods", Value: 110}}
	}
	refused := func(zone, capacityType string, after time.Duration) model.Offering {
		return model.Offering{Zone: zone, CapacityType: capacityType, Price: 1, RefusedAt: at.Add(after), RetryAt: at.Add(after + 3*time.Minute)}
	}
	interrupted := func(zone string, times int) model.Offering {
		o := refused(zone, "spot", time.Hour)
		o.Interruptions = times
		return o
	}
	one := func(name string, cpu int64, offerings ...model.Offering) model.InstanceType {
		return model.InstanceType{Name: name, Capacity: amounts(cpu), Allocatable: amounts(cpu), Offerings: offerings,
			Requirements: []label.Requirement{in(model.LabelType, name)}}
	}
	catalog := &model.Catalog{WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true},
		Types: []model.InstanceType{
			one("m5.small", 1000, refused("a", "on-demand", 0)),
			one("m5.large", 2000, refused("a", "on-demand", 0), refused("a", "spot", time.Minute), refused("b", "on-demand", 2*time.Minute)),
			one("m5.xlarge", 4000, refused("a", "on-demand", 0), model.Offering{Zone: "a", CapacityType: "spot"}), // without a price
			one("c5.large", 2000, refused("d", "spot",
				7*time.Minute)), // avoided for ten minutes, not refused
			one("i4i.large", 2000, interrupted("e", 3)),
			one("i4i.xlarge", 4000, interrupted("e", 2)),
			one("r5.large", 4000,
				model.Offering{Zone: "c", CapacityType: "on-demand", Price: 1, RetryAt: at.Add(time.Hour), ZoneShifted: true},
				model.Offering{Zone: "c", CapacityType: "spot", Price: 1, RetryAt: at.Add(time.Hour), ZoneShifted: true}),
		}}
	const end = ", and is asked again from 2026-01-01T20:52:00Z on"
	for _, c := range []struct {
		name      string
		pool, pod []label.Requirement
		code      plan.Code
		want      string
	}{
		{"one type in one zone", []label.Requirement{in(model.LabelZone, "a"), in(model.LabelCapacityType, "on-demand"), in(model.LabelType,
			"m5.large")}, nil, plan.NoOffering,
			"the cloud had no capacity for m5.large in a as on-demand at 2026-01-01T20:49:00Z" + end},
		{"the pod restricts the zone", []label.Requirement{in(model.LabelType, "m5.large")}, []label.Requirement{in(model.LabelZone, "b")},
			plan.NoOffering,
			"the cloud had no capacity for m5.large in b as on-demand at 2026-01-01T20:51:00Z, and is asked again from 2026-01-01T20:54:00Z on"},
		{"a type that is too small is not named", []label.Requirement{in(model.LabelZone, "a"), in(model.LabelCapacityType, "on-demand")},
			nil, plan.NoOffering,
			"the cloud had no capacity for m5.large in a as on-demand, m5.xlarge in a as on-demand at 2026-01-01T20:49:00Z" + end},
		{"many", nil, nil, plan.NoOffering,
			"traffic is shifted away from c; " +
				"the cloud had no capacity for m5.large in a as on-demand, m5.large in a as spot, m5.large in b as on-demand, 2 other offerings at " +
				"2026-01-01T20:51:00Z" + end + "; " +
				"i4i.large in e as spot is avoided until 2026-01-01T21:52:00Z after 3 interruptions; " +
				"i4i.xlarge in e as spot is avoided until 2026-01-01T21:52:00Z after 2 interruptions"},
		{"avoided for longer than a refusal holds", []label.Requirement{in(model.LabelZone, "d")}, nil, plan.NoOffering,
			"the cloud had no capacity for c5.large in d as spot at 2026-01-01T20:51:00Z, and is asked again from 2026-01-01T20:59:00Z on"},
		{"interrupted repeatedly", []label.Requirement{in(model.LabelZone, "e"), in(model.LabelType, "i4i.large", "i4i.xlarge")}, nil,
			plan.NoOffering, "i4i.large in e as spot is avoided until 2026-01-01T21:52:00Z after 3 interruptions; " +
				"i4i.xlarge in e as spot is avoided until 2026-01-01T21:52:00Z after 2 interruptions"},
		{"unavailable for another reason", []label.Requirement{in(model.LabelType, "m5.xlarge"), in(model.LabelCapacityType, "spot")}, nil,
			plan.NoOffering, ""},
		{"a shifted zone", []label.Requirement{in(model.LabelZone, "c")}, nil, plan.NoOffering, "traffic is shifted away from c"},
		{"another verdict", nil, nil, plan.NodeLimitReached, ""},
	} {
		b := model.NewBuilder()
		b.UpsertPool(model.PoolSpec{Name: "p", UID: "p", Catalog: catalog, Requirements: c.pool})
		pod := model.PodSpec{UID: "pod", Namespace: "app", Name: "pod", Requests: []quantity.Amount{{Name: "cpu", Value: 1500},
			{Name: "pods", Value: 1}}}
		if c.pod != nil {
			pod.Alternatives = [][]label.Requirement{c.pod}
		}
		b.UpsertPod(pod)
		snap := b.Snapshot(at.Add(2 * time.Minute)) // after the last refusal
		r := plan.Refusal{Pods: snap.Groups[0].Pods}
		if got := shortage(snap, r, &plan.PoolVerdict{Pool: "p", Verdict: plan.Verdict{Code: c.code}}); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestPodAndVolumesContradict checks that a verdict about the pod's own requirements has those of its volumes too.
func TestPodAndVolumesContradict(t *testing.T) {
	zone := func(value string) [][]label.Requirement {
		return [][]label.Requirement{{{Key: model.LabelZone, Operator: label.In, Values: []string{value}}}}
	}
	for _, c := range []struct {
		volumes [][]label.Requirement
		want    string
	}{
		{zone("b"), "the requirements of the pod and its volumes leave no value for label topology.kubernetes.io/zone (pod: In [a], " +
			"volumes: In [b])"},
		{nil, "the pod's own requirements leave no value for label topology.kubernetes.io/zone"},
	} {
		b := model.NewBuilder()
		b.UpsertPod(model.PodSpec{UID: "pod", Namespace: "app", Name: "pod", Alternatives: zone("a"), VolumeAlternatives: c.volumes})
		snap := b.Snapshot(time.Time{})
		key, _ := snap.Space.Lookup(model.LabelZone)
		r := plan.Refusal{Pods: snap.Groups[0].Pods, Verdict: plan.Verdict{Code: plan.PodContradiction, Key: key}}
		if got := Refusal(snap, r); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
