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

// replaced is a fleet with two commands: one replaces node old, in zone a, by node new, and one moves the pod of node
// extra to node other, in zone b, which has room for one pod.
type replaced struct {
	deleting bool // node old is being deleted
	pending  bool // a pod without constraints is pending
}

// snapshot returns the fleet and its commands.
func (r replaced) snapshot() (snap *model.Snapshot, replaces, moves plan.Command) {
	cpu := func(milli int64) []quantity.Amount { return []quantity.Amount{{Name: "cpu", Value: milli}} }
	small := model.InstanceType{Name: "small", Capacity: cpu(1000), Allocatable: cpu(1000),
		Offerings: []model.Offering{{Zone: "b", CapacityType: "on-demand", Price: model.Nano, Available: true}}}
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "p", UID: "uid-p", Policy: "WhenEmptyOrUnderutilized",
		Catalog: &model.Catalog{Types: []model.InstanceType{small}, WellKnown: map[string]bool{model.LabelZone: true, model.LabelCapacityType: true, model.LabelType: true}},
		Budgets: []model.Budget{{IsPercent: true, Percent: 100}}})
	node := func(name, zone string, milli int64) model.NodeSpec {
		return model.NodeSpec{Name: name, UID: "uid-" + name, Claim: "claim-" + name, ClaimUID: "uid-claim-" + name, Pool: "p", Stage: model.Initialized,
			Ready: true, Created: noon.Add(-2 * time.Hour), InitializedAt: noon.Add(-2 * time.Hour), Capacity: cpu(milli), Allocatable: cpu(milli),
			Labels: map[string]string{model.LabelPool: "p", model.LabelType: "small", model.LabelZone: zone, model.LabelCapacityType: "on-demand"}}
	}
	candidate := func(n model.NodeSpec) []plan.Candidate {
		return []plan.Candidate{{Claim: n.Claim, ClaimUID: n.ClaimUID, Node: n.Name, NodeUID: n.UID, Pool: "p"}}
	}
	old, extra := node("old", "a", 1000), node("extra", "b", 1000)
	replaces = plan.NewCommand(noon, plan.Drifted, "drift", candidate(old))
	replaces.Phase, replaces.Replacements = plan.Launching, []plan.NewClaim{{Name: "claim-new", Pool: "p", PoolUID: "uid-p"}}
	if old.Deleting = r.deleting; r.deleting {
		replaces.Phase = plan.Draining
	}
	moves = plan.NewCommand(noon, plan.Underutilized, disruption.MethodSingle, candidate(extra))
	moves.Destinations = []plan.Destination{{Claim: "claim-other", ClaimUID: "uid-claim-other", Pods: model.ParsePodRefs("uid-tied/tied")}}
	old.Command, extra.Command = replaces.Encode(), moves.Encode()
	for _, n := range []model.NodeSpec{old, extra, node("new", "a", 1000), node("other", "b", 2000)} {
		b.UpsertNode(n)
	}
	pod := func(name, on string, zones ...string) {
		p := model.PodSpec{UID: "uid-" + name, Namespace: "default", Name: name, State: model.Bound, Node: on, Requests: cpu(1000),
			Reschedulable: true, Ready: true, EvictionCost: 1000, Controller: model.Owner{Kind: "ReplicaSet", Name: name, UID: name}}
		if on == "" {
			p.State = model.Pending
		}
		if len(zones) > 0 {
			p.Alternatives = [][]label.Requirement{{{Key: model.LabelZone, Operator: label.In, Values: zones}}}
		}
		b.UpsertPod(p)
	}
	pod("drained", "old")
	pod("tied", "extra", "b")
	pod("stays", "other", "b")
	if r.pending {
		pod("waits", "", "a")
	}
	return b.Snapshot(noon), replaces, moves
}

// TestJudgePlacesPodsOfReplacedNodes checks which pods are placed on a replacement before the commands are judged.
func TestJudgePlacesPodsOfReplacedNodes(t *testing.T) {
	// The pod of the deleted node is placed on the replacement. On node other it would take the room of a moved pod.
	snap, _, moves := replaced{deleting: true}.snapshot()
	if v := disruption.Judge(snap, disruption.Options{})(moves); !v.OK() {
		t.Errorf("the node is being deleted: the other command is refused with code %d", v.Code)
	}
	// A pending pod does not take the replacement of a node whose pods still have to move.
	snap, replaces, _ := replaced{pending: true}.snapshot()
	if v := disruption.Judge(snap, disruption.Options{})(replaces); !v.OK() {
		t.Errorf("the node has pods that move: its command is refused with code %d", v.Code)
	}
}
