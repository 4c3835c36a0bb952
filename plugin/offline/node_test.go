package offline

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestReplacementUnderWay checks that a stored command names its replacement: the node, if its claim has been
// created, and the requested properties before.
func TestReplacementUnderWay(t *testing.T) {
	replacement := plan.NewClaim{Name: "claim-new", Pool: "default", Requirements: []label.Requirement{
		{Key: model.LabelType, Operator: label.In, Values: []string{"small", "large"}},
		{Key: model.LabelZone, Operator: label.In, Values: []string{"a", "b"}},
		{Key: model.LabelPool, Operator: label.In, Values: []string{"default"}},
	}}
	launched := model.NodeSpec{Name: "new", Claim: "claim-new", Pool: "default", Stage: model.Registered,
		Labels: map[string]string{model.LabelType: "large", model.LabelZone: "b", model.LabelCapacityType: "spot"}}
	for name, test := range map[string]struct {
		nodes []model.NodeSpec
		want  AddedNode
		text  string
	}{
		"launched":     {[]model.NodeSpec{launched}, AddedNode{"new", "default", "large", "b", "spot", 0}, "large b spot"},
		"not seen yet": {nil, AddedNode{"claim-new", "default", "small", "a|b", "", 0}, "small a|b"},
	} {
		command := plan.NewCommand(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), plan.Drifted, "",
			[]plan.Candidate{{Node: "old", Claim: "claim-old"}})
		command.Phase, command.Replacements = plan.Launching, []plan.NewClaim{replacement}
		cluster := model.NewBuilder()
		cluster.UpsertPool(model.PoolSpec{Name: "default"})
		cluster.UpsertNode(model.NodeSpec{Name: "old", Claim: "claim-old", Pool: "default", Stage: model.Initialized, Command: command.Encode()})
		for _, n := range test.nodes {
			cluster.UpsertNode(n)
		}
		snap := cluster.Snapshot(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		o := &NodeOutcome{Outcome: "UnderWay"}
		o.readCommand(snap, snap.Node("old"))
		if diff := cmp.Diff([]AddedNode{test.want}, o.Step.Add); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		var b strings.Builder
		o.writeStep(&b)
		if want := ": Drifted, remove old, launch " + test.text + ", 0 pods moved, saves an unknown amount\n"; b.String() != want {
			t.Errorf("%s: got %q, want %q", name, b.String(), want)
		}
	}
}

// TestExplainSmallPrint checks that a blocked pool is shown with its condition, that a zero bound is not printed,
// that a renewal has its times, and that nodes of commands in progress are reported.
func TestExplainSmallPrint(t *testing.T) {
	renewed, dies := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2026, 1, 9, 3, 4, 5, 0, time.UTC)
	node := (&NodeOutcome{Node: "a", NodePool: "p", Outcome: "Kept", RenewedFrom: &renewed, ExpiresAt: &dies}).Text()
	if want := "will be replaced (expireAfter) from 2026-01-02T03:04:05Z, at the latest 2026-01-09T03:04:05Z\n"; !strings.Contains(node,
		want) {
		t.Errorf("no %q in\n%s", want, node)
	}
	orphan := (&NodeOutcome{Node: "a", NodePool: "p", PoolMissing: true, Outcome: "Kept", ExpiresAt: &dies}).Text()
	if want := "will be deleted (expireAfter) at 2026-01-09T03:04:05Z\n"; !strings.Contains(orphan, want) {
		t.Errorf("no %q in\n%s", want, orphan)
	}
	pool := &PoolOutcome{NodePool: "p", Budgets: []BudgetOutcome{{}}}
	if text := pool.Text(); strings.Contains(text, "at least") || strings.Contains(text, "buys nothing") {
		t.Errorf("an empty pool prints\n%s", text)
	}
	disrupted := &DisruptAnswer{UnderWay: 2, Before: FleetFigures{Nodes: 1}, After: FleetFigures{Nodes: 1}}
	var text strings.Builder
	disrupted.writeSummary(&text)
	for _, want := range []string{"0 steps: 1 node becomes 1,", "2 nodes in commands in progress: no step covers them"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// TestOfAll checks that a message about several nodes is true of all of them, or marked as an example.
func TestOfAll(t *testing.T) {
	kept := func(node string, v plan.Verdict) KeptReason {
		v.Node = node
		return keptReasonOf(nil, disruption.Kept{Node: node, Reason: plan.Underutilized, Verdict: v})
	}
	young, held := plan.Verdict{Code: plan.NodeTooYoung}, func(pod string) plan.Verdict {
		return plan.Verdict{Code: plan.NodeProtected, Holder: &plan.Holder{Pod: pod}}
	}
	gone := plan.Verdict{Code: plan.PoolGone, Pool: "p"}
	elsewhere := keptReasonOf(nil, disruption.Kept{Node: "b", Verdict: plan.Verdict{Code: plan.NodeTooYoung, Node: "c"}})
	for _, c := range []struct {
		want string
		same []KeptReason
	}{
		{"consolidateAfter of node a has not passed yet", []KeptReason{kept("a", young)}},
		{"consolidateAfter of each node has not passed yet", []KeptReason{kept("a", young), kept("b", young)}},
		{"no change that was tried runs the pods of each node for less",
			[]KeptReason{kept("a", plan.Verdict{Code: plan.NoSaving}), kept("b", plan.Verdict{Code: plan.NoSaving})}},
		{"NodePool p of each node does not exist; a NodePool of that name would own the node again",
			[]KeptReason{kept("a", gone), kept("b", gone)}},
		{"for example, node a is protected by the annotation karpenter.sh/do-not-disrupt of pod default/x",
			[]KeptReason{kept("a", held("default/x")), kept("b", held("default/y"))}},
		{"for example, consolidateAfter of node a has not passed yet", []KeptReason{kept("a", young), elsewhere}},
	} {
		if got := ofAll(c.same); got != c.want {
			t.Errorf("%d nodes: %q, want %q", len(c.same), got, c.want)
		}
	}
}

func TestNegativeSaving(t *testing.T) {
	if got := savingPerHour(-0.024); got != "costs 0.0240 USD per hour more" {
		t.Errorf("a negative saving: %s", got)
	}
}
