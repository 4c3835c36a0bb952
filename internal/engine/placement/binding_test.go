package placement_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/audit"
)

// TestPlansWhilePodsAreBound repeats the plan while the pods of the first plan are bound, in its order, to the launched
// nodes: no placed pod gets another new node.
func TestPlansWhilePodsAreBound(t *testing.T) {
	for seed := range uint64(*worlds) {
		for _, kind := range []uint8{rich, foreign} {
			t.Run(fmt.Sprintf("%d/%d", seed, kind), func(t *testing.T) { bindStepByStep(t, seed, kind) })
		}
	}
}

func bindStepByStep(t *testing.T, seed uint64, kind uint8) {
	w := diceOf(seed, kind).world()
	first := placement.Schedule(w.snapshot(nil), placement.Options{})
	chance := rand.New(rand.NewPCG(seed, 4))
	w.nodes = slices.Clone(w.nodes)
	for _, c := range first.Claims {
		w.nodes = append(w.nodes, w.running(c))
	}
	assignments := map[string]string{}
	for name, pods := range nominate.TargetsOf(first) {
		for _, p := range pods {
			assignments[p.UID] = name
		}
	}
	if !carriedOut(w.snapshot(nil), first) {
		t.Skip("the launched nodes have labels that the pods do not accept: here well-known labels have any value")
	}
	last := first
	for i, p := range first.Order {
		w = w.bound(p.UID, assignments[p.UID])
		if chance.IntN(max(1, len(first.Order)/3)) > 0 {
			continue
		}
		w = w.nominated(w.snapshot(nil), last)
		snap := keeping(w.snapshot(nil), last)
		next := placement.Schedule(snap, placement.Options{})
		check(t, snap, next)
		if boughtAgain(first, next) > 0 {
			t.Fatalf("seed %d: with %d of %d pods bound more nodes are launched:\n%s\nafter\n%s", seed, i+1, len(first.Order), explain.Provision(snap, next), explain.Provision(snap, last))
		}
		last = next
	}
}

// carriedOut reports whether the pods of the plan can be bound once its claims are nodes.
func carriedOut(snap *model.Snapshot, first *plan.Provision) bool {
	now := &plan.Provision{Refused: first.Refused, Order: first.Order}
	targets := nominate.TargetsOf(first)
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		now.Placed = append(now.Placed, plan.Placement{Node: name, Pods: targets[name]})
	}
	return !slices.ContainsFunc(audit.Provision(snap, now), func(p audit.Problem) bool { return p.Kind != "answers" && p.Kind != "stranger" })
}

// bound returns the world with the pod on the node.
func (w world) bound(uid, node string) world {
	w.pods = slices.Clone(w.pods)
	for i := range w.pods {
		if p := &w.pods[i]; p.UID == uid {
			p.State, p.Node, p.Nominated = model.Bound, node, ""
		}
	}
	return w
}

// running returns the node of a claim that became its cheapest type, as kube-scheduler sees it.
func (w world) running(c plan.NewClaim) model.NodeSpec {
	pool := w.pools[slices.IndexFunc(w.pools, func(p model.PoolSpec) bool { return p.Name == c.Pool })]
	n := inFlight(c, pool)
	option := c.Options[0]
	types := pool.Catalog.Types
	kind := types[slices.IndexFunc(types, func(k model.InstanceType) bool { return k.Name == option.Type })]
	n.Labels = maps.Clone(n.Labels)
	wanted := map[string][]string{}
	for _, r := range c.Requirements {
		switch bound, _ := strconv.Atoi(slices.Concat(r.Values, []string{""})[0]); r.Operator {
		case label.In:
			wanted[r.Key] = r.Values
		case label.Exists:
			wanted[r.Key] = []string{"there"}
		case label.Gt, label.Gte:
			wanted[r.Key] = []string{strconv.Itoa(bound + 1)}
		case label.Lt, label.Lte:
			wanted[r.Key] = []string{strconv.Itoa(bound - 1)}
		}
	}
	take := func(requirements []label.Requirement) {
		for _, r := range requirements {
			if r.Operator != label.In {
				continue
			}
			n.Labels[r.Key] = r.Values[0]
			for _, v := range r.Values {
				if slices.Contains(wanted[r.Key], v) {
					n.Labels[r.Key] = v
				}
			}
		}
	}
	take(kind.Requirements)
	for _, o := range kind.Offerings {
		if o.Zone == option.Zone && o.CapacityType == option.CapacityType && o.Available {
			take(o.Requirements)
		}
	}
	for key, values := range wanted { // the provider sets labels that its types do not list
		if _, has := n.Labels[key]; !has {
			n.Labels[key] = slices.Min(values)
		}
	}
	n.Labels[model.LabelZone], n.Labels[model.LabelCapacityType], n.Labels[model.LabelHostname] = option.Zone, option.CapacityType, n.Name
	n.Capacity, n.Allocatable = kind.Capacity, kind.Allocatable
	n.Stage, n.Ready, n.LaunchedFor, n.Requirements, n.Requests = model.Initialized, true, nil, nil, nil
	return n
}
