package offline

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/plugin/top"
)

// TestDrainOutcome checks that the state of a drain names pods, obstacle, duration and end, for each kind of obstacle.
func TestDrainOutcome(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	budget := func(name string, b *model.Builder) {
		b.UpsertPDB(model.PDBSpec{UID: name, Namespace: "shop", Name: name, Selector: model.Selector{
			Namespaces: []string{"shop"}}})
	}
	for name, test := range map[string]struct {
		claim  func(*model.NodeSpec)
		pods   func(*model.PodSpec)
		budget []string
		ends   map[string]time.Time
		want   string
	}{
		"budget": {budget: []string{"web"}, want: `  is being deleted since 2026-01-01T11:30:00Z (30m0s); its drain waits for 2 pods
    PodDisruptionBudget shop/web allows no eviction of pod shop/a and 1 other pod on node n now
    the drain has no time limit: the claim has no terminationGracePeriod
`},
		"budget, bounded": {budget: []string{"web"}, claim: func(n *model.NodeSpec) { n.DrainEnds = now.Add(time.Hour) },
			want: `  is being deleted since 2026-01-01T11:30:00Z (30m0s); its drain waits for 2 pods
    PodDisruptionBudget shop/web allows no eviction of pod shop/a and 1 other pod on node n now
    at 2026-01-01T13:00:00Z the remaining pods are deleted, regardless of what protects them
`},
		"protected for a time": {pods: func(p *model.PodSpec) { p.ProtectedUntil = now.Add(5 * time.Minute) },
			want: `  is being deleted since 2026-01-01T11:30:00Z (30m0s); its drain waits for 2 pods
    node n is protected by the annotation karpenter.sh/do-not-disrupt of pod shop/a and 1 other pod until 2026-01-01T12:05:00Z
    the drain has no time limit: the claim has no terminationGracePeriod
`},
		"long grace period": {pods: func(p *model.PodSpec) { p.Terminating = true }, ends: map[string]time.Time{"shop/a": now.Add(time.Hour)},
			want: `  is being deleted since 2026-01-01T11:30:00Z (30m0s); its drain waits for 2 pods
    pod shop/a is terminating, with a grace period until 2026-01-01T13:00:00Z
`},
		"a minute of grace": {pods: func(p *model.PodSpec) { p.Terminating = true },
			ends: map[string]time.Time{"shop/a": now.Add(time.Minute), "shop/b": now.Add(50 * time.Second)},
			want: `  is being deleted since 2026-01-01T11:30:00Z (30m0s); its drain waits for 2 pods
    pod shop/a and 1 other pod are terminating, with a grace period until 2026-01-01T12:01:00Z
`},
		"one of two has ended its grace period": {pods: func(p *model.PodSpec) { p.Terminating = true },
			ends: map[string]time.Time{"shop/a": now.Add(time.Minute), "shop/b": now.Add(-time.Hour)},
			want: `  is being deleted since 2026-01-01T11:30:00Z (30m0s); its drain waits for 2 pods
    pod shop/b is terminating, and the kubelet has not reported the end by 2026-01-01T11:00:00Z
    pod shop/a is terminating, with a grace period until 2026-01-01T12:01:00Z
    the drain has no time limit: the claim has no terminationGracePeriod
`},
		"silent kubelet": {pods: func(p *model.PodSpec) { p.Terminating = true },
			ends: map[string]time.Time{"shop/a": now.Add(-time.Hour), "shop/b": now.Add(-time.Hour)},
			want: `  is being deleted since 2026-01-01T11:30:00Z (30m0s); its drain waits for 2 pods
    pod shop/a and 1 other pod are terminating, and the kubelet has not reported the end by 2026-01-01T11:00:00Z
    the drain has no time limit: the claim has no terminationGracePeriod
`},
		"nothing blocks it": {want: "  is being deleted since 2026-01-01T11:30:00Z (30m0s); its drain waits for 2 pods\n"},
	} {
		b := model.NewBuilder()
		b.UpsertPool(model.PoolSpec{Name: "default"})
		n := model.NodeSpec{Name: "n", Claim: "c", Pool: "default", Stage: model.Initialized, Deleting: true,
			DeletingSince: now.Add(-30 * time.Minute)}
		if test.claim != nil {
			test.claim(&n)
		}
		b.UpsertNode(n)
		for _, pod := range []string{"a", "b"} {
			p := model.PodSpec{UID: pod, Namespace: "shop", Name: pod, State: model.Bound, Node: "n", Ready: true}
			if test.pods != nil {
				test.pods(&p)
			}
			b.UpsertPod(p)
		}
		for _, pdb := range test.budget {
			budget(pdb, b)
		}
		snap := b.Snapshot(now)
		var text strings.Builder
		drain := removals{ends: test.ends}.drainOf(snap, snap.Node("n"))
		drain.write(&text, now)
		if diff := cmp.Diff(test.want, text.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		line := nodeLineOf(snap, snap.Node("n"), removals{ends: test.ends})
		blocked := strings.Contains(test.want, "no time limit") || strings.Contains(test.want, "regardless")
		kept := disruption.Kept{Node: "n", Verdict: plan.Verdict{Code: plan.NodeLeaving, Node: "n"}}
		d := &DisruptDecision{last: snap, removed: removals{ends: test.ends}, proposal: disruption.Proposal{Kept: []disruption.Kept{kept}}}
		if message := d.keptNodes()[0].Reasons[0].Message; strings.HasPrefix(message, "node n is being removed; ") != blocked {
			t.Errorf("%s: simulate says %s", name, message)
		}
		if (line.State == top.StateBlocked) != blocked || (line.Drain != "") != blocked || line.Leaving != 1800 {
			t.Errorf("%s: the line of top has state %s, obstacle %q, %v s", name, line.State, line.Drain, line.Leaving)
		}
	}
}
