package disruption_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// sharing returns a static pool with a spot share. It offers types of two sizes as spot in three zones, the large
// ones at three times the price, and optionally the small ones on demand in one zone.
func sharing(replicas, share int64, onDemand bool) *staticWorld {
	w := newStaticWorld(replicas, 0)
	w.pool.MaxSpotShare = share
	w.pool.Requirements = w.pool.Requirements[:1]
	w.pool.Catalog.Types = nil
	for i := range 6 {
		cpu, price := int64(4000), model.Nano+int64(i)
		if i >= 4 {
			cpu, price = 16000, 3*model.Nano
		}
		amounts := []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "pods", Value: 110}}
		t := model.InstanceType{Name: fmt.Sprint("t", i), Capacity: amounts, Allocatable: amounts, Requirements: []label.Requirement{
			{Key: model.LabelType, Operator: label.In, Values: []string{fmt.Sprint("t", i)}}, {Key: model.LabelZone, Operator: label.In, Values: []string{"a", "b", "c"}},
			{Key: model.LabelCapacityType, Operator: label.In, Values: []string{"spot", "on-demand"}}}}
		for _, zone := range []string{"a", "b", "c"} {
			t.Offerings = append(t.Offerings, model.Offering{Zone: zone, CapacityType: "spot", Price: price, Available: true})
		}
		if onDemand && i < 4 {
			t.Offerings = append(t.Offerings, model.Offering{Zone: "a", CapacityType: "on-demand", Price: 4 * model.Nano, Available: true})
		}
		w.pool.Catalog.Types = append(w.pool.Catalog.Types, t)
	}
	return w
}

// launch creates nodes of the claims like a provider that prefers the last type of each claim.
func (w *staticWorld) launch(t *testing.T, claims []plan.NewClaim) (spot map[string]int, plain int) {
	t.Helper()
	spot = map[string]int{}
	for _, c := range claims {
		n := w.add(model.Initialized)
		n.Claim, n.ClaimUID = c.Name, "uid-"+c.Name
		said := map[string][]string{}
		for _, r := range c.Requirements {
			if r.Operator == label.In {
				said[r.Key] = r.Values
			}
		}
		if len(said[model.LabelCapacityType]) == 0 {
			plain++
			n.Labels[model.LabelCapacityType] = "on-demand"
			continue
		}
		kind, zone := said[model.LabelType][len(said[model.LabelType])-1], said[model.LabelZone]
		if len(zone) != 1 || !slices.Equal(said[model.LabelCapacityType], []string{"spot"}) {
			t.Fatalf("claim %s requires %v", c.Name, c.Requirements)
		}
		n.Labels[model.LabelType], n.Labels[model.LabelZone], n.Labels[model.LabelCapacityType] = kind, zone[0], "spot"
		spot[kind+"@"+zone[0]]++
	}
	return spot, plain
}

// TestStaticPoolsShare checks that no type in a zone has more than its share of a static pool, whatever the provider
// selects. Nodes that cannot be spot are launched on demand, or reported as missing.
func TestStaticPoolsShare(t *testing.T) {
	for _, test := range []struct {
		replicas, share int64
	}{
		{replicas: 1, share: 25}, {replicas: 4, share: 25}, {replicas: 9, share: 25}, {replicas: 40, share: 25}, {replicas: 100, share: 10},
		{replicas: 12, share: 50}, {replicas: 33, share: 20}, {replicas: 60, share: 9},
	} {
		t.Run(fmt.Sprint(test.replicas, " of ", test.share), func(t *testing.T) {
			w := sharing(test.replicas, test.share, false)
			s := disruption.Static(w.snapshot())
			if len(s.Short) > 0 || len(s.Create) != int(test.replicas) {
				t.Fatalf("%d of %d are created, short %+v", len(s.Create), test.replicas, s.Short)
			}
			spot, _ := w.launch(t, s.Create)
			for outlet, nodes := range spot {
				if nodes > 1 && int64(nodes)*100 > test.share*test.replicas {
					t.Errorf("%s has %d of %d nodes, of %d%%", outlet, nodes, test.replicas, test.share)
				}
			}
			if again := disruption.Static(w.snapshot()); len(again.Create)+len(again.Surplus)+len(again.Short) > 0 {
				t.Errorf("with all nodes present, got %+v", again)
			}
		})
	}
	t.Run("one type in one zone", func(t *testing.T) {
		w := sharing(5, 25, false)
		w.pool.Requirements = append(w.pool.Requirements, label.Requirement{Key: model.LabelType, Operator: label.In, Values: []string{"t1"}},
			label.Requirement{Key: model.LabelZone, Operator: label.In, Values: []string{"b"}})
		s := disruption.Static(w.snapshot())
		if len(s.Create) != 1 || len(s.Short) != 1 {
			t.Fatalf("created %d, short %+v, want one of each", len(s.Create), s.Short)
		}
		if short := s.Short[0]; short.Missing != 4 || short.Verdict.Code != plan.SpotShareReached {
			t.Errorf("short %+v, want 4 missing because of the spot share", short)
		}
	})
	t.Run("the rest on demand", func(t *testing.T) {
		w := sharing(5, 25, true)
		w.pool.Requirements = append(w.pool.Requirements, label.Requirement{Key: model.LabelType, Operator: label.In, Values: []string{"t1"}},
			label.Requirement{Key: model.LabelZone, Operator: label.In, Values: []string{"a"}})
		s := disruption.Static(w.snapshot())
		if spot, plain := w.launch(t, s.Create); plain != 4 || spot["t1@a"] != 1 {
			t.Errorf("spot %v, %d on demand, want one and 4", spot, plain)
		}
		if len(s.Short) > 0 {
			t.Errorf("short %+v, want none", s.Short)
		}
	})
}

// TestJudgeComputesTheShareAgain checks that a command that was within the share when it was proposed is reverted if
// it no longer is, because another node was removed.
func TestJudgeComputesTheShareAgain(t *testing.T) {
	for _, test := range []struct {
		name   string
		others bool
		want   plan.Code
	}{{"as it was", true, plan.OK}, {"another node has left", false, plan.SpotShareExceeded}} {
		t.Run(test.name, func(t *testing.T) {
			w := sharing(0, 50, false)
			w.pool.Static, w.pool.Blocked, w.pool.Policy = false, nil, "WhenEmptyOrUnderutilized"
			w.pool.Budgets = []model.Budget{{IsPercent: true, Percent: 100}}
			node := func(kind, zone string) *model.NodeSpec {
				n := w.add(model.Initialized)
				n.Labels = map[string]string{model.LabelPool: "s", model.LabelType: kind, model.LabelZone: zone, model.LabelCapacityType: "spot"}
				n.Allocatable = append(n.Allocatable, quantity.Amount{Name: "pods", Value: 110})
				n.Capacity = n.Allocatable
				return n
			}
			node("t0", "a")
			node("t0", "a")
			leaves := node("t1", "a")
			if test.others {
				node("t2", "b")
			}
			for i := range w.nodes {
				p := w.run(w.nodes[i].Name, 1)
				p.Requests = []quantity.Amount{{Name: "cpu", Value: 500}, {Name: "pods", Value: 1}}
				p.Controller = model.Owner{Kind: "ReplicaSet", Name: "web", UID: "web"}
			}
			snap := w.snapshot()
			cmd := plan.NewCommand(staticNoon, plan.Underutilized, disruption.MethodSingle, []plan.Candidate{plan.CandidateOf(snap.Node(leaves.Name))})
			leaves.Command = cmd.Encode()
			if v := disruption.Judge(w.snapshot(), disruption.Options{})(cmd); v.Code != test.want {
				t.Errorf("the verdict is %+v, want code %d", v, test.want)
			}
		})
	}
}

// TestRefusedRenewalTakesNoShare checks that a drifted node that no budget allows to be removed does not use the
// share that an old node needs.
func TestRefusedRenewalTakesNoShare(t *testing.T) {
	w := sharing(2, 40, false)
	for range 2 {
		n := w.add(model.Initialized)
		n.Labels = map[string]string{model.LabelPool: "s", model.LabelType: "t2", model.LabelZone: "a", model.LabelCapacityType: "on-demand"}
		n.Capacity = []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "pods", Value: 110}}
		n.Allocatable = n.Capacity
	}
	w.pool.Requirements = append(w.pool.Requirements, label.Requirement{Key: model.LabelType, Operator: label.In, Values: []string{"t1"}},
		label.Requirement{Key: model.LabelZone, Operator: label.In, Values: []string{"b"}})
	w.pool.Budgets = []model.Budget{{Reasons: []string{string(plan.Drifted)}}}
	w.nodes[0].Drifted, w.nodes[0].DriftedSince = "NodePoolDrifted", staticNoon
	w.expiring(1, 1)
	snap := w.snapshot()
	commands, kept := disruption.StaticDrift(snap, guard.New(snap))
	if len(commands) != 1 || commands[0].Reason != plan.Expired {
		t.Errorf("commands %+v, want the expiring node renewed", commands)
	}
	if len(kept) != 1 || kept[0].Verdict.Code != plan.BudgetExhausted {
		t.Errorf("kept %+v, want the drifted node because of its budget", kept)
	}
}
