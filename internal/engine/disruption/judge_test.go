package disruption_test

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// split returns a large node with two pods, one of which must stay in zone b, and a command that launches a small node
// for each. If the pods are placed anew without the assignments, the pod that fits anywhere takes the only place of the
// other.
func split() (snapshot func(command string) *model.Snapshot, command func(*model.Snapshot) plan.Command) {
	cpu := func(milli int64) []quantity.Amount { return []quantity.Amount{{Name: "cpu", Value: milli}} }
	in := func(key string, values ...string) label.Requirement {
		return label.Requirement{Key: key, Operator: label.In, Values: values}
	}
	sold := func(name string, milli, price int64) model.InstanceType {
		t := model.InstanceType{Name: name, Capacity: cpu(milli), Allocatable: cpu(milli)}
		for _, zone := range []string{"a", "b"} {
			t.Offerings = append(t.Offerings, model.Offering{Zone: zone, CapacityType: "on-demand", Price: price, Available: true})
		}
		return t
	}
	kinds := &model.Catalog{Types: []model.InstanceType{sold("small", 1000, model.Nano/10), sold("large", 8000, model.Nano)},
		WellKnown: map[string]bool{model.LabelZone: true, model.LabelCapacityType: true, model.LabelType: true, model.LabelPool: true}}
	snapshot = func(command string) *model.Snapshot {
		b := model.NewBuilder()
		b.UpsertPool(model.PoolSpec{Name: "p", UID: "uid-p", Catalog: kinds, Policy: "WhenEmptyOrUnderutilized",
			Budgets: []model.Budget{{IsPercent: true, Percent: 100}}, Requirements: []label.Requirement{in(model.LabelPool, "p")}})
		b.UpsertNode(model.NodeSpec{Name: "n", UID: "uid-n", Claim: "claim", ClaimUID: "uid-claim", Pool: "p", Stage: model.Initialized,
			Ready: true, Created: noon.Add(-2 * time.Hour), InitializedAt: noon.Add(-2 * time.Hour), Capacity: cpu(8000), Allocatable: cpu(8000), Command: command,
			Labels: map[string]string{model.LabelPool: "p", model.LabelType: "large", model.LabelZone: "b", model.LabelCapacityType: "on-demand"}})
		for name, milli := range map[string]int64{"free": 1000, "tied": 900} {
			p := model.PodSpec{UID: "uid-" + name, Namespace: "default", Name: name, State: model.Bound, Node: "n", Requests: cpu(milli),
				Reschedulable: true, Ready: true, EvictionCost: 1000, Controller: model.Owner{Kind: "ReplicaSet", Name: name, UID: name}}
			if name == "tied" {
				p.Alternatives = [][]label.Requirement{{in(model.LabelZone, "b")}}
			}
			b.UpsertPod(p)
		}
		return b.Snapshot(noon)
	}
	command = func(s *model.Snapshot) plan.Command {
		c := plan.NewCommand(noon, plan.Underutilized, disruption.MethodSingle, []plan.Candidate{plan.CandidateOf(s.Node("n"))})
		replacement := func(name, pod string, zones ...string) plan.NewClaim {
			r := plan.NewClaim{Name: name, Pool: "p", PoolUID: "uid-p", Requirements: []label.Requirement{in(model.LabelPool, "p"),
				in(model.LabelZone, zones...), in(model.LabelCapacityType, "on-demand"), in(model.LabelType, "small")}}
			for _, p := range s.Node("n").Pods {
				if p.Name == pod {
					r.Pods = []*model.Pod{p}
				}
			}
			return r
		}
		c.Replacements = []plan.NewClaim{replacement("p-1", "tied", "b"), replacement("p-2", "free", "a")}
		return c
	}
	return snapshot, command
}

// TestJudgeUsesPlannedAssignments checks that a command is not reverted because its pods can also be placed in
// a way that leaves one of them without room.
func TestJudgeUsesPlannedAssignments(t *testing.T) {
	snapshot, command := split()
	c := command(snapshot(""))
	stored := snapshot(c.Encode())
	if v := disruption.Judge(stored, disruption.Options{})(c); !v.OK() {
		t.Errorf("the command is refused although its assignments are known: %+v", v)
	}
	for i := range c.Replacements {
		c.Replacements[i].Pods = nil
	}
	if v := disruption.Judge(snapshot(c.Encode()), disruption.Options{})(c); v.Code != plan.PodsHomeless {
		t.Errorf("without the assignments: code %d, want PodsHomeless; otherwise this test is void", v.Code)
	}
	// A assignment that is too small does not count.
	c = command(snapshot(""))
	c.Replacements[0].Pods, c.Replacements[1].Pods = c.Replacements[1].Pods, c.Replacements[0].Pods
	if v := disruption.Judge(snapshot(c.Encode()), disruption.Options{})(c); v.Code != plan.PodsHomeless {
		t.Errorf("with assignments that are too small: code %d, want PodsHomeless", v.Code)
	}
}

// TestJudgeIgnoresOtherLaunches checks two commands that each remove a node, of which only one launches a
// replacement. The replacement has room for the pods of both, but it may never become a node.
func TestJudgeIgnoresOtherLaunches(t *testing.T) {
	stored := map[string]string{}
	tell := func() *model.Snapshot {
		b := model.NewBuilder()
		b.UpsertPool(pool(t, "p", map[string]string{"after": ",30s", "budget": ",100%", "policy": ",WhenEmptyOrUnderutilized"}))
		for name, lodger := range map[string]string{"a": "x", "b": "y"} {
			n := node(t, name, map[string]string{"pool": ",p", "type": ",large", "quiet": ",1h"})
			n.Command = stored[name]
			b.UpsertNode(n)
			b.UpsertPod(pod("pod", lodger, map[string]string{"node": "," + name}))
		}
		return b.Snapshot(noon)
	}
	snap := tell()
	commandOf := func(name string) plan.Command {
		return plan.NewCommand(noon, plan.Underutilized, disruption.MethodSingle, []plan.Candidate{plan.CandidateOf(snap.Node(name))})
	}
	buys, counts := commandOf("a"), commandOf("b")
	in := func(key, value string) label.Requirement {
		return label.Requirement{Key: key, Operator: label.In, Values: []string{value}}
	}
	buys.Replacements = []plan.NewClaim{{Name: "p-1", Pool: "p", PoolUID: "uid-p",
		Requirements: []label.Requirement{in(model.LabelType, "small"), in(model.LabelCapacityType, "spot")}}}
	stored["a"], stored["b"] = buys.Encode(), counts.Encode()
	judge := disruption.Judge(tell(), disruption.Options{})
	if v := judge(buys); !v.OK() {
		t.Errorf("the command with a replacement is refused: %+v", v)
	}
	if v := judge(counts); v.Code != plan.PodsHomeless {
		t.Errorf("the command without a replacement: code %d, want PodsHomeless", v.Code)
	}
}

// TestJudgeCountsOnWhereCommandsLand checks two commands that move pods to one node. The pods of the first have just
// been bound, and the second must not wait for them to settle, unless the node is no longer ready.
func TestJudgeCountsOnWhereCommandsLand(t *testing.T) {
	for _, c := range []struct {
		name        string
		destination string
		ready       bool
		want        plan.Code
	}{
		{"both land on c", "uid-claim-c", true, plan.OK},
		{"both land on c, which is not ready", "uid-claim-c", false, plan.PodsHomeless},
		{"they land elsewhere", "uid-claim-d", true, plan.PodsHomeless},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := model.NewBuilder()
			b.UpsertPool(pool(t, "p", map[string]string{"after": ",30s", "budget": ",100%", "policy": ",WhenEmptyOrUnderutilized"}))
			var second plan.Command
			for _, name := range []string{"a", "b"} {
				n := node(t, name, map[string]string{"pool": ",p", "type": ",large", "quiet": ",1h"})
				cmd := plan.NewCommand(noon, plan.Underutilized, disruption.MethodSingle, []plan.Candidate{{Claim: n.Claim, ClaimUID: n.ClaimUID,
					Node: n.Name, NodeUID: n.UID, Pool: "p"}})
				cmd.Destinations = []plan.Destination{{Claim: "claim-c", ClaimUID: c.destination}}
				if n.Deleting = name == "a"; n.Deleting {
					cmd.Phase = plan.Draining
				}
				n.Command, second = cmd.Encode(), cmd
				b.UpsertNode(n)
			}
			shared := node(t, "c", map[string]string{"pool": ",p", "type": ",large", "quiet": ",5s"})
			shared.Ready = c.ready
			b.UpsertNode(shared)
			b.UpsertPod(pod("pod", "x", map[string]string{"node": ",c"}))
			b.UpsertPod(pod("pod", "y", map[string]string{"node": ",b"}))
			if v := disruption.Judge(b.Snapshot(noon), disruption.Options{})(second); v.Code != c.want {
				t.Errorf("code %d, want %d", v.Code, c.want)
			}
		})
	}
}

// TestJudgeTakesNothingUnknownForCheap checks a command whose replacement no longer has an available offering among
// its requirements, so that its cost is unknown.
func TestJudgeTakesNothingUnknownForCheap(t *testing.T) {
	in := func(key, value string) label.Requirement {
		return label.Requirement{Key: key, Operator: label.In, Values: []string{value}}
	}
	for capacityType, want := range map[string]plan.Code{"spot": plan.OK, "on-demand": plan.ReplacementChanged} {
		tell := func(command string) *model.Snapshot {
			b := model.NewBuilder()
			p := pool(t, "p", map[string]string{"after": ",30s", "budget": ",100%", "policy": ",WhenEmptyOrUnderutilized"})
			p.Requirements = []label.Requirement{{Key: model.LabelCapacityType, Operator: label.In, Values: []string{"spot", "on-demand"}}}
			b.UpsertPool(p)
			n := node(t, "a", map[string]string{"pool": ",p", "type": ",large", "quiet": ",1h"})
			n.Command = command
			b.UpsertNode(n)
			b.UpsertPod(pod("pod", "x", map[string]string{"node": ",a"}))
			return b.Snapshot(noon)
		}
		cmd := plan.NewCommand(noon, plan.Underutilized, disruption.MethodSingle, []plan.Candidate{plan.CandidateOf(tell("").Node("a"))})
		cmd.Replacements = []plan.NewClaim{{Name: "p-1", Pool: "p", PoolUID: "uid-p",
			Requirements: []label.Requirement{in(model.LabelType, "small"), in(model.LabelCapacityType, capacityType)}}}
		if v := disruption.Judge(tell(cmd.Encode()), disruption.Options{})(cmd); v.Code != want {
			t.Errorf("%s: code %d, want %d", capacityType, v.Code, want)
		}
	}
}

// TestJudgeSaysThatNothingIsSaved checks that, if the saving is gone, the verdict states this reason, whatever room
// there is.
func TestJudgeSaysThatNothingIsSaved(t *testing.T) {
	snapshot, command := split()
	snap := snapshot("")
	c := command(snap)
	c.Replacements = c.Replacements[:1]
	r := &c.Replacements[0]
	r.Pods = snap.Node("n").Pods
	for i := range r.Requirements {
		if r.Requirements[i].Key == model.LabelType {
			r.Requirements[i].Values = []string{"large"}
		}
	}
	v := disruption.Judge(snapshot(c.Encode()), disruption.Options{})(c)
	if v.Code != plan.SavingTooSmall {
		t.Errorf("verdict %+v, want SavingTooSmall", v)
	}
	if v.Have != 0 || v.Need < 1 {
		t.Errorf("the verdict has a saving of %d, and needs %d; want none, and more than none", v.Have, v.Need)
	}
}

// TestJudgeCountsTheNodesOfASaving checks that a verdict on the saving of several nodes together tells how many they are.
func TestJudgeCountsTheNodesOfASaving(t *testing.T) {
	snapshot := func(command string) *model.Snapshot {
		b := model.NewBuilder()
		b.UpsertPool(pool(t, "p", map[string]string{"after": ",30s", "budget": ",100%", "policy": ",WhenEmptyOrUnderutilized"}))
		for _, name := range []string{"a", "b"} {
			n := node(t, name, map[string]string{"pool": ",p", "type": ",small", "quiet": ",1h"})
			n.Command = command
			b.UpsertNode(n)
			b.UpsertPod(pod("pod", "on-"+name, map[string]string{"node": "," + name}))
		}
		return b.Snapshot(noon)
	}
	snap := snapshot("")
	cmd := plan.NewCommand(noon, plan.Underutilized, disruption.MethodMulti,
		[]plan.Candidate{plan.CandidateOf(snap.Node("a")), plan.CandidateOf(snap.Node("b"))})
	cmd.Replacements = []plan.NewClaim{{Name: "p-1", Pool: "p", PoolUID: "uid-p",
		Requirements: []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: []string{"large"}}}}}
	for _, n := range snap.Nodes {
		cmd.Replacements[0].Pods = append(cmd.Replacements[0].Pods, n.Pods...)
	}
	v := disruption.Judge(snapshot(cmd.Encode()), disruption.Options{})(cmd)
	if v.Code != plan.SavingTooSmall || v.Node != "a" || v.Others != 1 {
		t.Errorf("verdict %+v, want SavingTooSmall of node a and 1 other", v)
	}
}
