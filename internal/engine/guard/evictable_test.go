package guard_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/eviction"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// TestEvictable: the facts that block the eviction of a pod, and with it the removal of its node for any reason.
func TestEvictable(t *testing.T) {
	no := func(code plan.Code, pod, pdb string, have int64) plan.Verdict {
		return plan.Verdict{Code: code, Node: "n0", Holder: &plan.Holder{Pod: pod, PDB: pdb}, Have: have}
	}
	for name, c := range map[string]struct {
		pod    string
		change func(*plantest.World, *model.PodSpec)
		want   plan.Verdict
	}{
		"nothing":       {"web", func(*plantest.World, *model.PodSpec) {}, plan.Verdict{}},
		"allowed":       {"web", func(w *plantest.World, _ *model.PodSpec) { w.Protect("web", 1) }, plan.Verdict{}},
		"blocked":       {"web", func(w *plantest.World, _ *model.PodSpec) { w.Protect("web", 0) }, no(plan.PDBBlocks, "default/web", "default/pdb-0", 0)},
		"of other pods": {"web", func(w *plantest.World, _ *model.PodSpec) { w.Protect("db", 0) }, plan.Verdict{}},
		"two":           {"web", func(w *plantest.World, _ *model.PodSpec) { w.Protect("web", 1); w.Protect("web", 1) }, no(plan.PDBsConflict, "default/web", "default/pdb-0", 2)},
		"not ready":     {"web", func(w *plantest.World, p *model.PodSpec) { w.Protect("web", 0); p.Ready = false }, no(plan.PDBBlocks, "default/web", "default/pdb-0", 0)},
		"not ready, always": {"web", func(w *plantest.World, p *model.PodSpec) {
			w.Protect("web", 0).AlwaysEvictUnready = true
			p.Ready = false
		}, plan.Verdict{}},
		"not ready, rest healthy": {"web", func(w *plantest.World, p *model.PodSpec) { w.Protect("web", 0).Healthy = true; p.Ready = false }, plan.Verdict{}},
		"ready, rest healthy":     {"web", func(w *plantest.World, _ *model.PodSpec) { w.Protect("web", 0).Healthy = true }, no(plan.PDBBlocks, "default/web", "default/pdb-0", 0)},
		"ready, always":           {"web", func(w *plantest.World, _ *model.PodSpec) { w.Protect("web", 0).AlwaysEvictUnready = true }, no(plan.PDBBlocks, "default/web", "default/pdb-0", 0)},
		"daemon":                  {"daemon", func(w *plantest.World, _ *model.PodSpec) { w.Protect("daemon", 0) }, no(plan.PDBBlocks, "default/daemon", "default/pdb-0", 0)},
		"daemon that stays": {"daemon", func(w *plantest.World, p *model.PodSpec) {
			w.Protect("daemon", 0)
			p.Tolerations = []model.Toleration{{Exists: true}}
		}, plan.Verdict{}},
		"tolerates another effect": {"web", func(w *plantest.World, p *model.PodSpec) {
			w.Protect("web", 0)
			p.Tolerations = []model.Toleration{{Exists: true, Effect: model.NoExecute}}
		}, no(plan.PDBBlocks, "default/web", "default/pdb-0", 0)},
		"mirror pod":       {"daemon", func(w *plantest.World, p *model.PodSpec) { w.Protect("daemon", 0); p.Controller.Kind = "Node" }, plan.Verdict{}},
		"leaving already":  {"web", func(w *plantest.World, p *model.PodSpec) { w.Protect("web", 0); p.Terminating = true }, plan.Verdict{}},
		"protected":        {"web", func(_ *plantest.World, p *model.PodSpec) { p.ProtectedUntil = plantest.Noon.Add(time.Second) }, no(plan.NodeProtected, "default/web", "", 0)},
		"protection ended": {"web", func(_ *plantest.World, p *model.PodSpec) { p.ProtectedUntil = plantest.Noon }, plan.Verdict{}},
		"protected mirror pod": {"daemon", func(_ *plantest.World, p *model.PodSpec) {
			p.Controller.Kind = "Node"
			p.ProtectedUntil = model.Forever
		}, no(plan.NodeProtected, "default/daemon", "", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, 2)
			w.Pools[0].Policy = "Balanced"
			w.Nodes["c0"].Drifted = "NodePoolDrifted"
			w.Bind(c.pod, "n0")
			w.Bind("quiet", "n0")
			c.change(w, &w.Pods[0])
			snap := w.Snapshot()
			g := guard.New(snap)
			var pod *model.Pod
			for _, p := range snap.Node("n0").Pods {
				if p.Name == c.pod {
					pod = p
				}
			}
			if diff := cmp.Diff(c.want, eviction.Allowed(snap, pod)); diff != "" {
				t.Errorf("verdict about the pod (-want +got):\n%s", diff)
			}
			for _, reason := range []plan.Reason{plan.Underutilized, plan.Drifted, plan.Expired} {
				if diff := cmp.Diff(c.want, g.Removable(snap.Node("n0"), reason)); diff != "" {
					t.Errorf("verdict about the node, %s (-want +got):\n%s", reason, diff)
				}
			}
			// A claim that limits the drain: protected pods delay the removal but do not prevent it.
			w.Nodes["c0"].DrainBounded = true
			snap = w.Snapshot()
			g = guard.New(snap)
			for reason, want := range map[plan.Reason]plan.Code{plan.Underutilized: c.want.Code, plan.Drifted: plan.OK, plan.Expired: plan.OK} {
				if got := g.Removable(snap.Node("n0"), reason); got.Code != want {
					t.Errorf("with a bounded drain, %s: verdict %d, want %d", reason, got.Code, want)
				}
			}
		})
	}
}

// An empty node with a daemon that cannot be evicted could not be drained.
func TestEmptyNodeWithBlockedDaemon(t *testing.T) {
	w := plantest.New(t, 1)
	w.Bind("daemon", "n0")
	w.Protect("daemon", 0)
	if v := guard.Check(w.Snapshot(), w.Command("c0")); v.Code != plan.PDBBlocks || v.Holder.Pod != "default/daemon" {
		t.Errorf("verdict %+v", v)
	}
	w.PDBs[0].Allowed = 1
	if v := guard.Check(w.Snapshot(), w.Command("c0")); !v.OK() {
		t.Errorf("verdict %+v", v)
	}
}

// TestObstacles: all that keeps a node is listed, where Removable and Admit name the first.
func TestObstacles(t *testing.T) {
	w := plantest.New(t, 2)
	w.Pools[0].Policy = "WhenEmpty"
	w.Nodes["c0"].DoNotDisrupt = true
	w.Bind("web", "n0")
	w.Bind("db", "n0")
	w.Bind("quiet", "n0")
	w.Pods[0].ProtectedUntil = model.Forever
	w.Protect("web", 0)
	w.Protect("db", 0)
	w.Pools[0].Budgets = []model.Budget{{Count: 1}}
	w.Nodes["c1"].Ready = false
	snap := w.Snapshot()
	var got []string
	for _, v := range guard.New(snap).Obstacles(snap.Node("n0")) {
		if v.Node != "n0" && v.Pool == "" {
			t.Errorf("%+v names no node", v)
		}
		text := explain.Code(v.Code)
		if v.Holder != nil {
			text += " " + v.Holder.Pod + " " + v.Holder.PDB
		}
		got = append(got, text)
	}
	want := []string{"NodeProtected", "PolicyForbids", "PDBBlocks default/db default/pdb-1", "NodeProtected default/web ",
		"PDBBlocks default/web default/pdb-0", "BudgetExhausted"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("obstacles (-want +got):\n%s", diff)
	}
	w.Nodes["c0"].DoNotDisrupt, w.Nodes["c1"].Ready, w.Pools[0].Policy = false, true, "Balanced"
	w.PDBs, w.Pods[0].ProtectedUntil = nil, time.Time{}
	snap = w.Snapshot()
	if got := guard.New(snap).Obstacles(snap.Node("n0")); len(got) > 0 {
		t.Errorf("a node that nothing keeps has the obstacles %+v", got)
	}
}

// The node's own protection, and a nomination to it, always block the removal.
func TestBoundedDrainDoesNotForceEverything(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plantest.World)
		want   plan.Code
	}{
		"protected node": {func(w *plantest.World) { w.Nodes["c0"].DoNotDisrupt = true }, plan.NodeProtected},
		"nominated":      {func(w *plantest.World) { w.Pend("web", "n0") }, plan.NodeNominated},
		"not drifted":    {func(w *plantest.World) { w.Nodes["c0"].Drifted = "" }, plan.NodeNotDrifted},
	} {
		w := plantest.New(t, 1)
		w.Nodes["c0"].DrainBounded, w.Nodes["c0"].Drifted = true, "x"
		c.change(w)
		snap := w.Snapshot()
		if v := guard.New(snap).Removable(snap.Node("n0"), plan.Drifted); v.Code != c.want {
			t.Errorf("%s: verdict %d, want %d", name, v.Code, c.want)
		}
	}
}

// The result of a consolidation is left unchanged for a moment. A node launched for pods, or in place of a drifted node, is
// consolidated as soon as consolidateAfter has passed.
func TestSettled(t *testing.T) {
	replacement := func(n *model.NodeSpec) { n.Replacement = true }
	for name, c := range map[string]struct {
		change func(*plantest.World, *model.NodeSpec)
		until  time.Duration // from the initialization, 0 for settled
	}{
		"launched by hand":            {func(*plantest.World, *model.NodeSpec) {}, 0},
		"launched for the pods on it": {func(_ *plantest.World, n *model.NodeSpec) { n.LaunchedFor = model.ParsePodRefs("uid-a uid-b") }, 0},
		"replacement":                 {func(_ *plantest.World, n *model.NodeSpec) { replacement(n) }, guard.Settling},
		"empty replacement":           {func(w *plantest.World, n *model.NodeSpec) { replacement(n); w.Pods = nil }, 0},
		"pods were sent here": {func(_ *plantest.World, n *model.NodeSpec) { n.ConsolidatedAt = n.InitializedAt.Add(30 * time.Minute) },
			30*time.Minute + guard.Settling},
		"pods were sent before it was ready": {func(_ *plantest.World, n *model.NodeSpec) {
			n.Replacement, n.ConsolidatedAt = true, n.InitializedAt.Add(-time.Minute)
		}, guard.Settling},
		"the pods that were sent are gone": {func(w *plantest.World, n *model.NodeSpec) { n.ConsolidatedAt, w.Pods = n.InitializedAt, nil }, 0},
		"not initialized": {func(_ *plantest.World, n *model.NodeSpec) {
			replacement(n)
			n.Created, n.InitializedAt = n.InitializedAt, time.Time{}
		}, guard.Settling},
	} {
		t.Run(name, func(t *testing.T) {
			w := plantest.New(t, 2)
			w.Pools[0].Policy = "Balanced"
			w.Bind("a", "n0")
			w.Bind("b", "n0")
			w.Bind("c", "n1")
			n := w.Nodes["c0"]
			since := n.InitializedAt
			c.change(w, n)
			var want time.Time
			if c.until > 0 {
				want = since.Add(c.until)
			}
			ask := func(now time.Time) plan.Code {
				w.Now = now
				snap := w.Snapshot()
				g := guard.New(snap)
				if got := g.SettledFrom(snap.Node("n0")); !got.Equal(want) {
					t.Errorf("settled from %v, want %v", got, want)
				}
				return g.Removable(snap.Node("n0"), plan.Underutilized).Code
			}
			if c.until == 0 {
				if got := ask(since.Add(time.Minute)); got != plan.OK {
					t.Errorf("verdict %d", got)
				}
				return
			}
			if got := ask(want.Add(-time.Second)); got != plan.NodeUnsettled {
				t.Errorf("before: verdict %d, want %d", got, plan.NodeUnsettled)
			}
			if got := ask(want); got != plan.OK {
				t.Errorf("then: verdict %d", got)
			}
		})
	}
}
