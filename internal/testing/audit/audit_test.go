package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/audit"
)

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const (
	keyArch = "kubernetes.io/arch"
	device  = "example.com/gpu"
	gi      = int64(1 << 30)
)

func in(key string, values ...string) label.Requirement {
	return label.Requirement{Key: key, Operator: label.In, Values: values}
}

func amounts(cpu, memory, pods int64) []quantity.Amount {
	return []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "memory", Value: memory}, {Name: "pods", Value: pods}}
}

func kind(name, arch string, cpus int64) model.InstanceType {
	t := model.InstanceType{Name: name, Capacity: amounts(cpus*1000, cpus*4*gi, 30), Allocatable: amounts(cpus*1000-100, cpus*4*gi-gi/2, 30),
		Requirements: []label.Requirement{in(model.LabelType, name), in(keyArch, arch)}}
	for i, zone := range []string{"a", "b"} {
		t.Offerings = append(t.Offerings, model.Offering{Zone: zone, CapacityType: "spot", Price: cpus*10_000_000 + int64(i), Available: true})
	}
	return t
}

// world returns a snapshot with two pools, one of them tainted and limited; an existing node, a node that is being
// removed and a node in flight; a daemon; and pods, one of which cannot be converted.
func world() *model.Snapshot {
	gpu := kind("gpu-8", "amd64", 8)
	gpu.Special = true
	gpu.Capacity, gpu.Allocatable = append(gpu.Capacity, quantity.Amount{Name: device, Value: 1}), append(gpu.Allocatable, quantity.Amount{Name: device, Value: 1})
	c := &model.Catalog{WellKnown: map[string]bool{model.LabelPool: true, model.LabelCapacityType: true, model.LabelZone: true, model.LabelType: true, keyArch: true},
		Types: []model.InstanceType{kind("amd-2", "amd64", 2), kind("amd-4", "amd64", 4), kind("amd-16", "amd64", 16), kind("arm-4", "arm64", 4), gpu}}
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "plain", UID: "uid-plain", Weight: 1, Catalog: c,
		Requirements: []label.Requirement{in(model.LabelPool, "plain"), in("team", "red", "blue"), in(model.LabelZone, "a")}})
	b.UpsertPool(model.PoolSpec{Name: "tainted", UID: "uid-tainted", Catalog: c, Requirements: []label.Requirement{in(model.LabelPool, "tainted")},
		Taints: []model.Taint{{Key: "dedicated", Effect: model.NoSchedule}},
		Limits: []quantity.Amount{{Name: "cpu", Value: 20_000}, {Name: model.ResourceNodes, Value: 3}}})
	b.UpsertDaemon(model.DaemonSpec{UID: "agent", Name: "agent", Requests: amounts(200, gi/4, 1), Tolerations: []model.Toleration{{Exists: true}}})
	labels := map[string]string{keyArch: "amd64", model.LabelZone: "b", model.LabelType: "amd-4", model.LabelCapacityType: "spot"}
	b.UpsertNode(model.NodeSpec{Name: "old", Stage: model.Initialized, Labels: labels, Capacity: amounts(4000, 16*gi, 30), Allocatable: amounts(3900, 15*gi, 30)})
	b.UpsertNode(model.NodeSpec{Name: "leaving", Stage: model.Initialized, Deleting: true, Labels: labels, Capacity: amounts(4000, 16*gi, 30), Allocatable: amounts(3900, 15*gi, 30)})
	b.UpsertNode(model.NodeSpec{Name: "inflight", Claim: "inflight", Pool: "tainted", Stage: model.Launching, Taints: []model.Taint{{Key: "dedicated", Effect: model.NoSchedule}},
		Labels: map[string]string{model.LabelPool: "tainted"}, Requests: amounts(3000, gi, 3),
		Requirements: []label.Requirement{in(model.LabelPool, "tainted"), in(keyArch, "amd64"), in(model.LabelType, "amd-4", "amd-16")}})
	pod := func(name string, cpu int64, change func(*model.PodSpec)) {
		p := model.PodSpec{UID: name, Name: name, Namespace: "default", Created: epoch, Requests: amounts(cpu, gi, 1), Reschedulable: true}
		if change != nil {
			change(&p)
		}
		b.UpsertPod(p)
	}
	pod("bound", 3000, func(p *model.PodSpec) { p.State, p.Node = model.Bound, "old" })
	pod("small", 800, func(p *model.PodSpec) {
		p.Alternatives = [][]label.Requirement{{{Key: model.LabelZone, Operator: label.NotIn, Values: []string{"z"}}}}
	})
	for i := range 4 {
		pod(fmt.Sprintf("web-%d", i), 1500, func(p *model.PodSpec) {
			p.Alternatives = [][]label.Requirement{{in("team", "red"), in(keyArch, "amd64")}}
		})
	}
	pod("tolerant", 3500, func(p *model.PodSpec) {
		p.Tolerations = []model.Toleration{{Key: "dedicated", Exists: true}}
		p.Alternatives = [][]label.Requirement{{in(model.LabelPool, "tainted"), in(model.LabelType, "amd-4", "amd-16")}}
	})
	pod("odd", 100, func(p *model.PodSpec) { p.Rejected = &model.Rejection{Reason: "is odd"} })
	pod("huge", 90_000, nil)
	return b.Snapshot(epoch)
}

// good returns a snapshot and a correct plan that contains claims, placements and refusals.
func good(t *testing.T) (*model.Snapshot, *plan.Provision) {
	t.Helper()
	snap := world()
	p := placement.Schedule(snap, placement.Options{})
	if problems := audit.Provision(snap, p); len(problems) > 0 {
		t.Fatalf("the initial plan has problems: %v", problems)
	}
	switch {
	case len(p.Claims) < 1:
		t.Fatalf("the plan has no claims: %+v", p)
	case len(p.Placed) < 2:
		t.Fatalf("the plan has %d placements, want at least 2: %+v", len(p.Placed), p)
	case len(p.Refused) < 2:
		t.Fatalf("the plan has %d refusals, want at least 2: %+v", len(p.Refused), p)
	}
	return snap, p
}

// mutation breaks a good plan, and has the problem that the judge must report.
type mutation struct {
	name   string
	mutate func(snap *model.Snapshot, p *plan.Provision)
	want   string
}

func (m mutation) check(t *testing.T) {
	snap, p := good(t)
	m.mutate(snap, p)
	problems := audit.Provision(snap, p)
	if !slices.ContainsFunc(problems, func(p audit.Problem) bool { return strings.HasPrefix(p.String(), m.want) }) {
		t.Errorf("want problem %q, got %v", m.want, problems)
	}
}

// replace replaces the requirements of a claim on a key.
func replace(c *plan.NewClaim, key string, with ...label.Requirement) {
	c.Requirements = slices.DeleteFunc(slices.Clone(c.Requirements), func(r label.Requirement) bool { return r.Key == key })
	c.Requirements = append(c.Requirements, with...)
}

// find returns the pending pod of the name.
func find(snap *model.Snapshot, name string) []*model.Pod {
	for _, g := range snap.Groups {
		for _, p := range g.Pods {
			if p.Name == name {
				return []*model.Pod{p}
			}
		}
	}
	return nil
}

func TestMutatedPlacements(t *testing.T) {
	for _, c := range []mutation{
		{"a pod is forgotten", func(_ *model.Snapshot, p *plan.Provision) { p.Claims[0].Pods = p.Claims[0].Pods[1:] }, "answers default/"},
		{"a pod is placed twice", func(_ *model.Snapshot, p *plan.Provision) {
			p.Placed = append(p.Placed, plan.Placement{Node: "inflight", Pods: p.Claims[0].Pods[:1]})
		}, "answers default/web"},
		{"an unknown pod", func(_ *model.Snapshot, p *plan.Provision) {
			p.Refused[0].Pods = append(slices.Clone(p.Refused[0].Pods), &model.Pod{Shape: &model.Shape{}, UID: "unknown"})
		}, "stranger"},
		{"a pod that was set aside is placed", func(snap *model.Snapshot, p *plan.Provision) {
			p.Refused = slices.DeleteFunc(p.Refused, func(r plan.Refusal) bool { return r.Pods[0].Name == "odd" })
			p.Placed[0].Pods = append(slices.Clone(p.Placed[0].Pods), snap.Rejected[0])
		}, "rejected default/odd"},
		{"a refusal without reasons", func(_ *model.Snapshot, p *plan.Provision) {
			p.Refused[len(p.Refused)-1].Pools, p.Refused[len(p.Refused)-1].Verdict = nil, plan.Verdict{}
		}, "reason default/"},
		{"a node that leaves", func(_ *model.Snapshot, p *plan.Provision) { p.Placed[0].Node = "leaving" }, "leaving leaving"},
		{"a node that is not there", func(_ *model.Snapshot, p *plan.Provision) { p.Placed[0].Node = "ghost" }, "node ghost"},
		{"a full node", func(snap *model.Snapshot, p *plan.Provision) {
			p.Placed = append(p.Placed, plan.Placement{Node: "old", Pods: find(snap, "huge")})
		}, "resources old"},
		{"a label the node lacks", func(snap *model.Snapshot, p *plan.Provision) {
			p.Placed = append(p.Placed, plan.Placement{Node: "old", Pods: find(snap, "web-0")})
		}, "labels old"},
		{"a taint on a claim in flight", func(snap *model.Snapshot, p *plan.Provision) {
			p.Placed = append(p.Placed, plan.Placement{Node: "inflight", Pods: find(snap, "small")})
		}, "taint inflight"},
		{"no room beside the daemons of a claim in flight", func(snap *model.Snapshot, p *plan.Provision) {
			at := slices.IndexFunc(p.Placed, func(n plan.Placement) bool { return n.Node == "inflight" })
			p.Placed[at].Pods = append(slices.Clone(p.Placed[at].Pods), find(snap, "small")...)
		}, "resources inflight as amd-4"},
		{"a label that one outcome of a claim in flight lacks", func(snap *model.Snapshot, p *plan.Provision) {
			p.Placed = append(p.Placed, plan.Placement{Node: "inflight", Pods: find(snap, "web-0")})
		}, "labels inflight"},
	} {
		t.Run(c.name, c.check)
	}
}

func TestMutatedClaims(t *testing.T) {
	for _, c := range []mutation{
		{"a name twice", func(_ *model.Snapshot, p *plan.Provision) { p.Claims = append(p.Claims, p.Claims[0]) }, "name plain-"},
		{"a name that is taken", func(_ *model.Snapshot, p *plan.Provision) { p.Claims[0].Name = "inflight" }, "name inflight"},
		{"another pool of the name", func(_ *model.Snapshot, p *plan.Provision) { p.Claims[0].PoolUID = "other" }, "pool plain-"},
		{"a pool's taint", func(_ *model.Snapshot, p *plan.Provision) {
			p.Claims[0].Pool, p.Claims[0].PoolUID = "tainted", "uid-tainted"
		}, "taint plain-"},
		{"a pool's requirement", func(_ *model.Snapshot, p *plan.Provision) { replace(&p.Claims[0], model.LabelZone) }, "pool plain-"},
		{"a zone beyond the pool's", func(_ *model.Snapshot, p *plan.Provision) {
			replace(&p.Claims[0], model.LabelZone, in(model.LabelZone, "a", "b"))
		}, "pool plain-"},
		{"a pod's requirement is not the claim's", func(_ *model.Snapshot, p *plan.Provision) {
			replace(&p.Claims[0], keyArch)
			replace(&p.Claims[0], model.LabelType, in(model.LabelType, "amd-4", "arm-4"))
			p.Claims[0].Options = []plan.Option{{Type: "amd-4", Zone: "a", CapacityType: "spot", Price: 40_000_000}, {Type: "arm-4", Zone: "a", CapacityType: "spot", Price: 40_000_000}}
		}, "labels plain-"},
		{"a custom label without a value", func(_ *model.Snapshot, p *plan.Provision) { p.Claims[0].Labels = nil; replace(&p.Claims[0], "team") }, "pool plain-"},
		{"a custom label with the wrong value", func(_ *model.Snapshot, p *plan.Provision) {
			p.Claims[0].Labels = map[string]string{"team": "blue"}
			replace(&p.Claims[0], "team")
		}, "labels plain-"},
		{"a type that is too small", func(_ *model.Snapshot, p *plan.Provision) {
			p.Claims[0].Requests = nil
			replace(&p.Claims[0], model.LabelType, in(model.LabelType, "amd-2"))
			p.Claims[0].Options = []plan.Option{{Type: "amd-2", Zone: "a", CapacityType: "spot", Price: 20_000_000}}
		}, "resources plain-"},
		{"an option that is not required", func(_ *model.Snapshot, p *plan.Provision) {
			p.Claims[0].Options = append(slices.Clone(p.Claims[0].Options), plan.Option{Type: "arm-4", Zone: "a", CapacityType: "spot", Price: 1 << 50})
		}, "options plain-"},
		{"an option that is no available offering", func(_ *model.Snapshot, p *plan.Provision) { p.Claims[0].Options[0].Zone = "c" }, "offering plain-"},
		{"a price that is not true", func(_ *model.Snapshot, p *plan.Provision) {
			for i := range p.Claims[0].Options {
				p.Claims[0].Options[i].Price += 5
			}
		}, "price plain-"},
		{"dearest first", func(_ *model.Snapshot, p *plan.Provision) {
			o := p.Claims[0].Options
			slices.Reverse(o)
			var names []string
			for i := range o {
				names = append(names, o[i].Type)
			}
			replace(&p.Claims[0], model.LabelType, in(model.LabelType, names...))
		}, "options plain-"},
		{"requests that are too small", func(_ *model.Snapshot, p *plan.Provision) { p.Claims[0].Requests = amounts(100, gi, 1) }, "requests plain-"},
		{"requests that are too large", func(_ *model.Snapshot, p *plan.Provision) { p.Claims[0].Requests[0].Value += 250 }, "requests plain-"},
		{"a claim for no pod", func(_ *model.Snapshot, p *plan.Provision) { p.Claims[0].Pods = nil }, "empty plain-"},
		{"a special type", func(_ *model.Snapshot, p *plan.Provision) {
			replace(&p.Claims[0], model.LabelType, in(model.LabelType, "gpu-8"))
			p.Claims[0].Options = []plan.Option{{Type: "gpu-8", Zone: "a", CapacityType: "spot", Price: 80_000_000}}
		}, "special plain-"},
		{"the limit of nodes", func(snap *model.Snapshot, p *plan.Provision) {
			for i := range 3 {
				p.Claims = append(p.Claims, small(fmt.Sprintf("tainted-%d", i), "amd-2", 20_000_000))
			}
		}, "limit tainted: may have 3 nodes"},
		{"the limit of cpu", func(snap *model.Snapshot, p *plan.Provision) {
			p.Claims = append(p.Claims, small("tainted-0", "amd-2", 20_000_000), small("tainted-1", "amd-4", 40_000_000))
		}, "limit tainted: may have 20000 of cpu"},
	} {
		t.Run(c.name, c.check)
	}
}

// small returns a claim of the tainted pool without pods. Only its size matters.
func small(name, kind string, price int64) plan.NewClaim {
	return plan.NewClaim{Name: name, Pool: "tainted", PoolUID: "uid-tainted", Options: []plan.Option{{Type: kind, Zone: "a", CapacityType: "spot", Price: price}},
		Requirements: []label.Requirement{in(model.LabelPool, "tainted"), in(model.LabelType, kind)}}
}

func TestBlockedPool(t *testing.T) {
	snap, p := good(t)
	for _, pool := range snap.Pools {
		pool.PoolSpec.Blocked = &model.Rejection{Reason: "is not ready"}
	}
	if problems := audit.Provision(snap, p); len(problems) == 0 || problems[0].Kind != "blocked" {
		t.Errorf("got problems %v, want the first of kind \"blocked\"", problems)
	}
}

// TestTenThousandPods audits a plan of the largest size that audits are meant for.
func TestTenThousandPods(t *testing.T) {
	b := model.NewBuilder()
	c := &model.Catalog{WellKnown: map[string]bool{model.LabelPool: true, model.LabelCapacityType: true, model.LabelZone: true, model.LabelType: true, keyArch: true}}
	for i := range 200 {
		c.Types = append(c.Types, kind(fmt.Sprintf("t-%d", i), "amd64", int64(2+i%30)))
	}
	b.UpsertPool(model.PoolSpec{Name: "plain", UID: "uid", Catalog: c, Requirements: []label.Requirement{in(model.LabelPool, "plain")}})
	for i := range 10_000 {
		b.UpsertPod(model.PodSpec{UID: fmt.Sprint(i), Name: fmt.Sprint(i), Requests: amounts(int64(100+i%50*10), gi/2, 1)})
	}
	snap := b.Snapshot(epoch)
	p := placement.Schedule(snap, placement.Options{})
	if problems := audit.Provision(snap, p); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	p.Claims[len(p.Claims)/2].Pods = nil
	if problems := audit.Provision(snap, p); len(problems) == 0 {
		t.Fatal("the audit did not report a claim without pods")
	}
}
