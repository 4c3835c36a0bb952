package reserve_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// The reservations of a command in progress on an existing node are for its pods, and for the pods that their
// controllers recreate. Earlier pods of the controller on the node use none of them. An abandoned command has none.
func TestSeatsOfCommands(t *testing.T) {
	for name, c := range map[string]struct {
		phase   plan.Phase
		change  func(*plantest.World)
		promise []string
	}{
		"who has not left yet":      {plan.Draining, func(*plantest.World) {}, []string{"uid-a"}},
		"while it is being bought":  {plan.Launching, func(*plantest.World) {}, []string{"uid-a"}},
		"of a command that is over": {plan.Abandoned, func(*plantest.World) {}, nil},
		"who was started again": {plan.Draining, func(w *plantest.World) {
			w.Pods[0].Name, w.Pods[0].UID, w.Pods[0].State, w.Pods[0].Node = "a-again", "uid-a-again", model.Pending, ""
		}, []string{"uid-a", "uid-a-again"}},
		"whose successor is there": {plan.Draining, func(w *plantest.World) {
			w.Pods[0].Name, w.Pods[0].UID, w.Pods[0].Node, w.Pods[0].Created = "a-again", "uid-a-again", "n1", w.Now
			w.Pend("late", "")
			w.Pods[2].Controller.UID = "set"
		}, []string{"uid-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, 2)
			w.Bind("a", "n0")
			w.Bind("old", "n1")
			for i := range w.Pods {
				w.Pods[i].Controller.UID = "set"
			}
			cmd := w.Command("c0")
			cmd.Phase, cmd.Landing = c.phase, []plan.Landing{{Claim: "c1", ClaimUID: "uid-c1", Pods: []string{"uid-a/set"}}}
			w.Nodes["c0"].Command = cmd.Encode()
			c.change(w)
			if diff := cmp.Diff(c.promise, reserve.Ahead(w.Snapshot()).Node("n1").Promised); diff != "" {
				t.Errorf("promised (-want +got):\n%s", diff)
			}
		})
	}
}

// The reservations of a command on a node without a claim are stored in the command too, so that a process that starts
// after a crash finds them. Another node of that name has none.
func TestSeatsOnForeignNodes(t *testing.T) {
	w := plantest.New(t, 1)
	w.Bind("a", "n0")
	w.Pods[0].Controller.UID = "set"
	foreign := w.Add("theirs", "none")
	foreign.Claim, foreign.ClaimUID, foreign.Pool = "", "", ""
	snap := w.Snapshot()
	cmd := w.Command("c0")
	cmd.Phase, cmd.Landing = plan.Draining, []plan.Landing{plan.LandingOn(snap.Node("theirs"), snap.Node("n0").Pods)}
	w.Nodes["c0"].Command, w.Nodes["c0"].Deleting = cmd.Encode(), true
	w.Pods[0].Name, w.Pods[0].UID, w.Pods[0].State, w.Pods[0].Node = "a-again", "uid-a-again", model.Pending, ""
	if diff := cmp.Diff([]string{"uid-a", "uid-a-again"}, reserve.Ahead(w.Snapshot()).Node("theirs").Promised); diff != "" {
		t.Errorf("promised (-want +got):\n%s", diff)
	}
	if cmd, actions := guard.Step(w.Snapshot(), cmd); cmd.Phase != plan.Draining || len(actions) != 0 {
		t.Errorf("phase %s: %s; want nothing, there is no claim to record it on", cmd.Phase, plantest.Texts(actions))
	}
	foreign.UID = "another"
	if promised := reserve.Ahead(w.Snapshot()).Node("theirs").Promised; promised != nil {
		t.Errorf("another node of the name promises %v", promised)
	}
}
