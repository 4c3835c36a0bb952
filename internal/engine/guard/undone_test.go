package guard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

var (
	savingKey  = pause.Key{Reason: "UnderutilizedUndone", Scope: "p"}
	renewalKey = pause.Key{Reason: "DriftedUndone", Scope: "p"}
)

// owned adds a pod of a controller. Without a node it is pending.
func owned(w *plantest.World, name, owner, node string, created time.Time) {
	p := model.PodSpec{UID: "uid-" + name, Namespace: "default", Name: name, State: model.Bound, Node: node, Reschedulable: true, Ready: true,
		Created: created, Controller: model.Owner{Kind: "ReplicaSet", Name: owner, UID: owner}}
	if node == "" {
		p.State = model.Pending
	}
	w.Pods = append(w.Pods, p)
}

// moved returns a world a minute after a consolidation has moved a pod of the ReplicaSet web to the node n0.
func moved(t *testing.T) (w *plantest.World, at time.Time) {
	w = plantest.New(t, 3)
	at, w.Now = w.Now, w.Now.Add(time.Minute)
	w.Nodes["c0"].ConsolidatedAt = at
	owned(w, "web-0", "web", "n0", at.Add(time.Second))
	for _, n := range w.Nodes {
		n.Created = at.Add(-time.Hour)
	}
	return w, at
}

// launchFor makes n1 a node that was launched at that time for the pod.
func launchFor(w *plantest.World, at time.Time, ref string) {
	w.Nodes["c1"].Created, w.Nodes["c1"].LaunchedFor = at, model.ParsePodRefs(ref)
}

// TestSavingsThatAreUndone tells what counts as a consolidation whose saving did not come true.
func TestSavingsThatAreUndone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *plantest.World, at time.Time)
		why    string
	}{
		"nothing": {func(*plantest.World, time.Time) {}, ""},
		"a node for a pod that was created again": {func(w *plantest.World, at time.Time) {
			owned(w, "web-1", "web", "", at.Add(3*time.Second))
			launchFor(w, at.Add(5*time.Second), "uid-web-1")
		}, "node n1 was launched for pods that had been moved to node n0"},
		"a node for a pod that still ran on the removed node": {func(w *plantest.World, at time.Time) {
			launchFor(w, at.Add(5*time.Second), "uid-gone/web")
		}, "node n1 was launched for pods that had been moved to node n0"},
		"a node for a pod that the replacement was launched for": {func(w *plantest.World, at time.Time) {
			w.Pods = nil
			w.Nodes["c0"].Replacement, w.Nodes["c0"].InitializedAt, w.Nodes["c0"].ConsolidatedAt = true, at, time.Time{}
			w.Nodes["c0"].LaunchedFor = model.ParsePodRefs("uid-gone/web")
			launchFor(w, at.Add(5*time.Second), "uid-gone/web")
		}, "node n1 was launched for pods that had been moved to node n0"},
		"a slow drain": {func(w *plantest.World, at time.Time) {
			w.Nodes["c0"].PodsSentAt, w.Now = at.Add(4*time.Minute), at.Add(5*time.Minute)
			owned(w, "web-1", "web", "", at.Add(4*time.Minute+30*time.Second))
			launchFor(w, w.Now, "uid-web-1")
		}, "node n1 was launched for pods that had been moved to node n0"},
		"a pod that has no node": {func(w *plantest.World, at time.Time) {
			w.Now = at.Add(2 * time.Minute)
			owned(w, "web-1", "web", "", at.Add(3*time.Second))
		}, "pod default/web-1 remains pending after pods had been moved to node n0"},
		"a pod that has no node yet": {func(w *plantest.World, at time.Time) { owned(w, "web-1", "web", "", at.Add(3*time.Second)) }, ""},
		"a node for pods of another controller": {func(w *plantest.World, at time.Time) {
			owned(w, "other", "other", "", at.Add(3*time.Second))
			launchFor(w, at.Add(5*time.Second), "uid-other")
		}, ""},
		"a Deployment that grows later": {func(w *plantest.World, at time.Time) {
			w.Now = at.Add(3 * time.Minute)
			owned(w, "web-1", "web", "", at.Add(90*time.Second))
			launchFor(w, at.Add(95*time.Second), "uid-web-1")
		}, ""},
		"a node from before": {func(w *plantest.World, at time.Time) {
			owned(w, "web-1", "web", "", at.Add(3*time.Second))
			launchFor(w, at.Add(-time.Second), "uid-web-1")
		}, ""},
		"the replacement itself": {func(w *plantest.World, at time.Time) {
			owned(w, "web-1", "web", "", at.Add(3*time.Second))
			launchFor(w, at.Add(5*time.Second), "uid-web-1")
			w.Nodes["c1"].Replacement, w.Nodes["c1"].Stage = true, model.Launching
		}, ""},
		"no consolidation": {func(w *plantest.World, at time.Time) {
			w.Nodes["c0"].ConsolidatedAt = time.Time{}
			owned(w, "web-1", "web", "", at.Add(3*time.Second))
			launchFor(w, at.Add(5*time.Second), "uid-web-1")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, at := moved(t)
			c.change(w, at)
			for _, a := range guard.Undone(w.Snapshot()) {
				w.Do(a)
			}
			p := w.Pools[0].Pauses.Of(savingKey)
			if p.Why != c.why || p.Failures > 1 || p.Active(w.Now) {
				t.Errorf("%d failures, %q, want %q; paused: %v", p.Failures, p.Why, c.why, p.Active(w.Now))
			}
			if again := guard.Undone(w.Snapshot()); len(again) > 0 {
				t.Errorf("counted again: %v", again)
			}
		})
	}
}

// TestRenewalsThatAreUndone tells what counts as a replacement of a drifted node that did not serve.
func TestRenewalsThatAreUndone(t *testing.T) {
	for name, c := range map[string]struct {
		renewal        bool
		created, since time.Duration // before now
		counts         bool
	}{
		"at once":                       {true, 2 * time.Minute, time.Minute, true},
		"after twenty minutes":          {true, 21 * time.Minute, time.Minute, true},
		"after an hour":                 {true, time.Hour, time.Minute, false},
		"a node for pods":               {false, 2 * time.Minute, time.Minute, false},
		"long ago, and it cannot leave": {true, 2 * time.Hour, 119 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, 1)
			n := w.Nodes["c0"]
			n.Renewal, n.Created, n.Drifted, n.DriftedSince = c.renewal, w.Now.Add(-c.created), "NodePoolDrifted", w.Now.Add(-c.since)
			for _, a := range guard.Undone(w.Snapshot()) {
				w.Do(a)
			}
			p := w.Pools[0].Pauses.Of(renewalKey)
			if p.Failures > 0 != c.counts || c.counts && !strings.Contains(p.Why, "(NodePoolDrifted): something changes NodePool p repeatedly") {
				t.Errorf("%d failures, %q; want one: %v", p.Failures, p.Why, c.counts)
			}
		})
	}
}

// TestUndonePauses: the second failure in a row begins a pause, which holds commands with and without replacements, but
// not those for empty nodes. Afterwards commands are tried one at a time, until the effect of one has lasted.
func TestUndonePauses(t *testing.T) {
	w := plantest.New(t, 4)
	owned(w, "web-0", "web", "n0", w.Now)
	undo := func() {
		n := w.Nodes["c3"]
		n.Renewal, n.Created, n.Drifted, n.DriftedSince = true, w.Now.Add(-time.Millisecond), "NodePoolDrifted", w.Now
		for _, a := range guard.Undone(w.Snapshot()) {
			w.Do(a)
		}
	}
	command := func(reason plan.Reason, claim string) plan.Command {
		c := w.Command(claim)
		c.Reason = reason
		return c
	}
	paused := func() bool { return !guard.New(w.Snapshot()).Paused(command(plan.Drifted, "c0")).OK() }
	var waits []time.Duration
	for range 5 {
		w.Now = w.Now.Add(time.Second)
		undo()
		until := w.Pools[0].Pauses.Of(renewalKey).Until
		if until.IsZero() {
			until = w.Now
		}
		waits = append(waits, until.Sub(w.Now).Round(time.Minute))
		if paused() != until.After(w.Now) {
			t.Errorf("paused: %v, want until %s at %s", paused(), until, w.Now)
		}
		if v := guard.New(w.Snapshot()).Paused(command(plan.Empty, "c0")); !v.OK() {
			t.Errorf("the removal of an empty node waits: %+v", v.Pause)
		}
		w.Now = until
	}
	if diff := cmp.Diff([]time.Duration{0, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute}, waits); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	g := guard.New(w.Snapshot())
	first, second := g.Paused(command(plan.Drifted, "c0")), g.Paused(command(plan.Drifted, "c1"))
	if !first.OK() || second.Code != plan.Paused || second.Need != 0 {
		t.Errorf("after the pause: %+v, then %+v, want one command", first, second)
	}
	n := w.Nodes["c3"]
	n.Drifted, n.Created, w.Now = "", w.Now, w.Now.Add(30*time.Minute)
	for _, a := range guard.Undone(w.Snapshot()) {
		w.Do(a)
	}
	if left := w.Pools[0].Pauses; len(left) > 0 {
		t.Errorf("after a replacement has lasted: %v", left)
	}
}

// TestUndoneWhileProposed: a command that was proposed before the failure is abandoned, if it has done nothing yet.
func TestUndoneWhileProposed(t *testing.T) {
	for _, replacement := range []string{"", "r"} {
		t.Run(fmt.Sprintf("replacement %q", replacement), func(t *testing.T) {
			names := []string{replacement}
			if replacement == "" {
				names = nil
			}
			w, cmd := underused(t, names...)
			cmd, _ = step(w, cmd, nil)
			w.Now = w.Now.Add(5 * time.Second)
			w.Pools[0].Pauses = pause.List{{Key: savingKey, Failures: 2, At: w.Now, Until: w.Now.Add(time.Minute)}}
			cmd, got := follow(w, cmd, nil)
			if cmd.Phase != plan.Abandoned || cmd.Why.Code != plan.Paused || strings.Contains(got, "create") || strings.Contains(got, "delete") {
				t.Errorf("phase %s because %d:\n%s", cmd.Phase, cmd.Why.Code, got)
			}
			w.Clean()
		})
	}
}

// TestSavingsThatLast: the count of failures ends when a later consolidation has lasted for ten minutes.
func TestSavingsThatLast(t *testing.T) {
	for name, c := range map[string]struct {
		failed, age time.Duration // the failure, from the consolidation; the age of the consolidation
		ends        bool
	}{
		"later, and for long": {-time.Minute, 12 * time.Minute, true},
		"later":               {-time.Minute, 5 * time.Minute, false},
		"earlier":             {time.Minute, 12 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, at := moved(t)
			w.Now = at.Add(c.age)
			w.Pools[0].Pauses = pause.List{{Key: savingKey, Failures: 1, At: at.Add(c.failed)}}
			for _, a := range guard.Undone(w.Snapshot()) {
				w.Do(a)
			}
			if ended := len(w.Pools[0].Pauses) == 0; ended != c.ends {
				t.Errorf("ended: %v, want %v", ended, c.ends)
			}
		})
	}
}
