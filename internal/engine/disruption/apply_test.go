package disruption_test

import (
	"math"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// After a consolidation its pods are where it sent them, and the node that took them is left alone for the payback time;
// the snapshot that it was decided on is what it was.
func TestAfter(t *testing.T) {
	snap := tell(t, []string{"pool p after=0s policy=WhenEmptyOrUnderutilized", "node a pool=p type=large", "node b pool=p type=small", "pod x node=a", "pod y node=b"})
	p := disruption.Propose(snap, disruption.Options{})
	if len(p.Commands) != 1 || p.Commands[0].Reason != plan.Underutilized || len(p.Commands[0].Seats) != 1 {
		t.Fatalf("commands %+v", p.Commands)
	}
	cmd := p.Commands[0]
	landing := cmd.Seats[0].Node
	next := disruption.After(snap, cmd)
	n := next.Node(landing)
	if next.Node(cmd.Candidates[0].Node) != nil || len(n.Pods) != 2 || !n.ConsolidatedAt.Equal(noon) {
		t.Errorf("after: %d pods on %s, consolidated at %v", len(n.Pods), landing, n.ConsolidatedAt)
	}
	if before := snap.Node(landing); !before.ConsolidatedAt.IsZero() || len(before.Pods) != 1 {
		t.Errorf("before: %d pods, consolidated at %v", len(before.Pods), before.ConsolidatedAt)
	}
	guard := plan.NewGuard(next)
	if v := guard.Removable(n, plan.Underutilized); v.Code != plan.NodeUnsettled || !guard.SettledFrom(n).Equal(noon.Add(plan.Payback)) {
		t.Errorf("verdict %d, settled from %v", v.Code, guard.SettledFrom(n))
	}
}

// The score is the saving over the payback time by the price of moving.
func TestScore(t *testing.T) {
	snap := tell(t, []string{"pool p after=0s", "node a pool=p type=large", "node e pool=p", "pod x node=a"})
	snap.Node("a").Pods[0].EvictionCost = 1000
	of := func(node string, e disruption.Economics) (float64, bool) {
		cmd := plan.NewCommand(noon, plan.Underutilized, "single", []plan.Candidate{plan.CandidateOf(snap.Node(node))})
		cmd.Worth.Saving = 4 * model.Nano
		return disruption.Options{Economics: e}.Score(snap, &cmd)
	}
	for name, c := range map[string]struct {
		node   string
		e      disruption.Economics
		want   float64
		priced bool
	}{
		"as usual":           {"a", disruption.Economics{}, 4000, true},
		"over a day":         {"a", disruption.Economics{Payback: 24 * time.Hour}, 96000, true},
		"moving is dearer":   {"a", disruption.Economics{MovePrice: model.Nano}, 4, true},
		"moving has no cost": {"a", disruption.Economics{MovePrice: -1}, 0, false},
		"never pays":         {"a", disruption.Economics{Payback: -1}, 0, true},
		"nothing moves":      {"e", disruption.Economics{}, 0, false},
	} {
		if got, priced := of(c.node, c.e); priced != c.priced || math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("%s: score %v (%v), want %v (%v)", name, got, priced, c.want, c.priced)
		}
	}
}
