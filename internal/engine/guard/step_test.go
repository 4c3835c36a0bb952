package guard_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// run steps a command until it is over, and returns every step as text.
func run(w *plantest.World, cmd plan.Command) (plan.Command, string) {
	var steps []string
	for range 200 {
		var actions []plan.Action
		cmd, actions = guard.Step(w.Snapshot(), cmd)
		steps = append(steps, string(cmd.Phase)+"\n"+plantest.Texts(actions))
		for _, a := range actions {
			w.Do(a)
		}
		if len(actions) == 0 {
			if cmd.Phase.Over() {
				return cmd, strings.ReplaceAll(strings.Join(steps, "\n"), cmd.ID, "ID")
			}
			w.Settle()
		}
	}
	w.T.Fatalf("the command does not end:\n%s", strings.Join(steps, "\n"))
	return cmd, ""
}

func TestStepDeletesEmptyNodes(t *testing.T) {
	w := plantest.New(t, 3)
	w.Bind("daemon", "n0")
	cmd, got := run(w, w.Command("c0", "c1"))
	want := `proposed
write command ID (proposed) on claim c0
write command ID (proposed) on claim c1
proposed
set disruption reason Empty on claim c0
set disruption reason Empty on claim c1
taint node n0
taint node n1
cordoned

draining
delete claim c0
delete claim c1
draining

done
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if cmd.Phase != plan.Done || len(w.Nodes) != 1 {
		t.Errorf("phase %s, %d nodes left", cmd.Phase, len(w.Nodes))
	}
	w.Clean()
}

func replacing(w *plantest.World) plan.Command {
	cmd := w.Command("c0", "c1")
	w.Nodes["c0"].Drifted, w.Nodes["c1"].Drifted = "NodePoolDrifted", "NodePoolDrifted"
	cmd.Reason, cmd.Method = plan.Drifted, ""
	cmd.Replacements = []plan.NewClaim{{Name: "r", Pool: "p", PoolUID: "pool-uid",
		Requirements: []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: []string{"a", "b"}, MinValues: 2}},
		Labels:       map[string]string{"team": "x"}, Requests: []quantity.Amount{{Name: "cpu", Value: 100}}}}
	return cmd
}

func TestStepWaitsForReplacements(t *testing.T) {
	w := plantest.New(t, 2)
	cmd, got := run(w, replacing(w))
	want := `proposed
write command ID (proposed) on claim c0
write command ID (proposed) on claim c1
proposed
set disruption reason Drifted on claim c0
set disruption reason Drifted on claim c1
taint node n0
taint node n1
cordoned

cordoned
create claim r
launching
write command ID (launching) on claim c0
write command ID (launching) on claim c1
launching

draining
delete claim c0
delete claim c1
draining

done
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	wantDone(t, cmd)
	if len(w.Nodes) != 1 || w.Nodes["r"] == nil {
		t.Errorf("nodes %v, want only r", w.Nodes)
	}
	w.Clean()
}

// A command of which a deletion failed keeps the remaining node if its replacement is gone, or is being deleted,
// meanwhile. It deletes that node if the replacement exists.
func TestStepDrainsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*plantest.World)
		phase     plan.Phase
		left      []string
	}{
		"replacement exists":        {func(*plantest.World) {}, plan.Done, []string{"r"}},
		"replacement gone":          {func(w *plantest.World) { delete(w.Nodes, "r") }, plan.Abandoned, []string{"c1"}},
		"replacement being deleted": {func(w *plantest.World) { w.End("r") }, plan.Abandoned, []string{"c1", "r"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, 2)
			cmd := replacing(w)
			for cmd.Phase != plan.Draining {
				var actions []plan.Action
				cmd, actions = guard.Step(w.Snapshot(), cmd)
				for _, a := range actions {
					if d, deletes := a.(plan.DeleteClaim); !deletes || d.Claim != "c1" { // the deletion of c1 fails
						w.Do(a)
					}
				}
				w.Settle()
			}
			if w.Nodes["c0"] != nil || w.Nodes["c1"].Deleting {
				t.Fatalf("nodes %v, want c1 alone to remain", w.Nodes)
			}
			c.meanwhile(w)
			cmd, _ = run(w, cmd)
			if cmd.Phase != c.phase {
				t.Errorf("phase %s, want %s", cmd.Phase, c.phase)
			}
			if left := slices.Sorted(maps.Keys(w.Nodes)); !slices.Equal(left, c.left) {
				t.Errorf("nodes %v are left, want %v", left, c.left)
			}
			w.Clean()
		})
	}
}

// A failure during the command ends in a rollback without leftovers, or does not affect the command.
func TestStepRollsBack(t *testing.T) {
	for name, c := range map[string]struct {
		at   plan.Phase // when the command is in this phase and waits, ...
		mess func(*plantest.World)
		why  plan.Code
	}{
		"pod came":           {plan.Cordoned, func(w *plantest.World) { w.Bind("web", "n1") }, plan.NodeBusy},
		"protected":          {plan.Cordoned, func(w *plantest.World) { w.Nodes["c0"].DoNotDisrupt = true }, plan.NodeProtected},
		"claim replaced":     {plan.Cordoned, func(w *plantest.World) { w.Nodes["c0"].ClaimUID = "other" }, plan.NodeGone},
		"node replaced":      {plan.Cordoned, func(w *plantest.World) { w.Nodes["c0"].UID = "other" }, plan.NodeGone},
		"budget closed":      {plan.Cordoned, func(w *plantest.World) { w.Pools[0].Budgets = []model.Budget{{Count: 1}} }, plan.BudgetExhausted},
		"budget unreadable":  {plan.Cordoned, func(w *plantest.World) { w.Pools[0].BudgetError = "x" }, plan.BudgetUnreadable},
		"pool gone":          {plan.Cordoned, func(w *plantest.World) { w.Pools = nil }, plan.PoolGone},
		"nominated":          {plan.Cordoned, func(w *plantest.World) { w.Pend("web", "n0") }, plan.NodeNominated},
		"never cordoned":     {plan.Cordoned, func(w *plantest.World) { w.Now = w.Now.Add(time.Hour) }, plan.DeadlinePassed},
		"replacement lost":   {plan.Launching, func(w *plantest.World) { delete(w.Nodes, "r") }, plan.ReplacementLost},
		"replacement leaves": {plan.Launching, func(w *plantest.World) { w.Nodes["r"].Stage, w.Nodes["r"].Deleting = model.Initialized, true }, plan.ReplacementLost},
		"too slow":           {plan.Launching, func(w *plantest.World) { w.Now = w.Now.Add(time.Hour) }, plan.DeadlinePassed},
		"protected late":     {plan.Launching, func(w *plantest.World) { w.Nodes["c0"].DoNotDisrupt = true }, plan.NodeProtected},
		"not drifted":        {plan.Launching, func(w *plantest.World) { w.Nodes["c1"].Drifted = "" }, plan.NodeNotDrifted},
		"blocked for ever": {plan.Launching, func(w *plantest.World) {
			w.Bind("web", "n0")
			w.Protect("web", 0)
			w.Now = w.Now.Add(8 * time.Minute)
		}, plan.PDBBlocks},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, 2)
			cmd := w.Command("c0", "c1")
			if c.at == plan.Launching {
				cmd = replacing(w)
			}
			waiting := false
			for range 20 {
				var actions []plan.Action
				cmd, actions = guard.Step(w.Snapshot(), cmd)
				for _, a := range actions {
					w.Do(a)
				}
				if waiting = len(actions) == 0 && cmd.Phase == c.at; waiting {
					break
				}
				if len(actions) == 0 {
					w.Now = w.Now.Add(2 * time.Second)
				}
			}
			if !waiting {
				t.Fatalf("the command never waits in phase %s; it is %s", c.at, cmd.Phase)
			}
			c.mess(w)
			cmd, _ = run(w, cmd)
			if cmd.Phase != plan.Abandoned || cmd.Why.Code != c.why {
				t.Errorf("phase %s because %d, want abandoned because %d", cmd.Phase, cmd.Why.Code, c.why)
			}
			for _, n := range w.Nodes {
				if n.ClaimUID == "other" || n.UID == "other" { // marks on another object are left to StaleTaintActions and Resume
					n.Disrupted, n.Command = false, ""
				}
			}
			w.Reasons = map[string]bool{}
			w.Clean()
		})
	}
}

// A crash after any write, in any order of the writes of one step. A process that resumes from the annotations alone
// reaches an end without taints, annotations or reasons, and launches nothing twice. A command that was abandoned up to
// the last write is not resumed, even while the drain of a candidate does not end.
func TestCrashAnywhere(t *testing.T) {
	for seed := range uint64(1000) {
		r := crashRun{World: plantest.New(t, 3), random: rand.New(rand.NewPCG(seed, 1)), abandoned: map[string]bool{}}
		r.Pools[0].Catalog = nil // prices are not needed here, and computing them is slow
		commands := []plan.Command{r.Command("c0"), r.Command("c1", "c2")}
		if seed%2 == 0 {
			r.Nodes["c2"].LastPodEvent = plantest.Noon.Add(-time.Minute)
			commands = []plan.Command{replacing(r.World)}
		}
		for round := 0; len(commands) > 0; round++ {
			known := r.step(commands, round < disturbedRounds)
			if round < disturbedRounds {
				r.disturb()
			} else {
				clear(r.Held)
			}
			if r.random.IntN(3) == 0 { // the crash itself: memory is lost
				known = nil
			}
			snap := r.Snapshot()
			for _, a := range guard.StaleTaintActions(snap) {
				r.Do(a)
			}
			commands = guard.Resume(snap, known...)
			for _, cmd := range commands {
				if r.abandoned[cmd.ID] {
					t.Fatalf("seed %d: command %s was abandoned, and is resumed as %s", seed, cmd.ID, cmd.Phase)
				}
			}
			if round > 100 {
				t.Fatalf("seed %d: no end: %+v", seed, commands)
			}
		}
		for claim := range r.Reasons {
			if r.Nodes[claim] != nil && !r.Nodes[claim].Disrupted {
				delete(r.Reasons, claim) // set alone just before a crash; it is cleared with the taint only
			}
		}
		if r.Clean(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// disturbedRounds is how many rounds of a crashRun lose actions and change the world.
const disturbedRounds = 30

// crashRun carries commands out with crashes in between.
type crashRun struct {
	*plantest.World
	random *rand.Rand
	// abandoned holds the IDs of the commands that ended without success.
	abandoned map[string]bool
}

// step steps the commands once, and returns those that the process still knows. If it may crash, it may carry out only
// some of the actions.
func (r *crashRun) step(commands []plan.Command, mayCrash bool) (known []plan.Command) {
	g := guard.New(r.Snapshot())
	busy := false
	for _, cmd := range commands {
		cmd, actions := g.Step(cmd)
		r.random.Shuffle(len(actions), func(i, j int) { actions[i], actions[j] = actions[j], actions[i] })
		done := len(actions)
		if mayCrash && r.random.IntN(3) == 0 {
			done = r.random.IntN(len(actions) + 1)
		}
		for _, a := range actions[:done] {
			r.Do(a)
		}
		busy = busy || done > 0
		if cmd.Phase == plan.Abandoned && len(actions) == 0 {
			r.abandoned[cmd.ID] = true
		}
		if done == len(actions) {
			known = append(known, cmd)
		} else {
			known = nil
		}
	}
	if !busy {
		r.Settle()
	}
	return known
}

// disturb changes the world in one of some ways, or not at all.
func (r *crashRun) disturb() {
	switch r.random.IntN(12) {
	case 0:
		r.Bind("web", "n0")
	case 1:
		r.Pods = nil
	case 2:
		delete(r.Nodes, "r")
	case 3:
		r.End("c1")
	}
}

// A crash between the deletions of a command: the next process deletes the rest too, unless that is no longer safe.
func TestResumeGoesOnBetweenDeletions(t *testing.T) {
	for name, c := range map[string]struct {
		mess func(*plantest.World)
		want plan.Phase
		left int
	}{
		"the rest follows":        {func(*plantest.World) {}, plan.Done, 0},
		"one is gone by now":      {func(w *plantest.World) { delete(w.Nodes, "c1") }, plan.Done, 0},
		"a pod came to the rest":  {func(w *plantest.World) { w.Bind("web", "n2") }, plan.Abandoned, 1},
		"the budget is used up":   {func(w *plantest.World) { w.Pools[0].Budgets = []model.Budget{{Count: 1}} }, plan.Abandoned, 1},
		"the budget is just used": {func(w *plantest.World) { w.Pools[0].Budgets = []model.Budget{{Count: 3}} }, plan.Done, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, 3)
			cmd := w.Command("c0", "c1", "c2")
			for range 20 {
				var actions []plan.Action
				cmd, actions = guard.Step(w.Snapshot(), cmd)
				if cmd.Phase == plan.Draining {
					break
				}
				for _, a := range actions {
					w.Do(a)
				}
				if len(actions) == 0 {
					w.Now = w.Now.Add(2 * time.Second)
				}
			}
			w.Do(plan.DeleteClaim{Claim: "c0", UID: "uid-c0"})
			w.Do(plan.DeleteClaim{Claim: "c1", UID: "uid-c1"})
			c.mess(w)
			resumed := guard.Resume(w.Snapshot())
			if len(resumed) != 1 {
				t.Fatalf("resumed %+v", resumed)
			}
			w.Now = w.Now.Add(2 * time.Second)
			cmd, _ = run(w, resumed[0])
			w.Settle()
			if cmd.Phase != c.want || len(w.Nodes) != c.left {
				t.Errorf("phase %s (code %d) with %d nodes left, want %s and %d", cmd.Phase, cmd.Why.Code, len(w.Nodes), c.want, c.left)
			}
			w.Clean()
		})
	}
}

// The annotation is on one of two candidates only: a crash in the middle of the first step.
func TestResumeGoesOnFromOneMember(t *testing.T) {
	w := plantest.New(t, 2)
	cmd := w.Command("c0", "c1")
	w.Nodes["c1"].Command = cmd.Encode()
	resumed := guard.Resume(w.Snapshot())
	if diff := cmp.Diff([]plan.Command{cmd}, resumed); diff != "" {
		t.Fatalf("resumed (-want +got):\n%s", diff)
	}
	_, actions := guard.Step(w.Snapshot(), resumed[0])
	if got, want := plantest.Texts(actions), "write command "+cmd.ID+" (proposed) on claim c0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestResumeClearsWhatItCannotRead(t *testing.T) {
	w := plantest.New(t, 4)
	foreign := w.Command("c3")
	w.Nodes["c0"].Command, w.Nodes["c0"].Disrupted = "{", true
	w.Nodes["c1"].Command = foreign.Encode() // copied from another claim
	w.Nodes["c2"].Command = "{"
	w.End("c2")
	resumed := guard.Resume(w.Snapshot())
	if len(resumed) != 1 {
		t.Fatalf("resumed %+v, want one command", resumed)
	}
	if c := resumed[0]; c.Phase != plan.Abandoned || len(c.Candidates) != 3 {
		t.Fatalf("resumed %+v, want an abandoned command of three nodes", c)
	}
	run(w, resumed[0])
	w.Clean()
}

// A candidate expires, or a user deletes it, and its drain does not end. When the command is then abandoned, no trace
// of it remains on any candidate. Otherwise the next pass would read it and start the command again, for as long as the
// drain lasts.
func TestAbandonedWhileACandidateDrains(t *testing.T) {
	for name, c := range map[string]struct {
		at   plan.Phase
		mess func(*plantest.World)
		why  plan.Code
	}{
		"before the taint":     {plan.Proposed, func(*plantest.World) {}, plan.NodeLeaving},
		"replacement lost":     {plan.Launching, func(w *plantest.World) { delete(w.Nodes, "r") }, plan.ReplacementLost},
		"too slow":             {plan.Launching, func(w *plantest.World) { w.Now = w.Now.Add(time.Hour) }, plan.DeadlinePassed},
		"the other may not go": {plan.Launching, func(w *plantest.World) { w.Settle(); w.Nodes["c1"].DoNotDisrupt = true }, plan.NodeProtected},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, 2)
			cmd := replacing(w)
			for written := false; cmd.Phase != c.at || !written; written = true {
				var actions []plan.Action
				cmd, actions = guard.Step(w.Snapshot(), cmd)
				for _, a := range actions {
					w.Do(a)
				}
				if len(actions) == 0 {
					w.Now = w.Now.Add(2 * time.Second)
				}
			}
			w.End("c0")
			c.mess(w)
			if cmd, _ = run(w, cmd); cmd.Phase != plan.Abandoned || cmd.Why.Code != c.why {
				t.Errorf("phase %s because %d, want abandoned because %d", cmd.Phase, cmd.Why.Code, c.why)
			}
			w.Clean()
			if tainted := w.Nodes["c0"].Disrupted; tainted != (c.at != plan.Proposed) {
				t.Errorf("the node under deletion is tainted: %v", tainted)
			}
			if resumed := guard.Resume(w.Snapshot()); len(resumed) > 0 {
				t.Errorf("resumed %+v", resumed)
			}
		})
	}
}

// A crash between the last writes of a rollback: the annotation remains on the claim that is being deleted. The other
// candidates are not tainted again.
func TestResumeTakesBackWhatOnlyALeavingNodeCarries(t *testing.T) {
	w := plantest.New(t, 3)
	cmd := w.Command("c0", "c1", "c2")
	cmd.Phase = plan.Launching
	other := w.Command("c1")
	w.Nodes["c0"].Command, w.Nodes["c0"].Disrupted = cmd.Encode(), true
	w.Nodes["c1"].Command = other.Encode()
	w.End("c0")
	resumed := guard.Resume(w.Snapshot(), other)
	if len(resumed) != 2 || resumed[0].Phase == resumed[1].Phase {
		t.Fatalf("resumed %+v", resumed)
	}
	for _, c := range resumed {
		got, want := c.Phase, plan.Proposed
		if c.ID == cmd.ID {
			want = plan.Abandoned
			if _, actions := guard.Step(w.Snapshot(), c); plantest.Texts(actions) != "clear the command on claim c0" {
				t.Errorf("writes %q", plantest.Texts(actions))
			}
		}
		if got != want {
			t.Errorf("command %s is resumed as %s, want %s", c.ID, got, want)
		}
	}
}

func TestOrphans(t *testing.T) {
	w := plantest.New(t, 3)
	w.Nodes["c0"].Disrupted = true
	w.Nodes["c1"].Disrupted, w.Nodes["c1"].Deleting = true, true
	w.Nodes["c2"].Disrupted, w.Nodes["c2"].Command = true, "something"
	got := plantest.Texts(guard.StaleTaintActions(w.Snapshot()))
	if want := "clear the disruption reason on claim c0\nuntaint node n0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCommandsOfOneGuardShareBudgetsAndNodes(t *testing.T) {
	w := plantest.New(t, 4)
	w.Pools[0].Budgets = []model.Budget{{Count: 2}}
	g := guard.New(w.Snapshot())
	var got []plan.Code
	for _, claims := range [][]string{{"c0"}, {"c0", "c1"}, {"c2", "c3"}, {"c1"}, {"c2"}} {
		got = append(got, g.Admit(w.Command(claims...)).Code)
	}
	want := []plan.Code{plan.OK, plan.NodeTaken, plan.BudgetExhausted, plan.OK, plan.BudgetExhausted}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

func TestCommandRoundTrip(t *testing.T) {
	w := plantest.New(t, 2)
	cmd := replacing(w)
	got, err := plan.DecodeCommand(cmd.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cmd, got); diff != "" {
		t.Errorf("after a round trip (-want +got):\n%s", diff)
	}
	for text, part := range map[string]string{
		`{`:                    "reading a command",
		`{"phase":"proposed"}`: "id is empty",
		`{"id":"x"}`:           "candidates are empty",
		`{"id":"x","candidates":[{}],"phase":"?"}`: `phase is "?", want one of proposed`,
		`{"id":"x","candidates":[{}],"phase":"proposed","replacements":[{"name":"r","requirements":[{"key":"k","operator":"Is"}]}]}`: `operator of k is "Is"`,
	} {
		if _, err := plan.DecodeCommand(text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("DecodeCommand(%s): error %v, want one with %q", text, err, part)
		}
	}
}

// A process that resumes a command launches its replacements for the pods that they were planned for.
func TestReplacementsRememberTheirPods(t *testing.T) {
	w := plantest.New(t, 2)
	cmd := replacing(w)
	owner := model.Owner{UID: "owner"}
	cmd.Replacements[0].Pods = []*model.Pod{
		{UID: "a", Node: "n0", Controller: owner, Shape: &model.Shape{}}, {UID: "b", Controller: owner, Shape: &model.Shape{}},
		{UID: "c", Controller: owner, Shape: &model.Shape{Virtual: model.VirtualReplica}}}
	text := cmd.Encode()
	again, err := plan.DecodeCommand(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(model.ParsePodRefs("a/owner b c/owner"), again.Replacements[0].PodRefs()); diff != "" {
		t.Errorf("promises (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(text, again.Encode()); diff != "" {
		t.Errorf("stored again (-want +got):\n%s", diff)
	}
}

// The last trace of a command disappears with its claims. A process that knew the command still sees it done. Other
// commands without a trace never began.
func TestResumeEndsWhatWasDraining(t *testing.T) {
	w := plantest.New(t, 2)
	gone, never := w.Command("c0"), w.Command("c1")
	gone.Phase = plan.Draining
	delete(w.Nodes, "c0")
	resumed := guard.Resume(w.Snapshot(), gone, never)
	if diff := cmp.Diff([]plan.Command{gone}, resumed); diff != "" {
		t.Fatalf("resumed (-want +got):\n%s", diff)
	}
	if cmd, actions := guard.Step(w.Snapshot(), resumed[0]); cmd.Phase != plan.Done || actions != nil {
		t.Errorf("phase %s, actions %v", cmd.Phase, actions)
	}
}

// A budget that was closed while two commands were in progress reverts one of them, not both.
func TestAbandonedCommandsMakeRoom(t *testing.T) {
	w := plantest.New(t, 2)
	first, second := w.Command("c0"), w.Command("c1")
	w.Nodes["c0"].Command, w.Nodes["c1"].Command = first.Encode(), second.Encode()
	w.Pools[0].Budgets = []model.Budget{{Count: 1}}
	g := guard.New(w.Snapshot())
	first, _ = g.Step(first)
	second, _ = g.Step(second)
	if first.Phase != plan.Abandoned || second.Phase != plan.Proposed {
		t.Errorf("phases %s and %s, want abandoned and proposed", first.Phase, second.Phase)
	}
}

// Commands share budgets and limits in the order in which they began, then by the ratio of saving to price.
func TestResumeBringsTheBestFirst(t *testing.T) {
	w := plantest.New(t, 3)
	for claim, worth := range map[string]plan.Worth{"c0": {Saving: 100, Price: 10}, "c1": {Saving: 50, Price: 1}, "c2": {Saving: 1}} {
		cmd := w.Command(claim)
		cmd.Reason, cmd.Worth = plan.Underutilized, worth
		w.Nodes[claim].Command = cmd.Encode()
	}
	var got []string
	for _, c := range guard.Resume(w.Snapshot()) {
		got = append(got, c.Candidates[0].Claim)
	}
	if diff := cmp.Diff([]string{"c2", "c1", "c0"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
