package plan_test

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestTaintTakenOff: when a user removes the taint from a node of a command, the quiet time starts again with the new
// taint. A pod may have been bound in between, and the watch event of the binding may be late.
func TestTaintTakenOff(t *testing.T) {
	w := newWorld(t, 1)
	cmd, _ := cordoned(w)
	w.nodes["c0"].Disrupted = false
	w.now = w.now.Add(10 * time.Second)
	cmd, actions := plan.Step(w.snapshot(), cmd)
	if got := texts(actions); got != "set disruption reason Empty on claim c0\ntaint node n0" {
		t.Fatalf("without the taint: %q", got)
	}
	for _, a := range actions {
		w.do(a)
	}
	if cmd, actions = plan.Step(w.snapshot(), cmd); len(actions) > 0 {
		t.Fatalf("right after the new taint: %q", texts(actions))
	}
	w.now = w.now.Add(plan.CordonQuiet)
	if _, actions = plan.Step(w.snapshot(), cmd); texts(actions) != "delete claim c0" {
		t.Errorf("after the quiet time: %q", texts(actions))
	}
}

// cordoned brings a command on the node n0 to its quiet time.
func cordoned(w *world) (plan.Command, []plan.Action) {
	cmd := w.command("c0")
	var actions []plan.Action
	for range 3 {
		cmd, actions = plan.Step(w.snapshot(), cmd)
		for _, a := range actions {
			w.do(a)
		}
	}
	if cmd.Phase != plan.Cordoned || len(actions) > 0 {
		w.t.Fatalf("phase %s, %q", cmd.Phase, texts(actions))
	}
	return cmd, actions
}

// TestReasonWithoutTaint: the reason on the claim is cleared although a user removed the taint before the rollback, and
// also when the command is gone.
func TestReasonWithoutTaint(t *testing.T) {
	w := newWorld(t, 1)
	cmd, _ := cordoned(w)
	n := w.nodes["c0"]
	n.Disrupted, n.DisruptionReason, n.DoNotDisrupt = false, true, true
	cmd, actions := plan.Step(w.snapshot(), cmd)
	if got := texts(actions); cmd.Phase != plan.Abandoned || got != "clear the disruption reason on claim c0" {
		t.Fatalf("phase %s, %q", cmd.Phase, got)
	}
	n.DisruptionReason = false
	if _, actions = plan.Step(w.snapshot(), cmd); texts(actions) != "clear the command on claim c0" {
		t.Errorf("then: %q", texts(actions))
	}
	n.DisruptionReason, n.Command = true, ""
	if got := texts(plan.Orphans(w.snapshot())); got != "clear the disruption reason on claim c0" {
		t.Errorf("orphans: %q", got)
	}
}
