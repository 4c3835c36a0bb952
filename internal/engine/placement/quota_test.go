package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

const gpu = "nvidia.com/gpu"

// quotaWorld has a pool with types of 4 CPUs at 2 USD per hour, in two zones, of which b is dearer, and a pool of
// nodes with a GPU and the label gpu=true. Each plain pod takes a whole node, and so does each pod with a GPU.
func quotaWorld(plain, gpus int, nodes []model.NodeSpec, limits []quantity.Amount, quotas ...model.QuotaSpec) *model.Snapshot {
	in := func(key string, values ...string) label.Requirement {
		return label.Requirement{Key: key, Operator: label.In, Values: values}
	}
	catalog := func(name string, more ...quantity.Amount) *model.Catalog {
		size := append([]quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "memory", Value: 1 << 34}, {Name: "pods", Value: 10}}, more...)
		return &model.Catalog{WellKnown: map[string]bool{model.LabelPool: true, model.LabelCapacityType: true, model.LabelZone: true,
			model.LabelType: true},
			Types: []model.InstanceType{{Name: name, Capacity: size, Allocatable: size, Requirements: []label.Requirement{in(model.LabelType, name)},
				Special: len(more) > 0, Offerings: []model.Offering{
					{Zone: "a", CapacityType: "on-demand", Price: 2 * model.Nano, Available: true},
					{Zone: "b", CapacityType: "on-demand", Price: 3 * model.Nano, Available: true}}}}}
	}
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "plain", UID: "plain", Limits: limits, Catalog: catalog("m"),
		Requirements: []label.Requirement{in(model.LabelPool, "plain")}})
	b.UpsertPool(model.PoolSpec{Name: "gpu", UID: "gpu", Catalog: catalog("g", quantity.Amount{Name: gpu, Value: 4}),
		Requirements: []label.Requirement{in(model.LabelPool, "gpu"), in("gpu", "true")},
		Taints:       []model.Taint{{Key: gpu, Effect: model.NoSchedule}}})
	for _, n := range nodes {
		b.UpsertNode(n)
	}
	for i := range plain {
		name := fmt.Sprintf("plain-%02d", i)
		b.UpsertPod(model.PodSpec{UID: name, Namespace: "default", Name: name, Reschedulable: true,
			Requests: []quantity.Amount{{Name: "cpu", Value: 3000}}})
	}
	for i := range gpus {
		name := fmt.Sprintf("gpu-%02d", i)
		b.UpsertPod(model.PodSpec{UID: name, Namespace: "default", Name: name, Reschedulable: true,
			Requests:    []quantity.Amount{{Name: "cpu", Value: 3000}, {Name: gpu, Value: 4}},
			Tolerations: []model.Toleration{{Key: gpu, Exists: true}}})
	}
	for _, q := range quotas {
		b.UpsertQuota(q)
	}
	return b.Snapshot(epoch)
}

func nodesOf(pool string, n int) []model.NodeSpec {
	var nodes []model.NodeSpec
	for i := range n {
		name := fmt.Sprintf("node-%s-%d", pool, i)
		spec := model.NodeSpec{Name: name, UID: name, Stage: model.Initialized, Ready: true,
			Capacity: []quantity.Amount{{Name: "cpu", Value: 4000}},
			Labels:   map[string]string{model.LabelZone: "a", model.LabelType: "m", model.LabelCapacityType: "on-demand"}}
		if pool != "" {
			spec.Claim, spec.Pool, spec.Labels[model.LabelPool] = name, pool, pool
		}
		nodes = append(nodes, spec)
	}
	return nodes
}

// TestQuotas are the worked examples of quotas. The guard agrees with each plan, and the audit finds no fault.
func TestQuotas(t *testing.T) {
	one := func(name string, value int64) []quantity.Amount { return []quantity.Amount{{Name: name, Value: value}} }
	zoneA := []label.Requirement{{Key: model.LabelZone, Operator: label.In, Values: []string{"a"}}}
	gpus := []label.Requirement{{Key: "gpu", Operator: label.In, Values: []string{"true"}}}
	all := func(name string, limits []quantity.Amount) model.QuotaSpec {
		return model.QuotaSpec{Name: name, Limits: limits}
	}
	for name, c := range map[string]struct {
		plain, gpus int
		nodes       []model.NodeSpec
		limits      []quantity.Amount
		quotas      []model.QuotaSpec
		// want counts the claims by pool and zones. says is a part of the refusal of the rest.
		want map[string]int
		says string
	}{
		"none": {plain: 2, want: map[string]int{"plain a b": 2}},
		"CQ-1 nodes of everything": {plain: 1, nodes: append(nodesOf("plain", 8), nodesOf("", 2)...),
			quotas: []model.QuotaSpec{all("ten", one(model.ResourceNodes, 10))},
			want:   map[string]int{}, says: "CapacityQuota ten has 0 of nodes left"},
		"CQ-2 GPUs": {plain: 2, gpus: 3, quotas: []model.QuotaSpec{{Name: "gpus", Selector: gpus, Limits: one(gpu, 8)}},
			want: map[string]int{"plain a b": 2, "gpu a b": 2}, says: "CapacityQuota gpus has 0 of nvidia.com/gpu left"},
		"CQ-3 a zone": {plain: 3, quotas: []model.QuotaSpec{{Name: "a", Selector: zoneA, Limits: one("cpu", 4000)}},
			want: map[string]int{"plain a": 0, "plain b": 2, "plain a b": 1}},
		"CQ-4 dollars": {plain: 4, quotas: []model.QuotaSpec{all("money", one(model.ResourceUSD, 5*model.Nano))},
			want: map[string]int{"plain a": 1, "plain a b": 1}, says: "CapacityQuota money has 0 of karpenter-go.github.io/usd-per-hour left"},
		"CQ-4 dollars of a pool": {plain: 4, limits: one(model.ResourceUSD, 5*model.Nano), want: map[string]int{"plain a": 1, "plain a b": 1},
			says: "the limit has 0 of karpenter-go.github.io/usd-per-hour left"},
		"CQ-5 the tighter of two": {plain: 4, quotas: []model.QuotaSpec{all("loose", one(model.ResourceNodes, 3)),
			all("tight", one("cpu", 8000))},
			want: map[string]int{"plain a b": 2}, says: "CapacityQuota tight has 0 of cpu left"},
		"CQ-6 below the usage": {plain: 1, nodes: nodesOf("plain", 3), quotas: []model.QuotaSpec{all("low", one("cpu", 4000))},
			want: map[string]int{},
			says: "CapacityQuota low has 0 of cpu left"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.nodes {
				c.nodes[i].Allocatable = []quantity.Amount{{Name: "cpu", Value: 100}} // no room
			}
			snap := quotaWorld(c.plain, c.gpus, c.nodes, c.limits, c.quotas...)
			p := placement.Schedule(snap, placement.Options{})
			check(t, snap, p)
			got := map[string]int{}
			for i := range p.Claims {
				key := p.Claims[i].Pool
				for _, zone := range zonesOf(p.Claims[i].Requirements) {
					key += " " + zone
				}
				got[key]++
			}
			for key, n := range c.want {
				if n == 0 {
					delete(c.want, key)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("claims (-want +got):\n%s\n%s", diff, explain.Provision(snap, p))
			}
			if text := explain.Provision(snap, p); !strings.Contains(text, c.says) {
				t.Errorf("the plan does not say %q:\n%s", c.says, text)
			}
			if _, dropped := guard.CheckProvision(snap, p); len(dropped) > 0 {
				t.Errorf("the guard drops %+v", dropped)
			}
		})
	}
}

// TestQuotaOfOneTeam verifies that the offerings that were compared for the nodes of one label are not taken for those of
// another, of which a quota counts some.
func TestQuotaOfOneTeam(t *testing.T) {
	in := func(key string, values ...string) label.Requirement {
		return label.Requirement{Key: key, Operator: label.In, Values: values}
	}
	size := []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "memory", Value: 1 << 34}, {Name: "pods", Value: 10}}
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "p", UID: "p",
		Requirements: []label.Requirement{in(model.LabelPool, "p"), {Key: "team", Operator: label.Exists}},
		Catalog: &model.Catalog{WellKnown: map[string]bool{model.LabelPool: true, model.LabelCapacityType: true, model.LabelZone: true,
			model.LabelType: true},
			Types: []model.InstanceType{{Name: "m", Capacity: size, Allocatable: size, Requirements: []label.Requirement{in(model.LabelType, "m")},
				Offerings: []model.Offering{{Zone: "a", CapacityType: "on-demand", Price: 2 * model.Nano, Available: true},
					{Zone: "b", CapacityType: "on-demand", Price: 3 * model.Nano, Available: true}}}}}})
	for i, team := range []string{"b", "a", "a"} {
		name := fmt.Sprint("pod-", i)
		b.UpsertPod(model.PodSpec{UID: name, Namespace: "default", Name: name, Reschedulable: true,
			Alternatives: [][]label.Requirement{{in("team", team)}},
			Requests:     []quantity.Amount{{Name: "cpu", Value: int64(3900 - 100*i)}}})
	}
	b.UpsertQuota(model.QuotaSpec{Name: "q", Selector: []label.Requirement{in("team", "a"), in(model.LabelZone, "a")},
		Limits: []quantity.Amount{{Name: "cpu", Value: 4000}}})
	snap := b.Snapshot(epoch)
	p := placement.Schedule(snap, placement.Options{})
	check(t, snap, p)
	if len(p.Claims) != 3 {
		t.Errorf("%d claims, want one for each pod:\n%s", len(p.Claims), explain.Provision(snap, p))
	}
}

// zonesOf returns the zones that the requirements allow.
func zonesOf(reqs []label.Requirement) []string {
	for _, r := range reqs {
		if r.Key == model.LabelZone && r.Operator == label.In {
			return r.Values
		}
	}
	return []string{"a", "b"}
}

// quotas returns up to three quotas, each over all nodes or over one label.
func (d dice) quotas() []model.QuotaSpec {
	var list []model.QuotaSpec
	for i := range 1 + d.IntN(3) {
		q := model.QuotaSpec{Name: fmt.Sprint("quota-", i)}
		switch d.IntN(5) {
		case 0:
			q.Selector = []label.Requirement{in(model.LabelZone, d.some(zones...)...)}
		case 1:
			q.Selector = []label.Requirement{in(model.LabelCapacityType, "spot")}
		case 2:
			q.Selector = []label.Requirement{in(keyArch, "arm64"), in(model.LabelZone, d.one(zones...))}
		case 3:
			q.Selector = []label.Requirement{{Key: keyTeam, Operator: label.NotIn, Values: []string{"red"}}}
		}
		for name, most := range map[string]int64{"cpu": 60_000, model.ResourceNodes: 6, model.ResourceUSD: 3 * model.Nano} {
			q.Limits = append(q.Limits, quantity.Amount{Name: name, Value: most})
		}
		slices.SortFunc(q.Limits, func(a, b quantity.Amount) int { return strings.Compare(a.Name, b.Name) })
		for k := range q.Limits {
			q.Limits[k].Value = d.Int64N(q.Limits[k].Value)
		}
		q.Limits = q.Limits[d.IntN(3):]
		list = append(list, q)
	}
	return list
}
