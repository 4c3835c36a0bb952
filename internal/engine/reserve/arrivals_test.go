package reserve_test

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// A node that was launched to replace another is not removed as unused before its pods are bound. n0 is empty. A pod
// runs on n1, and is protected where the case says so.
func TestLaunchedNodesAreAwaited(t *testing.T) {
	command := func(w *plantest.World, phase plan.Phase, buys string) {
		c := w.Command("c1")
		c.Phase, c.Reason = phase, plan.Underutilized
		c.Replacements = []plan.NewClaim{{Name: buys, Pool: "p", PoolUID: "pool-uid"}}
		w.Nodes["c1"].Command = c.Encode()
	}
	landing := func(w *plantest.World, phase plan.Phase, uid string) {
		c := w.Command("c1")
		c.Phase, c.Reason, c.Destinations = phase, plan.Drifted, []plan.Destination{{Claim: "c0", ClaimUID: uid}}
		w.Nodes["c1"].Command = c.Encode()
	}
	launchedFor := func(w *plantest.World) { w.Nodes["c0"].LaunchedFor = model.ParsePodRefs("uid-web") }
	for _, test := range []struct {
		name string
		has  func(*plantest.World)
		want plan.Code
	}{
		{"launched for no pod that moves", func(w *plantest.World) { launchedFor(w) }, plan.OK},
		{"the node of its pod is deleted", func(w *plantest.World) { launchedFor(w); w.Nodes["c1"].Deleting = true }, plan.NodeNominated},
		{"the node of its pod is in a command that may come to nothing", func(w *plantest.World) { launchedFor(w); command(w, plan.Proposed, "other") }, plan.OK},
		{"the node of its pod is in a command with replacements", func(w *plantest.World) { launchedFor(w); command(w, plan.Launching, "other") }, plan.NodeNominated},
		{"its pod may not be evicted", func(w *plantest.World) {
			launchedFor(w)
			w.Nodes["c1"].Deleting = true
			w.Pods[0].ProtectedUntil = model.Forever
		}, plan.OK},
		{"it is a replacement", func(w *plantest.World) { command(w, plan.Proposed, "c0") }, plan.NodeNominated},
		{"it is a replacement for unknown pods", func(w *plantest.World) { command(w, plan.Draining, "c0"); w.Nodes["c1"].Deleting = true }, plan.NodeNominated},
		{"another node is a replacement", func(w *plantest.World) { command(w, plan.Draining, "c2") }, plan.OK},
		{"a command sends pods there", func(w *plantest.World) { landing(w, plan.Proposed, "uid-c0") }, plan.NodeNominated},
		{"a command sends pods elsewhere", func(w *plantest.World) { landing(w, plan.Proposed, "uid-c2") }, plan.OK},
		{"a command that was taken back sent pods there", func(w *plantest.World) { landing(w, plan.Abandoned, "uid-c0") }, plan.OK},
		{"an annotation cannot be read", func(w *plantest.World) { launchedFor(w); w.Nodes["c1"].Command = "{" }, plan.OK},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := plantest.New(t, 2)
			w.Bind("web", "n1")
			test.has(w)
			snap := w.Snapshot()
			if got := guard.New(snap).Removable(snap.Node("n0"), plan.Empty); got.Code != test.want {
				t.Errorf("got code %d, want %d", got.Code, test.want)
			}
		})
	}
}

// Nodes without a claim are not awaited when a command moves pods to another node without a claim.
func TestForeignNodesAreNotAwaited(t *testing.T) {
	w := plantest.New(t, 2)
	w.Bind("web", "n1")
	w.Nodes["c0"].Claim, w.Nodes["c0"].ClaimUID = "", ""
	c := w.Command("c1")
	c.Reason, c.Destinations = plan.Underutilized, []plan.Destination{{Node: "other", NodeUID: "uid-other",
		Pods: model.ParsePodRefs("uid-web")}}
	w.Nodes["c1"].Command = c.Encode()
	snap := w.Snapshot()
	if reserve.ArrivalsOf(snap).Awaits(snap.Node("n0")) {
		t.Error("pods that go to another node are awaited on n0")
	}
}

// A node whose pods are still pending is kept for a minute after its initialization, even where no pod is nominated to
// it.
func TestPendingPodsAreAwaited(t *testing.T) {
	for name, test := range map[string]struct {
		launchedFor string
		opened      time.Duration
		want        plan.Code
	}{
		"its pod is pending":                 {"uid-web", 59 * time.Second, plan.NodeNominated},
		"its pod is pending after a minute":  {"uid-web", time.Minute, plan.OK},
		"another pod is pending":             {"uid-other", 59 * time.Second, plan.OK},
		"it was launched for no pod we know": {"", 59 * time.Second, plan.OK},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, 2)
			w.Pend("web", "")
			w.Nodes["c0"].InitializedAt = plantest.Noon.Add(-test.opened)
			if test.launchedFor != "" {
				w.Nodes["c0"].LaunchedFor = model.ParsePodRefs(test.launchedFor)
			}
			snap := w.Snapshot()
			if got := guard.New(snap).Removable(snap.Node("n0"), plan.Empty); got.Code != test.want {
				t.Errorf("got code %d, want %d", got.Code, test.want)
			}
		})
	}
}
