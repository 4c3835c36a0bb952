package guard_test

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// TestTaintTakenOff: when a user removes the taint from a node of a command, the quiet time starts again with the new
// taint. A pod may have been bound in between, and the watch event of the binding may be late.
func TestTaintTakenOff(t *testing.T) {
	w := plantest.New(t, 1)
	cmd, _ := cordoned(w)
	w.Nodes["c0"].Disrupted = false
	w.Now = w.Now.Add(10 * time.Second)
	cmd, actions := guard.Step(w.Snapshot(), cmd)
	if got := plantest.Texts(actions); got != "set disruption reason Empty on claim c0\ntaint node n0" {
		t.Fatalf("without the taint: %q", got)
	}
	for _, a := range actions {
		w.Do(a)
	}
	if cmd, actions = guard.Step(w.Snapshot(), cmd); len(actions) > 0 {
		t.Fatalf("right after the new taint: %q", plantest.Texts(actions))
	}
	w.Now = w.Now.Add(guard.CordonQuiet)
	if _, actions = guard.Step(w.Snapshot(), cmd); plantest.Texts(actions) != "delete claim c0" {
		t.Errorf("after the quiet time: %q", plantest.Texts(actions))
	}
}

// cordoned brings a command on the node n0 to its quiet time.
func cordoned(w *plantest.World) (plan.Command, []plan.Action) {
	cmd := w.Command("c0")
	var actions []plan.Action
	for range 3 {
		cmd, actions = guard.Step(w.Snapshot(), cmd)
		for _, a := range actions {
			w.Do(a)
		}
	}
	if cmd.Phase != plan.Cordoned || len(actions) > 0 {
		w.T.Fatalf("phase %s, %q", cmd.Phase, plantest.Texts(actions))
	}
	return cmd, actions
}

// TestReasonWithoutTaint: the reason on the claim is cleared although a user removed the taint before the rollback, and
// also when the command is gone.
func TestReasonWithoutTaint(t *testing.T) {
	w := plantest.New(t, 1)
	cmd, _ := cordoned(w)
	n := w.Nodes["c0"]
	n.Disrupted, n.DisruptionReason, n.DoNotDisrupt = false, true, true
	cmd, actions := guard.Step(w.Snapshot(), cmd)
	if got := plantest.Texts(actions); cmd.Phase != plan.Abandoned || got != "clear the disruption reason on claim c0" {
		t.Fatalf("phase %s, %q", cmd.Phase, got)
	}
	n.DisruptionReason = false
	if _, actions = guard.Step(w.Snapshot(), cmd); plantest.Texts(actions) != "clear the command on claim c0" {
		t.Errorf("then: %q", plantest.Texts(actions))
	}
	n.DisruptionReason, n.Command = true, ""
	if got := plantest.Texts(guard.StaleTaintActions(w.Snapshot())); got != "clear the disruption reason on claim c0" {
		t.Errorf("orphans: %q", got)
	}
}
