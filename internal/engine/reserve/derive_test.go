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
func TestReservationsOfCommands(t *testing.T) {
	for name, c := range map[string]struct {
		phase    plan.Phase
		change   func(*plantest.World)
		reserved []string
	}{
		"the pod still runs":       {plan.Draining, func(*plantest.World) {}, []string{"uid-a"}},
		"the command launches":     {plan.Launching, func(*plantest.World) {}, []string{"uid-a"}},
		"the command is abandoned": {plan.Abandoned, func(*plantest.World) {}, nil},
		"the pod is created again": {plan.Draining, func(w *plantest.World) {
			w.Pods[0].Name, w.Pods[0].UID, w.Pods[0].State, w.Pods[0].Node = "a-again", "uid-a-again", model.Pending, ""
		}, []string{"uid-a", "uid-a-again"}},
		"the successor is bound": {plan.Draining, func(w *plantest.World) {
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
			cmd.Phase, cmd.Destinations = c.phase, []plan.Destination{{Claim: "c1", ClaimUID: "uid-c1", Pods: model.ParsePodRefs("uid-a/set")}}
			w.Nodes["c0"].Command = cmd.Encode()
			c.change(w)
			if diff := cmp.Diff(c.reserved, podsOf(reserve.Ahead(w.Snapshot(), nil).Node("n1"))); diff != "" {
				t.Errorf("reserved (-want +got):\n%s", diff)
			}
		})
	}
}

// The reservations of a command on a node without a claim are stored in the command too, so that a process that starts
// after a crash finds them. Another node of that name has none.
func TestReservationsOnForeignNodes(t *testing.T) {
	w := plantest.New(t, 1)
	w.Bind("a", "n0")
	w.Pods[0].Controller.UID = "set"
	foreign := w.Add("theirs", "none")
	foreign.Claim, foreign.ClaimUID, foreign.Pool = "", "", ""
	snap := w.Snapshot()
	cmd := w.Command("c0")
	cmd.Phase, cmd.Destinations = plan.Draining, []plan.Destination{plan.DestinationOf(snap.Node("theirs"), snap.Node("n0").Pods)}
	w.Nodes["c0"].Command, w.Nodes["c0"].Deleting = cmd.Encode(), true
	w.Pods[0].Name, w.Pods[0].UID, w.Pods[0].State, w.Pods[0].Node = "a-again", "uid-a-again", model.Pending, ""
	if diff := cmp.Diff([]string{"uid-a", "uid-a-again"}, podsOf(reserve.Ahead(w.Snapshot(), nil).Node("theirs"))); diff != "" {
		t.Errorf("reserved (-want +got):\n%s", diff)
	}
	if cmd, actions := guard.Step(w.Snapshot(), cmd); cmd.Phase != plan.Draining || len(actions) != 0 {
		t.Errorf("phase %s: %s; want nothing, there is no claim to record it on", cmd.Phase, plantest.Texts(actions))
	}
	foreign.UID = "another"
	if reserved := podsOf(reserve.Ahead(w.Snapshot(), nil).Node("theirs")); reserved != nil {
		t.Errorf("another node of the name has reservations for %v", reserved)
	}
}
