package guard_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// An empty node that pods were sent to is kept for a minute, or until a pod is bound.
func TestEmptyNodeExpectsPods(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*model.NodeSpec)
		kept   time.Duration
	}{
		"pods were sent":    {func(*model.NodeSpec) {}, reserve.Arrival},
		"no pod was":        {func(n *model.NodeSpec) { n.PodsSentAt = time.Time{} }, 0},
		"a pod left before": {func(n *model.NodeSpec) { n.LastPodEvent = plantest.Noon.Add(-time.Minute) }, reserve.Arrival},
		"they came and left": {func(n *model.NodeSpec) {
			n.LastPodEvent = plantest.Noon.Add(time.Second)
			n.InitializedAt = plantest.Noon.Add(-time.Hour)
		}, 0},
		"a consolidation bought it": {func(n *model.NodeSpec) { n.PodsSentAt, n.Replacement = time.Time{}, true }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, 1)
			w.Pools[0].ConsolidateAfter = 0
			w.Nodes["c0"].PodsSentAt = plantest.Noon
			c.change(w.Nodes["c0"])
			for _, ask := range []struct {
				after time.Duration
				want  plan.Code
			}{{c.kept - time.Second, plan.NodeExpecting}, {c.kept, plan.OK}} {
				if ask.after < 0 {
					continue
				}
				w.Now = plantest.Noon.Add(max(ask.after, time.Second))
				snap := w.Snapshot()
				if got := guard.New(snap).Removable(snap.Node("n0"), plan.Empty).Code; got != ask.want {
					t.Errorf("after %v: verdict %d, want %d", ask.after, got, ask.want)
				}
			}
		})
	}
}

// A snapshot may set a longer arrival time.
func TestSnapshotSaysHowLongPodsTake(t *testing.T) {
	w := plantest.New(t, 1)
	w.Pools[0].ConsolidateAfter = 0
	w.Nodes["c0"].PodsSentAt = plantest.Noon
	w.Now = plantest.Noon.Add(59 * time.Minute)
	snap := w.Snapshot()
	for arrival, want := range map[time.Duration]plan.Code{time.Hour: plan.NodeExpecting, 30 * time.Minute: plan.OK, 0: plan.OK} {
		snap.Arrival = arrival
		if got := guard.New(snap).Removable(snap.Node("n0"), plan.Empty).Code; got != want {
			t.Errorf("with %v: verdict %d, want %d", arrival, got, want)
		}
	}
}

// A time on a claim that is far in the future, from a fast clock or a manual edit, is ignored: it protects no empty
// node, and is overwritten.
func TestExpectedInTheFuture(t *testing.T) {
	for ahead, want := range map[time.Duration]struct {
		removable plan.Code
		told      string
	}{
		time.Second:                    {plan.NodeExpecting, ""},
		reserve.Arrival:                {plan.NodeExpecting, ""},
		reserve.Arrival + time.Second:  {plan.OK, sentToC2},
		100 * 365 * 24 * time.Hour:     {plan.OK, sentToC2},
		-reserve.Arrival + time.Second: {plan.NodeExpecting, ""},
	} {
		w := plantest.New(t, 3)
		w.Pools[0].ConsolidateAfter = 0
		w.Nodes["c2"].PodsSentAt = plantest.Noon.Add(ahead)
		snap := w.Snapshot()
		if got := guard.New(snap).Removable(snap.Node("n2"), plan.Empty).Code; got != want.removable {
			t.Errorf("%v ahead: verdict %d, want %d", ahead, got, want.removable)
		}
		if until := reserve.ExpectingUntil(snap, snap.Node("n2")); until.After(plantest.Noon.Add(2 * reserve.Arrival)) {
			t.Errorf("%v ahead: kept until %v", ahead, until)
		}
		if ahead < 0 {
			continue
		}
		w.Bind("web-0", "n0")
		w.Nodes["c0"].Deleting, w.Nodes["c2"].LaunchedFor = true, model.ParsePodRefs("uid-web-0")
		if got := plantest.Texts(reserve.Arriving(w.Snapshot())); got != want.told {
			t.Errorf("%v ahead, without a command: actions %q, want %q", ahead, got, want.told)
		}
		w, cmd := moves(t)
		w.Nodes["c2"].PodsSentAt = plantest.Noon.Add(ahead)
		cmd.Phase, cmd.Replacements = plan.Draining, nil
		for _, c := range []string{"c0", "c1"} {
			w.Nodes[c].Command, w.Nodes[c].Disrupted, w.Nodes[c].Deleting = cmd.Encode(), true, true
		}
		if _, actions := step(w, cmd, nil); strings.Contains(plantest.Texts(actions), sentToC2) != (want.told != "") {
			t.Errorf("%v ahead, with a command: actions %q, want %q", ahead, plantest.Texts(actions), want.told)
		}
	}
}

// A failing write does not prolong a command: it is retried for as long as the record would be valid after the last
// candidate is gone, and then the command is over.
func TestNoticesThatFail(t *testing.T) {
	w, cmd := moves(t)
	w.Add("r", "r")
	cmd.Phase, cmd.PhaseSince = plan.Draining, plantest.Noon
	delete(w.Nodes, "c0")
	delete(w.Nodes, "c1")
	for after := time.Duration(0); after <= reserve.Arrival; after += 15 * time.Second { // none of the writes succeeds
		w.Now = plantest.Noon.Add(time.Hour + after)
		next, actions := guard.Step(w.Snapshot(), cmd)
		if cmd = next; cmd.Phase != plan.Draining || !strings.Contains(plantest.Texts(actions), sentToC2) {
			t.Fatalf("after %v: phase %s, %q", after, cmd.Phase, plantest.Texts(actions))
		}
	}
	w.Now = w.Now.Add(time.Second)
	if next, actions := guard.Step(w.Snapshot(), cmd); next.Phase != plan.Done || len(actions) != 0 {
		t.Errorf("then: phase %s, %q", next.Phase, plantest.Texts(actions))
	}
}

// moves returns a command that launches r for a pod of n0, and has capacity for another pod on n2.
func moves(t testing.TB) (*plantest.World, plan.Command) {
	w, cmd := underused(t, "r")
	cmd.Replacements[0].Refs = model.ParsePodRefs("uid-web-0/set")
	cmd.Destinations = []plan.Destination{{Claim: "c2", ClaimUID: w.Nodes["c2"].ClaimUID, Pods: model.ParsePodRefs("uid-web-1/set")}}
	return w, cmd
}

// wantDone verifies that a command has been carried out.
func wantDone(t *testing.T, cmd plan.Command) {
	t.Helper()
	if cmd.Phase != plan.Done {
		t.Errorf("the command is %s, want %s", cmd.Phase, plan.Done)
	}
}

// wantCount verifies how often steps contain a text.
func wantCount(t *testing.T, steps, text string, want int) {
	t.Helper()
	if n := strings.Count(steps, text); n != want {
		t.Errorf("%d times %q, want %d:\n%s", n, text, want, steps)
	}
}

const sentToR, sentToC2 = "note on claim r that pods are sent to it", "note on claim c2 that pods are sent to it"

// The claims of all nodes that pods are sent to are marked, once, for any reason; claims of other nodes are not.
func TestSendingIsNoted(t *testing.T) {
	w, cmd := moves(t)
	cmd, got := run(w, cmd)
	wantDone(t, cmd)
	wantCount(t, got, sentToR, 1)
	wantCount(t, got, sentToC2, 1)
	w.Clean()

	w, cmd = moves(t)
	w.Nodes["c0"].Drifted, w.Nodes["c1"].Drifted, cmd.Reason, cmd.Method = "x", "x", plan.Drifted, ""
	cmd.Destinations[0].Pods = nil
	cmd, got = run(w, cmd)
	wantDone(t, cmd)
	wantCount(t, got, sentToR, 1)
	wantCount(t, got, sentToC2, 0)
}

// A drain may take long. When more of its pods have been evicted, the claims of their target nodes are marked again,
// also when the candidates disappeared between two passes. A process that resumes the command marks them at once. A
// drain without progress marks none.
func TestSendingIsNotedWhenPodsLeave(t *testing.T) {
	w, cmd := moves(t)
	w.Add("r", "r")
	cmd.Phase, cmd.PhaseSince = plan.Draining, plantest.Noon
	for _, c := range []string{"c0", "c1"} {
		w.Nodes[c].Command, w.Nodes[c].Disrupted, w.Nodes[c].Deleting = cmd.Encode(), true, true
	}
	const both, none = sentToC2 + "\n" + sentToR, ""
	for _, s := range []struct {
		after  time.Duration
		change func()
		want   string
	}{
		{0, func() {}, both},
		{time.Hour, func() {}, none},
		{time.Hour, func() { w.Nodes["c0"].LastPodEvent = plantest.Noon.Add(59 * time.Minute) }, both},
		{time.Hour + time.Minute, func() {}, none},
		{time.Hour + 70*time.Second, func() { w.Nodes["c1"].LastPodEvent = plantest.Noon.Add(time.Hour + 65*time.Second) }, both},
		{time.Hour + 80*time.Second, func() { w.Nodes["c1"].LastPodEvent = plantest.Noon.Add(time.Hour + 80*time.Second) }, none},
		{time.Hour + 101*time.Second, func() { delete(w.Nodes, "c0") }, both},
		{2 * time.Hour, func() { delete(w.Nodes, "c1") }, both},
		// another process
		{2*time.Hour + 2*time.Second, func() { cmd.PhaseSince = plantest.Noon.Add(2*time.Hour + time.Second) }, both},
	} {
		s.change()
		w.Now = plantest.Noon.Add(s.after)
		next, actions := step(w, cmd, nil)
		actions = slices.DeleteFunc(actions, func(a plan.Action) bool { _, notice := a.(plan.MarkPodsSent); return !notice })
		if got := plantest.Texts(actions); got != s.want || next.Phase != plan.Draining {
			t.Errorf("after %v: phase %s, actions %q, want %q", s.after, next.Phase, got, s.want)
		}
	}
	if done, actions := step(w, cmd, nil); done.Phase != plan.Done || len(actions) != 0 {
		t.Errorf("then: phase %s, %q", done.Phase, plantest.Texts(actions))
	}
}

// A node is deleted without a command, and another was launched for its pods. Until they are evicted its claim is
// marked, twice a minute while they may be evicted.
func TestNoticesWithoutACommand(t *testing.T) {
	leaving := func() *plantest.World {
		w := plantest.New(t, 3)
		w.Bind("web-0", "n0")
		w.Bind("web-1", "n1")
		w.Nodes["c0"].Deleting = true
		w.Nodes["c1"].LaunchedFor, w.Nodes["c2"].LaunchedFor = model.ParsePodRefs("uid-web-1"), model.ParsePodRefs("uid-gone uid-web-0")
		return w
	}
	for name, c := range map[string]struct {
		change func(*plantest.World)
		want   string
	}{
		"as it is": {func(*plantest.World) {}, sentToC2},
		"it may not go now": {func(w *plantest.World) {
			w.Protect("web-0", 0)
			w.Nodes["c2"].PodsSentAt = plantest.Noon.Add(-time.Hour)
		}, ""},
		"and nothing was recorded": {func(w *plantest.World) { w.Protect("web-0", 0) }, sentToC2},
		"in flight":                {func(w *plantest.World) { w.Nodes["c2"].Stage = model.Launching }, sentToC2},
		"told just now":            {func(w *plantest.World) { w.Nodes["c2"].PodsSentAt = plantest.Noon.Add(-30 * time.Second) }, ""},
		"told a while ago":         {func(w *plantest.World) { w.Nodes["c2"].PodsSentAt = plantest.Noon.Add(-31 * time.Second) }, sentToC2},
		"no node leaves":           {func(w *plantest.World) { w.Nodes["c0"].Deleting = false }, ""},
		"leaves too":               {func(w *plantest.World) { w.Nodes["c2"].Deleting = true }, ""},
		"a command sees to it":     {func(w *plantest.World) { cmd := w.Command("c0"); w.Nodes["c0"].Command = cmd.Encode() }, ""},
		"the pod may not leave":    {func(w *plantest.World) { w.Pods[0].ProtectedUntil = model.Forever }, ""},
		"the pod is gone":          {func(w *plantest.World) { w.Pods = w.Pods[1:] }, ""},
		"the pod is a daemon's":    {func(w *plantest.World) { w.Pods[0].Daemon, w.Pods[0].Reschedulable = true, false }, ""},
		"the claim is not known":   {func(w *plantest.World) { w.Nodes["c2"].Claim, w.Nodes["c2"].ClaimUID = "", "" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := leaving()
			c.change(w)
			if got := plantest.Texts(reserve.Arriving(w.Snapshot())); got != c.want {
				t.Errorf("actions %q, want %q", got, c.want)
			}
		})
	}
}
