package guard_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		reason plan.Reason
		change func(*plantest.World)
		want   plan.Code
	}{
		"empty and quiet":       {plan.Empty, func(w *plantest.World) {}, plan.OK},
		"daemons do not matter": {plan.Empty, func(w *plantest.World) { w.Bind("daemon", "n0") }, plan.OK},
		"a pod":                 {plan.Empty, func(w *plantest.World) { w.Bind("web", "n0") }, plan.NodeBusy},
		"a cheap pod is a pod": {plan.Empty, func(w *plantest.World) {
			w.Bind("web", "n0")
			w.Pods[0].Priority, w.Pods[0].EvictionCost = -1<<30, -10000
		}, plan.NodeBusy},
		"a pod, drifted":   {plan.Drifted, func(w *plantest.World) { w.Bind("web", "n0"); w.Nodes["c0"].Drifted = "x" }, plan.OK},
		"not drifted":      {plan.Drifted, func(w *plantest.World) {}, plan.NodeNotDrifted},
		"a pod, expired":   {plan.Expired, func(w *plantest.World) { w.Bind("web", "n0") }, plan.OK},
		"gone":             {plan.Empty, func(w *plantest.World) { delete(w.Nodes, "c0") }, plan.NodeGone},
		"another node":     {plan.Empty, func(w *plantest.World) { w.Nodes["c0"].UID = "x" }, plan.NodeGone},
		"another claim":    {plan.Empty, func(w *plantest.World) { w.Nodes["c0"].ClaimUID = "x" }, plan.NodeGone},
		"deleting":         {plan.Empty, func(w *plantest.World) { w.Nodes["c0"].Deleting = true }, plan.NodeLeaving},
		"not initialized":  {plan.Empty, func(w *plantest.World) { w.Nodes["c0"].Stage = model.Registered }, plan.NodeNotReady},
		"other command":    {plan.Empty, func(w *plantest.World) { o := w.Command("c0", "c1"); w.Nodes["c0"].Command = o.Encode() }, plan.NodeTaken},
		"protected node":   {plan.Empty, func(w *plantest.World) { w.Nodes["c0"].DoNotDisrupt = true }, plan.NodeProtected},
		"protected daemon": {plan.Empty, func(w *plantest.World) { w.Bind("daemon", "n0"); w.Pods[0].ProtectedUntil = model.Forever }, plan.NodeProtected},
		"protection ended": {plan.Empty, func(w *plantest.World) { w.Bind("daemon", "n0"); w.Pods[0].ProtectedUntil = plantest.Noon }, plan.OK},
		"no drain without end": {plan.Drifted, func(w *plantest.World) {
			w.Bind("web", "n0")
			w.Pods[0].ProtectedUntil = model.Forever
			w.Nodes["c0"].Drifted = "x"
		}, plan.NodeProtected},
		"promised for a while": {plan.Empty, func(w *plantest.World) { w.Nodes["c0"].NominatedUntil = plantest.Noon.Add(time.Second) }, plan.NodeNominated},
		"promise ended":        {plan.Empty, func(w *plantest.World) { w.Nodes["c0"].NominatedUntil = plantest.Noon }, plan.OK},
		"nominated pod":        {plan.Empty, func(w *plantest.World) { w.Pend("web", "n0") }, plan.NodeNominated},
		"pool refused":         {plan.Empty, func(w *plantest.World) { w.Pools[0].Refused = &model.Rejection{Reason: "x"} }, plan.PoolRefused},
		"pool gone":            {plan.Empty, func(w *plantest.World) { w.Pools = nil }, plan.PoolGone},
		"never":                {plan.Empty, func(w *plantest.World) { w.Pools[0].ConsolidateAfter = -1 }, plan.PolicyForbids},
		"never, drifted":       {plan.Drifted, func(w *plantest.World) { w.Pools[0].ConsolidateAfter = -1; w.Nodes["c0"].Drifted = "x" }, plan.OK},
		"too young":            {plan.Empty, func(w *plantest.World) { w.Nodes["c0"].InitializedAt = plantest.Noon.Add(-29 * time.Second) }, plan.NodeTooYoung},
		"just old enough":      {plan.Empty, func(w *plantest.World) { w.Nodes["c0"].InitializedAt = plantest.Noon.Add(-30 * time.Second) }, plan.OK},
		"pod left lately":      {plan.Empty, func(w *plantest.World) { w.Nodes["c0"].LastPodEvent = plantest.Noon.Add(-time.Second) }, plan.NodeTooYoung},
		"policy":               {plan.Underutilized, func(w *plantest.World) {}, plan.PolicyForbids},
		"other policy":         {plan.Underutilized, func(w *plantest.World) { w.Pools[0].Policy = "Balanced" }, plan.OK},
		"price not known":      {plan.Underutilized, func(w *plantest.World) { w.Pools[0].Policy = "Balanced"; delete(w.Nodes["c0"].Labels, model.LabelZone) }, plan.PriceUnknown},
		"never, of policy":     {plan.Underutilized, func(w *plantest.World) { w.Pools[0].Policy = "Balanced"; w.Pools[0].ConsolidateAfter = -1 }, plan.PolicyForbids},
		"young, underutilized": {plan.Underutilized, func(w *plantest.World) { w.Pools[0].Policy = "Balanced"; w.Nodes["c0"].LastPodEvent = plantest.Noon }, plan.NodeTooYoung},
		"replacement of another command": {plan.Underutilized, func(w *plantest.World) {
			w.Pools[0].Policy = "Balanced"
			w.Bind("web", "n0")
			replace(w, "c0")
		}, plan.NodeNominated},
		"replacement of another command, drifted": {plan.Drifted, func(w *plantest.World) { w.Nodes["c0"].Drifted = "x"; replace(w, "c0") },
			plan.OK},
		"static, empty": {plan.Empty, func(w *plantest.World) { w.Pools[0].Static = true }, plan.NodeStatic},
		"static, underused": {plan.Underutilized, func(w *plantest.World) { w.Pools[0].Static, w.Pools[0].Policy = true, "Balanced" },
			plan.NodeStatic},
		"static, drifted":         {plan.Drifted, func(w *plantest.World) { w.Pools[0].Static = true; w.Nodes["c0"].Drifted = "x" }, plan.OK},
		"static, expired":         {plan.Expired, func(w *plantest.World) { w.Pools[0].Static = true }, plan.OK},
		"shifted, empty":          {plan.Empty, shiftFrom("z"), plan.ZoneShifted},
		"shifted, drifted":        {plan.Drifted, func(w *plantest.World) { w.Nodes["c0"].Drifted = "x"; shiftFrom("z")(w) }, plan.ZoneShifted},
		"shifted, expired":        {plan.Expired, shiftFrom("z"), plan.ZoneShifted},
		"another zone is shifted": {plan.Empty, shiftFrom("y"), plan.OK},
		"budget of no reason": {plan.Expired, func(w *plantest.World) {
			w.Pools[0].Budgets = []model.Budget{{Count: 0, Reasons: []string{"Drifted", "Empty", "Underutilized"}}}
		}, plan.OK},
		"budget of all":     {plan.Expired, func(w *plantest.World) { w.Pools[0].Budgets = []model.Budget{{Count: 0}} }, plan.BudgetExhausted},
		"budget zero":       {plan.Empty, func(w *plantest.World) { w.Pools[0].Budgets = []model.Budget{{Count: 0}} }, plan.BudgetExhausted},
		"budget of others":  {plan.Empty, func(w *plantest.World) { w.Pools[0].Budgets = []model.Budget{{Count: 0, Reasons: []string{"Drifted"}}} }, plan.OK},
		"budget sleeps":     {plan.Empty, func(w *plantest.World) { w.Pools[0].Budgets = []model.Budget{{Count: 0, Inactive: true}} }, plan.OK},
		"budget unreadable": {plan.Empty, func(w *plantest.World) { w.Pools[0].BudgetError = "schedule" }, plan.BudgetUnreadable},
		"itself not ready":  {plan.Empty, func(w *plantest.World) { w.Nodes["c0"].Ready = false; w.Pools[0].Budgets = []model.Budget{{Count: 1}} }, plan.OK},
		"another not ready": {plan.Empty, func(w *plantest.World) { w.Nodes["c1"].Ready = false; w.Pools[0].Budgets = []model.Budget{{Count: 1}} }, plan.BudgetExhausted},
		"another leaving": {plan.Empty, func(w *plantest.World) {
			w.Nodes["c1"].Deleting = true
			w.Pools[0].Budgets = []model.Budget{{Count: 1}}
		}, plan.BudgetExhausted},
		"another in a command": {plan.Empty, func(w *plantest.World) { w.Nodes["c1"].Command = "x"; w.Pools[0].Budgets = []model.Budget{{Count: 1}} }, plan.BudgetExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, 2)
			cmd := w.Command("c0")
			cmd.Reason = c.reason
			c.change(w)
			if got := guard.Check(w.Snapshot(), cmd); got.Code != c.want {
				t.Errorf("verdict %d on %q, want %d", got.Code, got.Node, c.want)
			}
		})
	}
}

// shiftFrom makes the catalog of the pool say that a zone is being avoided.
func shiftFrom(zone string) func(*plantest.World) {
	return func(w *plantest.World) {
		catalog := *w.Pools[0].Catalog
		catalog.Types = slices.Clone(catalog.Types)
		t := &catalog.Types[0]
		t.Offerings = append(slices.Clone(t.Offerings), model.Offering{Zone: "y", CapacityType: "on-demand", Price: model.Nano, Available: true})
		for i := range t.Offerings {
			if o := &t.Offerings[i]; o.Zone == zone {
				o.ZoneShifted, o.Available = true, false
			}
		}
		w.Pools[0].Catalog = &catalog
	}
}

// The percentage is rounded up, and the strictest of several budgets applies.
func TestAllowance(t *testing.T) {
	percent := func(p int64) model.Budget { return model.Budget{IsPercent: true, Percent: p} }
	for name, c := range map[string]struct {
		nodes, notReady int
		budgets         []model.Budget
		want            int64
	}{
		"5% of 10":              {10, 0, []model.Budget{percent(5)}, 1},
		"10% of 19":             {19, 0, []model.Budget{percent(10)}, 2},
		"10% of 19, one down":   {19, 1, []model.Budget{percent(10)}, 1},
		"10% of 19, three down": {19, 3, []model.Budget{percent(10)}, 0},
		"100%":                  {7, 0, []model.Budget{percent(100)}, 7},
		"none":                  {7, 0, nil, guard.Unlimited},
		"strictest":             {10, 0, []model.Budget{percent(50), {Count: 3}, {Count: 0, Inactive: true}, {Count: 1, Reasons: []string{"Drifted"}}}, 3},
		"no nodes":              {0, 0, []model.Budget{percent(10)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, c.nodes)
			w.Pools[0].Budgets = c.budgets
			for i := range c.notReady {
				w.Nodes["c"+string(rune('0'+i))].Ready = false
			}
			w.Add("young", "young").Stage = model.Registered // not counted
			if got := guard.New(w.Snapshot()).Allowance("p", plan.Empty).Remaining(); got != c.want {
				t.Errorf("%d nodes may be removed, want %d", got, c.want)
			}
		})
	}
}

// A node whose machine is being terminated counts neither in the total for percentages nor in Leaving.
func TestAllowanceWithoutTerminatingNodes(t *testing.T) {
	w := plantest.New(t, 12)
	w.Pools[0].Budgets = []model.Budget{{IsPercent: true, Percent: 10}}
	for _, claim := range []string{"c0", "c1"} {
		w.Nodes[claim].Deleting, w.Nodes[claim].Terminating = true, true
	}
	got := guard.New(w.Snapshot()).Allowance("p", plan.Empty)
	want := guard.Allowance{Total: 10, Leaving: 0, Allowed: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("allowance (-want +got):\n%s", diff)
	}
}

func milliCPU(amount int64) []quantity.Amount { return []quantity.Amount{{Name: "cpu", Value: amount}} }

// claimFor returns a claim of pool p for one pod.
func claimFor(name, pod string, types ...string) plan.NewClaim {
	c := plan.NewClaim{Name: name, Pool: "p", PoolUID: "pool-uid", Pods: []*model.Pod{{UID: "uid-" + pod, Name: pod, Shape: &model.Shape{}}}}
	for _, t := range types {
		c.Options = append(c.Options, plan.Option{Type: t})
	}
	return c
}

func TestCheckProvision(t *testing.T) {
	catalog := &model.Catalog{Types: []model.InstanceType{
		{Name: "small", Capacity: milliCPU(2000), Allocatable: milliCPU(2000)},
		{Name: "large", Capacity: milliCPU(4000), Allocatable: milliCPU(4000)},
	}}
	three := []plan.NewClaim{claimFor("x", "a", "small"), claimFor("y", "b", "small", "large"), claimFor("z", "c", "small")}
	for name, c := range map[string]struct {
		change func(*plantest.World)
		want   []guard.Dropped
	}{
		"unchanged": {func(w *plantest.World) {}, nil},
		"the largest type counts": {func(w *plantest.World) { w.Pools[0].Limits = milliCPU(4000 + 4000) }, // 4000 are in use
			[]guard.Dropped{{Claim: "y", Pool: "p", Verdict: plan.Verdict{Code: plan.LimitReached, Need: 4000, Have: 2000}}}},
		"number of nodes": {func(w *plantest.World) { w.Pools[0].Limits = []quantity.Amount{{Name: model.ResourceNodes, Value: 2}} },
			[]guard.Dropped{
				{Claim: "y", Pool: "p", Verdict: plan.Verdict{Code: plan.NodeLimitReached, Have: 2}},
				{Claim: "z", Pool: "p", Verdict: plan.Verdict{Code: plan.NodeLimitReached, Have: 2}},
			}},
		"created before a restart": {func(w *plantest.World) {
			w.Add("x", "x").Stage = model.Launched
			w.Pools[0].Limits = []quantity.Amount{{Name: model.ResourceNodes, Value: 4}}
		}, nil},
		"a claim of the name is being deleted": {func(w *plantest.World) { w.Add("x", "x").Deleting = true },
			[]guard.Dropped{{Claim: "x", Pool: "p", Verdict: plan.Verdict{Code: plan.NodeLeaving, Node: "x"}}}},
		"the pod no longer waits": {func(w *plantest.World) { w.Pods = w.Pods[1:] },
			[]guard.Dropped{{Claim: "x", Pool: "p", Verdict: plan.Verdict{Code: plan.PodGone}}}},
		"the pool was re-created": {func(w *plantest.World) { w.Pools[0].UID = "other" }, []guard.Dropped{
			{Claim: "x", Pool: "p", Verdict: plan.Verdict{Code: plan.PoolGone}},
			{Claim: "y", Pool: "p", Verdict: plan.Verdict{Code: plan.PoolGone}},
			{Claim: "z", Pool: "p", Verdict: plan.Verdict{Code: plan.PoolGone}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, 1)
			w.Pools[0].Catalog = catalog
			for _, pod := range []string{"a", "b", "c"} {
				w.Pend(pod, "")
			}
			c.change(w)
			before := &plan.Provision{Claims: three, Placed: []plan.Placement{{Node: "n0", Pods: three[0].Pods}, {Node: "gone", Pods: three[1].Pods}}}
			kept, dropped := guard.CheckProvision(w.Snapshot(), before)
			if diff := cmp.Diff(c.want, dropped); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
			if len(kept.Claims)+len(dropped) != len(three) {
				t.Errorf("%d kept and %d dropped of %d", len(kept.Claims), len(dropped), len(three))
			}
			last := *before // the claims for virtual pods come last, within the same limits
			last.Claims, last.Virtual = three[:2], &plan.Provision{Claims: three[2:]}
			kept, dropped = guard.CheckProvision(w.Snapshot(), &last)
			if diff := cmp.Diff(c.want, dropped); diff != "" || len(kept.AllClaims())+len(dropped) != len(three) {
				t.Errorf("%d claims kept; dropped of a plan with virtual pods (-want +got):\n%s", len(kept.AllClaims()), diff)
			}
			for _, p := range kept.Placed {
				if p.Node == "gone" {
					t.Error("pods are placed on a node that is gone")
				}
			}
		})
	}
}

func TestCheckProvisionChangedPool(t *testing.T) {
	for generation, want := range map[int64]int{1: 0, 2: 1} {
		w := plantest.New(t, 0)
		w.Pend("a", "")
		w.Pools[0].Generation = 1
		decided := &plan.Provision{Claims: []plan.NewClaim{claimFor("x", "a", "small")}}
		decided.Stamp(w.Snapshot())
		w.Pools[0].Generation = generation
		if _, dropped := guard.CheckProvision(w.Snapshot(), decided); len(dropped) != want {
			t.Errorf("generation %d: dropped %+v, want %d", generation, dropped, want)
		}
	}
}

func TestCheckProvisionBlockedPool(t *testing.T) {
	w := plantest.New(t, 0)
	blocked := &model.Rejection{Field: "status", Reason: "not ready"}
	w.Pools[0].Blocked = blocked
	_, dropped := guard.CheckProvision(w.Snapshot(), &plan.Provision{Claims: []plan.NewClaim{claimFor("x", "a", "small")}})
	want := []guard.Dropped{{Claim: "x", Pool: "p", Verdict: plan.Verdict{Code: plan.PoolBlocked, Rejection: blocked}}}
	if diff := cmp.Diff(want, dropped); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
}

// TestCheckProvisionOfReplicas: a claim for a virtual pod of a workload is created although a pod has taken the place of
// the virtual one meanwhile. It is not created when the workload asks for no more pods.
func TestCheckProvisionOfReplicas(t *testing.T) {
	claim := claimFor("x", "virtual", "small")
	claim.Pods[0].Virtual, claim.Pods[0].Controller = model.VirtualReplica, model.Owner{Kind: "ReplicaSet", Name: "web", UID: "web"}
	for owner, want := range map[string]int{"web": 0, "other": 1} {
		w := plantest.New(t, 1)
		w.Pools[0].Catalog = &model.Catalog{Types: []model.InstanceType{{Name: "small", Capacity: milliCPU(4000),
			Offerings: []model.Offering{{}}}}}
		w.Pend("real", "")
		w.Pods[len(w.Pods)-1].Controller = model.Owner{Kind: "ReplicaSet", Name: owner, UID: owner}
		kept, dropped := guard.CheckProvision(w.Snapshot(), &plan.Provision{Claims: []plan.NewClaim{claim}})
		if len(dropped) != want || len(kept.Claims) != 1-want {
			t.Errorf("with a pod of %s, %d claims are dropped and %d kept, want %d dropped: %v",
				owner, len(dropped), len(kept.Claims), want, dropped)
		}
	}
}

// replace begins a command on c1 whose replacement is the claim.
func replace(w *plantest.World, claim string) {
	cmd := w.Command("c1")
	cmd.Phase, cmd.Replacements = plan.Launching, []plan.NewClaim{{Name: claim, Pool: "p"}}
	w.Nodes["c1"].Command = cmd.Encode()
}
