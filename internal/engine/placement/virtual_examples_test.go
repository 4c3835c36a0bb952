package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// bufferWorld has one pool and one type of 2 CPUs, of which 1.9 are free, in the zones a, b and c.
func bufferWorld(limits ...quantity.Amount) world {
	known := map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true, "kubernetes.io/arch": true}
	catalog := &model.Catalog{WellKnown: known,
		Types: []model.InstanceType{{Name: "c-2x", Capacity: []quantity.Amount{{Name: "cpu", Value: 2000}, {Name: "pods", Value: 110}},
			Allocatable:  []quantity.Amount{{Name: "cpu", Value: 1900}, {Name: "pods", Value: 110}},
			Requirements: []label.Requirement{{Key: "kubernetes.io/arch", Operator: label.In, Values: []string{"amd64"}}}}}}
	for _, zone := range []string{"a", "b", "c"} {
		catalog.Types[0].Offerings = append(catalog.Types[0].Offerings,
			model.Offering{Zone: zone, CapacityType: "on-demand", Price: model.Nano / 10, Available: true})
	}
	return world{pools: []model.PoolSpec{{Name: "p", UID: "p", Catalog: catalog, Limits: limits}}}
}

// oneCPU is a pod of 1 CPU with the label app=web; virtual makes it one of a buffer.
func oneCPU(name string, virtual bool) model.PodSpec {
	p := model.PodSpec{UID: "uid-" + name, Namespace: "default", Name: name, Created: epoch, Labels: map[string]string{"app": "web"},
		Requests: []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "pods", Value: 1}}, Reschedulable: true}
	if virtual {
		p.Virtual, p.Priority, p.Controller = model.VirtualBuffer, -1<<31, model.Owner{Kind: "CapacityBuffer", Name: "spare", UID: "spare"}
	}
	return p
}

// with adds pods, each changed by the functions.
func (w world) with(count int, virtual bool, change ...func(*model.PodSpec)) world {
	w.pods = slices.Clone(w.pods)
	for i := range count {
		p := oneCPU(fmt.Sprintf("web-%d", i), false)
		if virtual {
			p = oneCPU(fmt.Sprintf("capacity-buffer-spare-%d", i), true)
		}
		for _, f := range change {
			f(&p)
		}
		w.pods = append(w.pods, p)
	}
	return w
}

// planned plans and audits the plan.
func (w world) planned(t *testing.T) (*model.Snapshot, *plan.Provision) {
	t.Helper()
	snap := w.snapshot(nil)
	p := placement.Schedule(snap, placement.Options{})
	check(t, snap, p)
	return snap, p
}

var webPods = model.Selector{Namespaces: []string{"default"},
	Requirements: []label.Requirement{{Key: "app", Operator: label.In, Values: []string{"web"}}}}

func apart(p *model.PodSpec) {
	p.Terms = []model.Term{{Key: model.LabelHostname, Anti: true, Selector: webPods}}
}

// TestBufferAtLimit checks CB-4: within a limit of 4 CPUs there are two nodes for three virtual pods, and no more once they
// are in flight; a pod takes the room and is not refused because of the limit.
func TestBufferAtLimit(t *testing.T) {
	w := bufferWorld(quantity.Amount{Name: "cpu", Value: 4000}).with(3, true)
	_, p := w.planned(t)
	if len(p.Virtual.Claims) != 2 || len(p.Virtual.Refused) != 1 || p.Virtual.Refused[0].Pools[0].Verdict.Code != plan.LimitReached {
		t.Fatalf("%d claims, refused %+v, want two, and one pod by the limit", len(p.Virtual.Claims), p.Virtual.Refused)
	}
	next := w.launching(p.Virtual.Claims)
	if _, q := next.planned(t); len(q.Virtual.Claims) != 0 {
		t.Errorf("with two in flight, %d more are launched", len(q.Virtual.Claims))
	}
	snap, q := next.with(1, false).planned(t)
	if len(q.Claims) != 0 || len(q.Refused) != 0 || len(q.Placed) != 1 || len(q.Virtual.Claims) != 0 {
		t.Errorf("a pod does not take the room:\n%s", explain.Provision(snap, q))
	}
}

// TestBufferApart checks CB-5: with anti-affinity by hostname, three virtual pods need three nodes, beside one pod four.
func TestBufferApart(t *testing.T) {
	if _, p := bufferWorld().with(3, true, apart).planned(t); len(p.Virtual.Claims) != 3 {
		t.Errorf("%d nodes, want three", len(p.Virtual.Claims))
	}
	small := func(p *model.PodSpec) { p.Requests[0].Value = 500 }
	_, p := bufferWorld().with(1, false, apart, small).with(3, true, apart, small).planned(t)
	if len(p.Claims) != 1 || len(p.Virtual.Claims) != 3 {
		t.Errorf("%d nodes for the pod and %d for room, want one and three", len(p.Claims), len(p.Virtual.Claims))
	}
}

// TestBufferSpread checks CB-6: virtual pods count the pods that exist, which do not count them.
func TestBufferSpread(t *testing.T) {
	spread := func(p *model.PodSpec) {
		p.Spread = []model.Spread{{Key: model.LabelZone, MaxSkew: 1, Selector: webPods}}
	}
	w := bufferWorld()
	for i, zone := range []string{"a", "b", "c"} {
		amounts := []quantity.Amount{{Name: "cpu", Value: 6000}, {Name: "pods", Value: 110}}
		name := fmt.Sprint("n", i)
		labels := map[string]string{model.LabelHostname: name, model.LabelZone: zone, model.LabelType: "c-2x"}
		w.nodes = append(w.nodes, model.NodeSpec{Name: name, UID: name, Stage: model.Initialized, Ready: true, Capacity: amounts,
			Allocatable: amounts, Labels: labels})
	}
	w = w.with(1, false, spread, func(p *model.PodSpec) { p.Node, p.State = "n0", model.Bound })
	_, p := w.with(3, true, spread).planned(t)
	perNode := map[string]int{}
	for _, placed := range p.Virtual.Placed {
		perNode[placed.Node] = len(placed.Pods)
	}
	if perNode["n1"] != 1 || perNode["n2"] != 1 || len(p.Virtual.Order) != 3 {
		t.Errorf("room by node %v, want one in b, one in c, and the third in any", perNode)
	}
	coming := func(p *model.PodSpec) { p.Name, p.UID = "new-"+p.Name, "new-"+p.UID }
	alone, without := w.with(3, false, spread, coming).planned(t)
	snap, beside := w.with(3, true, spread).with(3, false, spread, coming).planned(t)
	sameButVirtual(t, alone, without, snap, beside)
}

// TestBufferTaken checks CB-8: a pod that fits the room needs no node; one node is launched for the room, and none again.
func TestBufferTaken(t *testing.T) {
	w := bufferWorld().with(1, true)
	_, p := w.planned(t)
	w = w.launching(p.Virtual.Claims)
	w.nodes[0].LaunchedFor = nil
	w = w.with(1, false)
	snap, q := w.planned(t)
	if len(q.Claims) != 0 || len(q.Virtual.Claims) != 1 {
		t.Fatalf("%d nodes for the pod, %d for room, want none and one:\n%s", len(q.Claims), len(q.Virtual.Claims), explain.Provision(snap, q))
	}
	if _, r := w.launching(q.Virtual.Claims).planned(t); len(r.Claims)+len(r.Virtual.Claims) != 0 {
		t.Errorf("%d nodes are launched again", len(r.Claims)+len(r.Virtual.Claims))
	}
}

// TestBufferOfNoPool checks CB-9: no pool ever has nodes of the architecture, until one is added.
func TestBufferOfNoPool(t *testing.T) {
	arm := func(p *model.PodSpec) {
		p.Alternatives = [][]label.Requirement{{{Key: "kubernetes.io/arch", Operator: label.In, Values: []string{"arm64"}}}}
	}
	w := bufferWorld().with(1, true, arm)
	_, p := w.planned(t)
	var classes []plan.Class
	for _, pool := range p.Virtual.Refused[0].Pools {
		classes = append(classes, pool.Verdict.Code.Class())
	}
	if diff := cmp.Diff([]plan.Class{plan.NeverHere}, classes); diff != "" {
		t.Errorf("classes of refusals (-want +got):\n%s", diff)
	}
	other := bufferWorld().pools[0]
	other.Name, other.UID = "arm", "arm"
	other.Catalog.Types[0].Requirements[0].Values = []string{"arm64"}
	w.pools = append(w.pools, other)
	if _, p = w.planned(t); len(p.Virtual.Claims) != 1 {
		t.Errorf("%d nodes once a pool has them, want one", len(p.Virtual.Claims))
	}
}
