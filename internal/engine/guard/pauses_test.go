package guard_test

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// The time in the verdict is not before the end of the pause, which may be within a second: a loop that wakes up at
// that time finds the pause over.
func TestPauseIsOverWhenItSays(t *testing.T) {
	for _, fraction := range []time.Duration{0, time.Nanosecond, 480 * time.Millisecond, time.Second - time.Nanosecond} {
		w := plantest.New(t, 2)
		w.Bind("web", "n1")
		w.Pools[0].Pauses = pause.List{{Key: pause.Key{Reason: string(plan.Underutilized), Scope: "p"}, Failures: 1,
			At: plantest.Noon.Add(-time.Second), Until: plantest.Noon.Add(time.Minute).Add(fraction)}}
		c := w.Command("c1")
		c.Reason, c.Replacements = plan.Underutilized, []plan.NewClaim{{Name: "new", Pool: "p", PoolUID: "pool-uid"}}
		v := guard.New(w.Snapshot()).Paused(c)
		if v.Code != plan.Paused {
			t.Fatalf("%s: got code %d", fraction, v.Code)
		}
		w.Now = time.Unix(v.Need, 0)
		if v := guard.New(w.Snapshot()).Paused(c); !v.OK() {
			t.Errorf("%s: at the time that the verdict named, code %d until %s", fraction, v.Code, time.Unix(v.Need, 0))
		}
	}
}

// A replacement ends the pause if it was initialized after the failure. One that was initialized before, and whose
// command is still draining, does not.
func TestPauseOutlivesEarlierReplacements(t *testing.T) {
	for name, test := range map[string]struct {
		initialized time.Duration // after the failure
		clears      bool
	}{
		"before the failure": {-time.Minute, false},
		"after the failure":  {time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			failed := plantest.Noon.Add(-10 * time.Minute)
			w := plantest.New(t, 2)
			w.Bind("web", "n1")
			w.Nodes["c0"].InitializedAt = failed.Add(test.initialized)
			w.Pools[0].Pauses = pause.List{{Key: pause.Key{Reason: string(plan.Drifted), Scope: "p"}, Failures: 1, At: failed}}
			c := w.Command("c1")
			c.Reason, c.Phase, c.Replacements = plan.Drifted, plan.Draining, []plan.NewClaim{{Name: "c0", Pool: "p", PoolUID: "pool-uid"}}
			w.Nodes["c1"].Command, w.Nodes["c1"].Deleting = c.Encode(), true
			_, actions := guard.New(w.Snapshot()).Step(c)
			clears := false
			for _, a := range actions {
				_, is := a.(plan.EndPause)
				clears = clears || is
			}
			if clears != test.clears {
				t.Errorf("the pause is ended: %v, want %v (%v)", clears, test.clears, actions)
			}
		})
	}
}

// A failure is recorded with the outcome of the replacement, and with the cause where it is known.
func TestFailureSaysWhy(t *testing.T) {
	for want, stage := range map[string]*model.Stage{
		"claim c0 is gone: no capacity":                                               nil,
		"claim c0 was not launched in time: no capacity":                              new(model.Launching),
		"claim c0 was launched, and its node did not register in time: no capacity":   new(model.Launched),
		"claim c0 registered, and was not initialized and ready in time: no capacity": new(model.Registered),
	} {
		w := plantest.New(t, 2)
		w.Bind("web", "n1")
		c := w.Command("c1")
		c.Reason, c.Phase, c.Replacements = plan.Drifted, plan.Launching, []plan.NewClaim{{Name: "c0", Pool: "p", PoolUID: "pool-uid"}}
		c.Created, c.PhaseSince, c.Deadline = w.Now.Add(-time.Hour), w.Now.Add(-time.Hour), w.Now.Add(-time.Minute)
		w.Nodes["c1"].Command = c.Encode()
		if stage == nil {
			delete(w.Nodes, "c0")
		} else {
			w.Nodes["c0"].Stage = *stage
		}
		g := guard.New(w.Snapshot())
		g.Cause = func(string) string { return "no capacity" }
		got := ""
		for range 4 {
			after, actions := g.Step(c)
			for _, a := range actions {
				if note, is := a.(plan.SetPause); is {
					got = note.Pause.Why
				}
				w.Do(a)
			}
			c, g = after, guard.New(w.Snapshot())
			g.Cause = func(string) string { return "no capacity" }
		}
		if got != want {
			t.Errorf("the recorded reason is %q, want %q", got, want)
		}
	}
}

// A command that cannot begin, because its first writes are refused until its deadline, is no failure of replacements.
func TestNoFailureBeforeTheLaunch(t *testing.T) {
	for _, phase := range []plan.Phase{plan.Proposed, plan.Cordoned, plan.Launching} {
		w := plantest.New(t, 2)
		w.Bind("web", "n1")
		delete(w.Nodes, "c0")
		c := w.Command("c1")
		c.Reason, c.Phase, c.Replacements = plan.Drifted, phase, []plan.NewClaim{{Name: "c0", Pool: "p", PoolUID: "pool-uid"}}
		c.Created, c.PhaseSince, c.Deadline = w.Now.Add(-time.Hour), w.Now.Add(-time.Hour), w.Now.Add(-time.Minute)
		w.Nodes["c1"].Command = c.Encode()
		failures := 0
		for range 4 { // the rollback is repeated until its writes are seen
			after, actions := guard.New(w.Snapshot()).Step(c)
			for _, a := range actions {
				if _, is := a.(plan.SetPause); is {
					failures++
				}
				w.Do(a)
			}
			c = after
		}
		if want := phase == plan.Launching; failures > 0 != want {
			t.Errorf("%s: %d failures are recorded, want some: %v", phase, failures, want)
		}
	}
}
