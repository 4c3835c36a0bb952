package guard_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/eviction"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// underused returns nodes with a pod each, and a command that removes the first two, with a replacement if one is
// named.
func underused(t testing.TB, replacement ...string) (*plantest.World, plan.Command) {
	w := plantest.New(t, 3)
	w.Pools[0].Policy = "WhenEmptyOrUnderutilized"
	for i := range 3 {
		w.Bind(fmt.Sprint("web-", i), fmt.Sprint("n", i))
	}
	cmd := w.Command("c0", "c1")
	cmd.Reason, cmd.Method, cmd.Worth = plan.Underutilized, "multi", plan.Worth{Saving: 5, Price: 3, Pods: 2}
	for _, name := range replacement {
		cmd.Replacements = append(cmd.Replacements, plan.NewClaim{Name: name, Pool: "p", PoolUID: "pool-uid"})
	}
	return w, cmd
}

// judge records the calls, and returns the verdict no from a certain call on.
type judge struct {
	asked  []string
	no     plan.Verdict
	noFrom int
}

func (j *judge) judge(cmd plan.Command) plan.Verdict {
	var nodes []string
	for _, c := range cmd.Candidates {
		nodes = append(nodes, c.Node)
	}
	j.asked = append(j.asked, fmt.Sprintf("%s %s", cmd.Phase, strings.Join(nodes, " ")))
	if j.noFrom > 0 && len(j.asked) >= j.noFrom {
		return j.no
	}
	return plan.Verdict{}
}

// step takes one step, and performs its actions.
func step(w *plantest.World, cmd plan.Command, judge func(plan.Command) plan.Verdict) (plan.Command, []plan.Action) {
	g := guard.New(w.Snapshot())
	g.Judge = judge
	cmd, actions := g.Step(cmd)
	for _, a := range actions {
		w.Do(a)
	}
	return cmd, actions
}

// follow steps a command until it is over, second by second, and returns its actions with their times. Created nodes
// are ready after a minute.
func follow(w *plantest.World, cmd plan.Command, judge func(plan.Command) plan.Verdict) (plan.Command, string) {
	var told []string
	started := w.Now
	for range 2000 {
		var actions []plan.Action
		cmd, actions = step(w, cmd, judge)
		if len(actions) > 0 {
			told = append(told, fmt.Sprintf("%s %s: %s", w.Now.Sub(started), cmd.Phase, strings.ReplaceAll(plantest.Texts(actions), "\n", ", ")))
			continue
		}
		if cmd.Phase.Over() {
			return cmd, strings.ReplaceAll(strings.Join(told, "\n"), cmd.ID, "ID")
		}
		w.Now = w.Now.Add(time.Second)
		for claim, n := range w.Nodes {
			if n.Deleting {
				delete(w.Nodes, claim)
			}
			if n.Stage == model.Launching && w.Now.Sub(started) >= 75*time.Second {
				n.Stage = model.Initialized
			}
		}
	}
	w.T.Fatalf("the command does not end:\n%s", strings.Join(told, "\n"))
	return cmd, ""
}

const written = `0s proposed: write command ID (proposed) on claim c0, write command ID (proposed) on claim c1
`

const marked = `15s proposed: set disruption reason Underutilized on claim c0, set disruption reason Underutilized on claim c1, taint node n0, taint node n1
`

// A command that moves pods waits for 15 s without a trace on its nodes, is judged, and is judged again before the
// drain.
func TestValidation(t *testing.T) {
	for name, c := range map[string]struct {
		replacement []string
		want        string
		asked       []string
	}{
		"deleting": {nil, written + marked + `16s draining: delete claim c0, delete claim c1`,
			[]string{"proposed n0 n1", "cordoned n0 n1"}},
		"replacing": {[]string{"r"}, written + marked + `16s cordoned: create claim r
16s launching: write command ID (launching) on claim c0, write command ID (launching) on claim c1
1m15s draining: delete claim c0, delete claim c1`,
			[]string{"proposed n0 n1", "launching n0 n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, cmd := underused(t, c.replacement...)
			j := &judge{}
			cmd, got := follow(w, cmd, j.judge)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.asked, j.asked); diff != "" {
				t.Errorf("calls of the judge (-want +got):\n%s", diff)
			}
			if cmd.Phase != plan.Done {
				t.Errorf("phase %s because %d", cmd.Phase, cmd.Why.Code)
			}
			w.Clean()
		})
	}
}

// Commands for empty, drifted or expired nodes have no validation time and are not judged.
func TestNoValidation(t *testing.T) {
	for _, reason := range []plan.Reason{plan.Empty, plan.Drifted, plan.Expired} {
		w, cmd := underused(t)
		if cmd.Reason = reason; reason == plan.Empty {
			w.Pods = nil
		}
		w.Nodes["c0"].Drifted, w.Nodes["c1"].Drifted = "x", "x"
		j := &judge{no: plan.Verdict{Code: plan.NoSaving}, noFrom: 1}
		cmd, got := follow(w, cmd, j.judge)
		wantDone(t, cmd)
		wantCount(t, got, "1s draining", 1)
		if len(j.asked) > 0 {
			t.Errorf("%s: judged at %v, want never", reason, j.asked)
		}
	}
}

// A refusal by the judge abandons the command with the judge's verdict, and leaves no trace.
func TestJudgeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		noFrom      int
		replacement []string
		want        string
	}{
		"before anything is seen": {1, nil, written + `15s abandoned: clear the command on claim c0, clear the command on claim c1`},
		"before the deletion": {2, nil, written + marked + `16s abandoned: clear the disruption reason on claim c0, clear the disruption reason on claim c1, untaint node n0, untaint node n1
16s abandoned: clear the command on claim c0, clear the command on claim c1`},
		"with the replacement there": {2, []string{"r"}, written + marked + `16s cordoned: create claim r
16s launching: write command ID (launching) on claim c0, write command ID (launching) on claim c1
1m15s abandoned: clear the disruption reason on claim c0, clear the disruption reason on claim c1, note failure 1 of removals (underutilized) on pool p, untaint node n0, untaint node n1
1m15s abandoned: clear the command on claim c0, clear the command on claim c1`},
	} {
		t.Run(name, func(t *testing.T) {
			w, cmd := underused(t, c.replacement...)
			why := plan.Verdict{Code: plan.SavingTooSmall, Node: "n0", Need: 5, Have: 2}
			cmd, got := follow(w, cmd, (&judge{no: why, noFrom: c.noFrom}).judge)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(why, cmd.Why); diff != "" || cmd.Phase != plan.Abandoned {
				t.Errorf("phase %s because (-want +got):\n%s", cmd.Phase, diff)
			}
			w.Clean()
		})
	}
}

// A renewal is not drained while its pods are unschedulable, because other pods took the capacity launched for them.
// That is temporary, because the next plan includes them.
func TestRenewalWaitsForRoom(t *testing.T) {
	w, cmd := underused(t, "r")
	cmd.Reason = plan.Drifted
	for _, n := range w.Nodes {
		n.Drifted = "NodePoolDrifted"
	}
	until := w.Now.Add(3 * time.Minute)
	full := func(plan.Command) plan.Verdict {
		if w.Now.Before(until) {
			return plan.Verdict{Code: plan.PodsHomeless, Node: "n0"}
		}
		return plan.Verdict{}
	}
	cmd, got := follow(w, cmd, full)
	if cmd.Phase != plan.Done || !strings.Contains(got, "3m0s draining: delete claim c0, delete claim c1") {
		t.Errorf("phase %s:\n%s", cmd.Phase, got)
	}
}

// While a command waits, a change that would prevent its start ends it, without a visible effect.
func TestEndsWhileItStands(t *testing.T) {
	for name, c := range map[string]struct {
		mess func(*plantest.World)
		want plan.Code
	}{
		"protected pod": {func(w *plantest.World) { w.Pods[0].ProtectedUntil = model.Forever }, plan.NodeProtected},
		"blocked":       {func(w *plantest.World) { w.Protect("web-1", 0) }, plan.PDBBlocks},
		"a pod came":    {func(w *plantest.World) { w.Nodes["c1"].LastPodEvent = w.Now }, plan.NodeTooYoung},
		"nominated":     {func(w *plantest.World) { w.Pend("new", "n0") }, plan.NodeNominated},
		"budget closed": {func(w *plantest.World) { w.Pools[0].Budgets = []model.Budget{{Count: 1}} }, plan.BudgetExhausted},
		"pool static":   {func(w *plantest.World) { w.Pools[0].Static = true }, plan.NodeStatic},
	} {
		t.Run(name, func(t *testing.T) {
			w, cmd := underused(t)
			cmd, _ = step(w, cmd, nil)
			w.Now = w.Now.Add(5 * time.Second)
			if next, actions := step(w, cmd, nil); next.Phase != plan.Proposed || len(actions) > 0 {
				t.Fatalf("phase %s, %q; the command should wait", next.Phase, plantest.Texts(actions))
			}
			c.mess(w)
			cmd, got := follow(w, cmd, nil)
			if cmd.Phase != plan.Abandoned || cmd.Why.Code != c.want {
				t.Errorf("phase %s because %d, want %s because %d", cmd.Phase, cmd.Why.Code, plan.Abandoned, c.want)
			}
			wantCount(t, got, "taint", 0)
			w.Clean()
		})
	}
}

// A restart neither repeats a command's wait nor skips it.
func TestValidationIsDataNotMemory(t *testing.T) {
	w, cmd := underused(t)
	step(w, cmd, nil)
	w.Now = w.Now.Add(14 * time.Second)
	resumed := guard.Resume(w.Snapshot())
	if len(resumed) != 1 || resumed[0].Worth != cmd.Worth {
		t.Fatalf("resumed %+v", resumed)
	}
	if _, actions := step(w, resumed[0], nil); len(actions) > 0 {
		t.Errorf("after 14 s: %q", plantest.Texts(actions))
	}
	w.Now = w.Now.Add(time.Second)
	if _, actions := step(w, resumed[0], nil); !strings.Contains(plantest.Texts(actions), "taint node n0") {
		t.Errorf("after 15 s: %q", plantest.Texts(actions))
	}
}

// launched brings a command with a replacement to the phase in which it waits for it.
func launched(t testing.TB) (*plantest.World, plan.Command) {
	w, cmd := underused(t, "r")
	for range 40 {
		var actions []plan.Action
		if cmd, actions = step(w, cmd, nil); len(actions) == 0 && cmd.Phase == plan.Launching {
			return w, cmd
		}
		if len(actions) == 0 {
			w.Now = w.Now.Add(time.Second)
		}
	}
	t.Fatalf("phase %s", cmd.Phase)
	return nil, cmd
}

// Once the replacements run, temporary refusals are waited for. Pods that leave the candidates meanwhile do not end the
// command.
func TestReplacedWaitsForWhatPasses(t *testing.T) {
	for name, c := range map[string]struct{ mess, clear func(*plantest.World) }{
		"blocked for a moment": {func(w *plantest.World) { w.Protect("web-0", 0) }, func(w *plantest.World) { w.PDBs[0].Allowed = 1 }},
		"another node is down": {func(w *plantest.World) {
			w.Pools[0].Budgets = []model.Budget{{Count: 2}}
			w.Nodes["c2"].Ready = false
		}, func(w *plantest.World) { w.Nodes["c2"].Ready = true }},
	} {
		t.Run(name, func(t *testing.T) {
			w, cmd := launched(t)
			w.Nodes["r"].Stage = model.Initialized
			c.mess(w)
			w.Now = w.Now.Add(time.Minute)
			cmd, actions := step(w, cmd, nil)
			if cmd.Phase != plan.Launching || len(actions) > 0 {
				t.Fatalf("phase %s because %d, %q", cmd.Phase, cmd.Why.Code, plantest.Texts(actions))
			}
			c.clear(w)
			w.Nodes["c0"].LastPodEvent = w.Now
			if cmd, _ = step(w, cmd, nil); cmd.Phase != plan.Draining {
				t.Errorf("then: phase %s because %d", cmd.Phase, cmd.Why.Code)
			}
		})
	}
}

// A candidate that another client removed while the replacements were launched is done. The judge is called for the
// others.
func TestReplacedWithoutOneCandidate(t *testing.T) {
	w, cmd := launched(t)
	w.Nodes["r"].Stage = model.Initialized
	delete(w.Nodes, "c0")
	w.Now = w.Now.Add(time.Minute)
	j := &judge{}
	cmd, actions := step(w, cmd, j.judge)
	if diff := cmp.Diff([]string{"launching n1"}, j.asked); diff != "" {
		t.Errorf("calls of the judge (-want +got):\n%s", diff)
	}
	if cmd.Phase != plan.Draining || plantest.Texts(actions) != "delete claim c1" {
		t.Errorf("phase %s because %d, %q", cmd.Phase, cmd.Why.Code, plantest.Texts(actions))
	}
}

// A taint that a user removes while the replacements are launched is set again, and its quiet time must pass before the
// drain.
func TestTaintTakenOffWhileLaunching(t *testing.T) {
	w, cmd := launched(t)
	w.Now = w.Now.Add(time.Minute)
	w.Nodes["r"].Stage, w.Nodes["c1"].Disrupted = model.Initialized, false
	cmd, actions := step(w, cmd, nil)
	if got := plantest.Texts(actions); got != "set disruption reason Underutilized on claim c1\ntaint node n1" {
		t.Fatalf("without the taint: %q", got)
	}
	if cmd, actions = step(w, cmd, nil); len(actions) > 0 {
		t.Fatalf("right after the new taint: %q", plantest.Texts(actions))
	}
	w.Now = w.Now.Add(guard.CordonQuiet)
	if _, actions = step(w, cmd, nil); plantest.Texts(actions) != "delete claim c0\ndelete claim c1" {
		t.Errorf("after the quiet time: %q", plantest.Texts(actions))
	}
}

// TestUnderusedHistories: whatever pods, PodDisruptionBudgets, the judge and crashes do, a command ends without
// leftovers, and no claim is deleted while its pods cannot be evicted.
func TestUnderusedHistories(t *testing.T) {
	ends := map[plan.Phase]int{}
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 2))
		var replacement []string
		if seed%2 == 0 {
			replacement = []string{"r"}
		}
		w, first := underused(t, replacement...)
		known := []plan.Command{first}
		for round := 0; len(known) > 0; round++ {
			if round > 1500 {
				t.Fatalf("seed %d: no end: %+v", seed, known)
			}
			calm := round > 300
			snap := w.Snapshot()
			g := guard.New(snap)
			g.Judge = func(plan.Command) plan.Verdict {
				if !calm && random.IntN(8) == 0 {
					return plan.Verdict{Code: plan.NoSaving}
				}
				return plan.Verdict{}
			}
			var next []plan.Command
			for _, cmd := range known {
				cmd, actions := g.Step(cmd)
				random.Shuffle(len(actions), func(i, j int) { actions[i], actions[j] = actions[j], actions[i] })
				if !calm && random.IntN(4) == 0 {
					actions = actions[:random.IntN(len(actions)+1)]
				}
				for _, a := range actions {
					if d, ok := a.(plan.DeleteClaim); ok {
						for _, p := range snap.Claim(d.Claim).Pods {
							if v := eviction.Allowed(snap, p); !v.OK() {
								t.Fatalf("seed %d: %v while %s cannot be evicted (%d)", seed, d, p.Key(), v.Code)
							}
						}
					}
					w.Do(a)
				}
				if cmd.Phase.Over() {
					ends[cmd.Phase]++
				}
				next = append(next, cmd)
			}
			w.Now = w.Now.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
			if !calm {
				disturb(w, random)
			}
			for claim, n := range w.Nodes {
				if n.Deleting && random.IntN(3) == 0 {
					delete(w.Nodes, claim)
				} else if n.Stage == model.Launching && random.IntN(10) == 0 {
					n.Stage = model.Initialized
				}
			}
			if random.IntN(4) == 0 {
				next = nil
			}
			snap = w.Snapshot()
			for _, a := range guard.StaleTaintActions(snap) {
				w.Do(a)
			}
			known = guard.Resume(snap, next...)
		}
		for claim := range w.Reasons {
			if w.Nodes[claim] != nil && !w.Nodes[claim].Disrupted {
				delete(w.Reasons, claim) // set alone just before a crash; it is cleared with the taint only
			}
		}
		if w.Clean(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if ends[plan.Done] < 10 || ends[plan.Abandoned] < 10 {
		t.Errorf("the histories are too much alike: %v", ends)
	}
}

// disturb changes the conditions of a drain.
func disturb(w *plantest.World, random *rand.Rand) {
	switch random.IntN(40) {
	case 0:
		w.Protect("web-0", 0)
	case 1:
		w.PDBs = nil
	case 2:
		w.Pods[0].ProtectedUntil = w.Now.Add(time.Minute)
	case 3:
		delete(w.Nodes, "r")
	case 4:
		w.Nodes["c2"].Ready = !w.Nodes["c2"].Ready
	case 5:
		w.Pools[0].Budgets = []model.Budget{{Count: int64(1 + random.IntN(3))}}
	case 6:
		w.Pools[0].Budgets = nil
	}
}
