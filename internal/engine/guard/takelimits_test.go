package guard_test

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// launching steps a command for two drifted nodes, with one replacement of type t, to the launch. Then change modifies
// the world.
func launching(t *testing.T, change func(*plantest.World, *plan.NewClaim)) (plan.Command, []plan.Action) {
	t.Helper()
	w := plantest.New(t, 2)
	w.Pools[0].Generation = 1
	cmd := replacing(w)
	cmd.Replacements[0].PoolGeneration = 1
	cmd.Replacements[0].Requirements = []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: []string{"t"}}}
	for cmd.Phase != plan.Cordoned {
		var actions []plan.Action
		cmd, actions = guard.Step(w.Snapshot(), cmd)
		for _, a := range actions {
			w.Do(a)
		}
	}
	again, err := plan.DecodeCommand(cmd.Encode()) // another process continues
	if err != nil {
		t.Fatal(err)
	}
	w.Now = w.Now.Add(2 * time.Second)
	change(w, &again.Replacements[0])
	return guard.Step(w.Snapshot(), again)
}

// An older decision is launched only if its pool still allows it.
func TestReplacementsKeepToTheirPool(t *testing.T) {
	limit := func(name string, value int64) func(*plantest.World, *plan.NewClaim) {
		return func(w *plantest.World, _ *plan.NewClaim) {
			w.Pools[0].Limits = []quantity.Amount{{Name: name, Value: value}}
		}
	}
	bare := func(value int64) func(*plantest.World, *plan.NewClaim) {
		return func(w *plantest.World, r *plan.NewClaim) {
			r.Requirements = nil
			w.Pools[0].Static, w.Pools[0].Blocked = true, model.StaticBlock()
			limit(model.ResourceNodes, value)(w, r)
		}
	}
	for name, c := range map[string]struct {
		change func(*plantest.World, *plan.NewClaim)
		want   plan.Code
	}{
		"nothing has changed":     {func(*plantest.World, *plan.NewClaim) {}, plan.OK},
		"room for one more":       {limit("cpu", 12000), plan.OK},
		"used up meanwhile":       {limit("cpu", 11999), plan.LimitReached},
		"one more node":           {limit(model.ResourceNodes, 3), plan.OK},
		"no more nodes":           {limit(model.ResourceNodes, 2), plan.NodeLimitReached},
		"static, one more node":   {bare(3), plan.OK},
		"static, no more nodes":   {bare(2), plan.NodeLimitReached},
		"the pool is not ready":   {func(w *plantest.World, _ *plan.NewClaim) { w.Pools[0].Blocked = &model.Rejection{Reason: "not ready"} }, plan.PoolBlocked},
		"the pool has changed":    {func(w *plantest.World, _ *plan.NewClaim) { w.Pools[0].Generation = 2 }, plan.PoolBlocked},
		"the pool is another one": {func(w *plantest.World, _ *plan.NewClaim) { w.Pools[0].UID = "other" }, plan.PoolGone},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, actions := launching(t, c.change)
			if cmd.Why.Code != c.want || (cmd.Phase == plan.Abandoned) != (c.want != plan.OK) {
				t.Errorf("phase %s because %d, want %d", cmd.Phase, cmd.Why.Code, c.want)
			}
			if bought := plantest.Texts(actions) == "create claim r"; bought != (c.want == plan.OK) {
				t.Errorf("actions %q", plantest.Texts(actions))
			}
		})
	}
}

// Commands that are stepped together share the limits. A refused command uses none of them.
func TestReplacementsShareLimits(t *testing.T) {
	w := plantest.New(t, 3)
	w.Pools[0].Limits = []quantity.Amount{{Name: model.ResourceNodes, Value: 4}}
	var commands []plan.Command
	for claim, names := range map[string][]string{"c0": {"r0", "s0"}, "c1": {"r1"}, "c2": {"r2"}} {
		w.Nodes[claim].Drifted, w.Nodes[claim].Disrupted = "x", true
		cmd := w.Command(claim)
		cmd.Reason, cmd.Method, cmd.Phase = plan.Drifted, "", plan.Cordoned
		cmd.PhaseSince = plantest.Noon.Add(-time.Minute)
		for _, name := range names {
			cmd.Replacements = append(cmd.Replacements, plan.NewClaim{Name: name, Pool: "p", PoolUID: "pool-uid"})
		}
		commands = append(commands, cmd)
		w.Nodes[claim].Command = cmd.Encode()
	}
	g := guard.New(w.Snapshot())
	large, bought := 0, 0
	for i, first := range commands { // the one that needs two is stepped first
		if len(first.Replacements) == 2 {
			commands[0], commands[i] = commands[i], commands[0]
		}
	}
	for _, cmd := range commands {
		next, actions := g.Step(cmd)
		switch {
		case len(cmd.Replacements) == 2 && next.Why.Code == plan.NodeLimitReached:
			large++
		case next.Phase == plan.Cordoned && len(actions) == 1:
			bought++
		case next.Why.Code != plan.NodeLimitReached:
			t.Errorf("phase %s because %d: %s", next.Phase, next.Why.Code, plantest.Texts(actions))
		}
	}
	if large != 1 || bought != 1 {
		t.Errorf("%d commands are refused for needing too much, %d of the two others launch, want 1 and 1", large, bought)
	}
}

// A command that loses a node to another command does not release that node.
func TestAbandonedCommandsFreeNoNodeOfOthers(t *testing.T) {
	w := plantest.New(t, 2)
	w.Pools[0].Budgets = []model.Budget{{Count: 1}}
	g := guard.New(w.Snapshot())
	first, _ := g.Step(w.Command("c0"))
	second, _ := g.Step(w.Command("c0", "c1"))
	third, _ := g.Step(w.Command("c1"))
	if first.Phase != plan.Proposed {
		t.Errorf("the first command is %s, want %s", first.Phase, plan.Proposed)
	}
	if got := second.Why.Code; got != plan.NodeTaken {
		t.Errorf("the second command is %s because of %d, want the node of the first", second.Phase, got)
	}
	if got := third.Why.Code; got != plan.BudgetExhausted {
		t.Errorf("the third command is %s because of %d, want the budget", third.Phase, got)
	}
}

// A replacement that was initialized and is no longer ready does not start the drain.
func TestStepWaitsForReadyReplacements(t *testing.T) {
	w := plantest.New(t, 2)
	cmd := replacing(w)
	cmd.Phase, cmd.PhaseSince = plan.Launching, plantest.Noon.Add(-time.Minute)
	for _, claim := range []string{"c0", "c1"} {
		w.Nodes[claim].Command, w.Nodes[claim].Disrupted = cmd.Encode(), true
	}
	r := w.Add("r", "r")
	r.Ready = false
	if next, actions := guard.Step(w.Snapshot(), cmd); next.Phase != plan.Launching || len(actions) > 0 {
		t.Errorf("not ready: phase %s, actions %q", next.Phase, plantest.Texts(actions))
	}
	r.Ready = true
	if next, actions := guard.Step(w.Snapshot(), cmd); next.Phase != plan.Draining || len(actions) != 2 {
		t.Errorf("ready: phase %s, actions %q", next.Phase, plantest.Texts(actions))
	}
}
