package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// The reservations of a command in progress on an existing node are for its pods, and for the pods that their
// controllers recreate. Earlier pods of the controller on the node use none of them. An abandoned command has none.
func TestSeatsOfCommands(t *testing.T) {
	for name, c := range map[string]struct {
		phase   plan.Phase
		change  func(*world)
		promise []string
	}{
		"who has not left yet":      {plan.Draining, func(*world) {}, []string{"uid-a"}},
		"while it is being bought":  {plan.Launching, func(*world) {}, []string{"uid-a"}},
		"of a command that is over": {plan.Abandoned, func(*world) {}, nil},
		"who was started again": {plan.Draining, func(w *world) {
			w.pods[0].Name, w.pods[0].UID, w.pods[0].State, w.pods[0].Node = "a-again", "uid-a-again", model.Pending, ""
		}, []string{"uid-a", "uid-a-again"}},
		"whose successor is there": {plan.Draining, func(w *world) {
			w.pods[0].Name, w.pods[0].UID, w.pods[0].Node, w.pods[0].Created = "a-again", "uid-a-again", "n1", w.now
			w.pend("late", "")
			w.pods[2].Controller.UID = "set"
		}, []string{"uid-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			w.bind("a", "n0")
			w.bind("old", "n1")
			for i := range w.pods {
				w.pods[i].Controller.UID = "set"
			}
			cmd := w.command("c0")
			cmd.Phase, cmd.Landing = c.phase, []plan.Landing{{Claim: "c1", ClaimUID: "uid-c1", Pods: []string{"uid-a/set"}}}
			w.nodes["c0"].Command = cmd.Encode()
			c.change(w)
			if diff := cmp.Diff(c.promise, plan.Ahead(w.snapshot()).Node("n1").Promised); diff != "" {
				t.Errorf("promised (-want +got):\n%s", diff)
			}
		})
	}
}

// The reservations of a command on a node without a claim are stored in the command too, so that a process that starts
// after a crash finds them. Another node of that name has none.
func TestSeatsOnForeignNodes(t *testing.T) {
	w := newWorld(t, 1)
	w.bind("a", "n0")
	w.pods[0].Controller.UID = "set"
	foreign := w.add("theirs", "none")
	foreign.Claim, foreign.ClaimUID, foreign.Pool = "", "", ""
	snap := w.snapshot()
	cmd := w.command("c0")
	cmd.Phase, cmd.Landing = plan.Draining, []plan.Landing{plan.LandingOn(snap.Node("theirs"), snap.Node("n0").Pods)}
	w.nodes["c0"].Command, w.nodes["c0"].Deleting = cmd.Encode(), true
	w.pods[0].Name, w.pods[0].UID, w.pods[0].State, w.pods[0].Node = "a-again", "uid-a-again", model.Pending, ""
	if diff := cmp.Diff([]string{"uid-a", "uid-a-again"}, plan.Ahead(w.snapshot()).Node("theirs").Promised); diff != "" {
		t.Errorf("promised (-want +got):\n%s", diff)
	}
	if cmd, actions := plan.Step(w.snapshot(), cmd); cmd.Phase != plan.Draining || len(actions) != 0 {
		t.Errorf("phase %s: %s; want nothing, there is no claim to record it on", cmd.Phase, texts(actions))
	}
	foreign.UID = "another"
	if promised := plan.Ahead(w.snapshot()).Node("theirs").Promised; promised != nil {
		t.Errorf("another node of the name promises %v", promised)
	}
}

// Commands share budgets and limits in the order in which they began, then by the ratio of saving to price.
func TestResumeBringsTheBestFirst(t *testing.T) {
	w := newWorld(t, 3)
	for claim, worth := range map[string]plan.Worth{"c0": {Saving: 100, Price: 10}, "c1": {Saving: 50, Price: 1}, "c2": {Saving: 1}} {
		cmd := w.command(claim)
		cmd.Reason, cmd.Worth = plan.Underutilized, worth
		w.nodes[claim].Command = cmd.Encode()
	}
	var got []string
	for _, c := range plan.Resume(w.snapshot()) {
		got = append(got, c.Candidates[0].Claim)
	}
	if diff := cmp.Diff([]string{"c2", "c1", "c0"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
