package disruption_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestAfter checks that the pods of a consolidated node are on the planned node, that this node is not consolidated
// at once, and that the original snapshot is unchanged.
func TestAfter(t *testing.T) {
	snap := tell(t, []string{"pool p after=0s policy=WhenEmptyOrUnderutilized", "node a pool=p type=large", "node b pool=p type=small", "pod x node=a", "pod y node=b"})
	p := disruption.Propose(snap, disruption.Options{})
	if len(p.Commands) != 1 {
		t.Fatalf("commands %+v, want one", p.Commands)
	}
	cmd := p.Commands[0]
	if cmd.Reason != plan.Underutilized || len(cmd.Assignments) != 1 {
		t.Fatalf("command %+v, want a consolidation that moves the pods of one node", cmd)
	}
	destination := cmd.Assignments[0].Node
	next := disruption.After(snap, cmd)
	n := next.Node(destination)
	if gone := cmd.Candidates[0].Node; next.Node(gone) != nil {
		t.Errorf("after: node %s still exists", gone)
	}
	if len(n.Pods) != 2 || !n.ConsolidatedAt.Equal(noon) {
		t.Errorf("after: %d pods on %s, consolidated at %v, want 2 and %v", len(n.Pods), destination, n.ConsolidatedAt, noon)
	}
	if before := snap.Node(destination); !before.ConsolidatedAt.IsZero() || len(before.Pods) != 1 {
		t.Errorf("before: %d pods, consolidated at %v", len(before.Pods), before.ConsolidatedAt)
	}
	g := guard.New(next)
	if v := g.Removable(n, plan.Underutilized); v.Code != plan.NodeUnsettled || !g.SettledFrom(n).Equal(noon.Add(guard.Settling)) {
		t.Errorf("verdict %d, settled from %v", v.Code, g.SettledFrom(n))
	}
}

// TestScore checks that the score is the saving over the payback time divided by the price of moving.
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

// TestRepeatedMoveOfCheapPods: within the minimum stay a pod of negative cost counts as an ordinary one, and one of a higher
// cost as before.
func TestRepeatedMoveOfCheapPods(t *testing.T) {
	for cost, want := range map[int64]int64{-1000: model.Nano / 50, 0: model.Nano / 50, 5000: model.Nano / 10} {
		snap := tell(t, []string{"pool p after=0s policy=WhenEmptyOrUnderutilized", "node a pool=p type=large", "pod x node=a"})
		n := snap.Node("a")
		n.Pods[0].EvictionCost = cost
		first := (disruption.Options{}).PriceOfMoving(snap, n)
		spec := *n.NodeSpec
		spec.ConsolidatedAt = noon.Add(-time.Minute)
		n.NodeSpec = &spec
		if got := (disruption.Options{}).PriceOfMoving(snap, n); got != want || first != max(0, cost)*model.Nano/1_000_000 {
			t.Errorf("cost %d: the prices are %d and then %d, want %d and %d", cost, first, got, max(0, cost)*model.Nano/1_000_000, want)
		}
	}
}

// TestRepeatedMove checks that moving pods again within the minimum stay has RepeatedMove times the price, also where moving
// is free, and that Propose wakes when it ends.
func TestRepeatedMove(t *testing.T) {
	for name, c := range map[string]struct {
		ago  time.Duration // since the consolidation
		e    disruption.Economics
		pool model.PoolSpec
		want int64
	}{
		"never consolidated":     {0, disruption.Economics{}, model.PoolSpec{}, model.Nano / 1000},
		"just now":               {time.Minute, disruption.Economics{}, model.PoolSpec{}, model.Nano / 50},
		"an hour ago":            {time.Hour, disruption.Economics{}, model.PoolSpec{}, model.Nano / 1000},
		"moving has its price":   {time.Minute, disruption.Economics{MovePrice: model.Nano}, model.PoolSpec{}, 20 * model.Nano},
		"moving is free":         {time.Minute, disruption.Economics{MovePrice: -1}, model.PoolSpec{}, model.Nano / 50},
		"no minimum stay":        {time.Minute, disruption.Economics{MinStay: -1}, model.PoolSpec{}, model.Nano / 1000},
		"a short minimum stay":   {time.Minute, disruption.Economics{MinStay: 30 * time.Second}, model.PoolSpec{}, model.Nano / 1000},
		"of the pool":            {time.Hour, disruption.Economics{}, model.PoolSpec{MinStay: 2 * time.Hour}, model.Nano / 50},
		"of the pool's payback":  {time.Hour, disruption.Economics{}, model.PoolSpec{Payback: 2 * time.Hour}, model.Nano / 50},
		"the pool has none":      {time.Minute, disruption.Economics{}, model.PoolSpec{MinStay: -1, Payback: 2 * time.Hour}, model.Nano / 1000},
		"and its price, as well": {time.Minute, disruption.Economics{}, model.PoolSpec{MovePrice: model.Nano}, 20 * model.Nano},
	} {
		snap := tell(t, []string{"pool p after=0s policy=WhenEmptyOrUnderutilized", "node a pool=p type=large", "pod x node=a"})
		n, pool := snap.Node("a"), snap.Pool("p")
		n.Pods[0].EvictionCost = 1000
		spec, of := *n.NodeSpec, *pool.PoolSpec
		if c.ago > 0 {
			spec.ConsolidatedAt = noon.Add(-c.ago)
		}
		of.MinStay, of.Payback, of.MovePrice = c.pool.MinStay, c.pool.Payback, c.pool.MovePrice
		n.NodeSpec, pool.PoolSpec = &spec, &of
		if got := (disruption.Options{Economics: c.e}).PriceOfMoving(snap, n); got != c.want {
			t.Errorf("%s: the price of moving is %d, want %d", name, got, c.want)
		}
	}
}

// TestShares covers the shares of the policy Balanced: half of the pool's cost for half of its eviction cost has the
// score 1.
func TestShares(t *testing.T) {
	snap := tell(t, []string{"pool p policy=Balanced after=0s", "pool q after=0s", "node a pool=p type=small", "node b pool=p type=small", "node c pool=q type=large"})
	cmd := plan.NewCommand(noon, plan.Underutilized, "multi", []plan.Candidate{plan.CandidateOf(snap.Node("a")), plan.CandidateOf(snap.Node("c"))})
	cmd.Worth.Saving = 5 * model.Nano
	got := disruption.Options{Placement: placement.Options{NodePrice: -1}}.Shares(snap, []plan.Command{cmd})
	want := [][]disruption.Share{{
		{Pool: "p", Policy: "Balanced", Saving: 0.5, Disruption: 0.5, Score: 1},
		{Pool: "q", Saving: 1, Disruption: 1, Score: 1},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
}

// TestIfAlone checks that the effect of removing a node is reported although the node may not be removed, and when
// that may change.
func TestIfAlone(t *testing.T) {
	snap := tell(t, []string{"pool p after=0s policy=WhenEmptyOrUnderutilized", "node a pool=p type=small protected nominated=5s", "node b pool=p type=small", "pod x node=a", "pod y node=b"})
	opts := disruption.Options{Placement: placement.Options{NodePrice: -1}}
	cmd, v := disruption.IfAlone(snap, opts, "a")
	if !v.OK() || cmd.Worth.Saving != model.Nano {
		t.Errorf("verdict %d, saving %d, want OK and %d", v.Code, cmd.Worth.Saving, model.Nano)
	}
	if to := cmd.Assignments; len(to) != 1 || to[0].Node != "b" {
		t.Errorf("the pods are moved to %+v, want node b", to)
	}
	if _, v := disruption.IfAlone(snap, opts, "none"); v.Code != plan.NodeGone {
		t.Errorf("a node that does not exist: verdict %d", v.Code)
	}
	lone := tell(t, []string{"pool p after=0s", "node a pool=p type=small", "pod x node=a"})
	if _, v := disruption.IfAlone(lone, opts, "a"); v.Code != plan.NoSaving {
		t.Errorf("a node that would be launched again: verdict %d", v.Code)
	}
	kept := disruption.Kept{Node: "a", Reason: plan.Underutilized, Verdict: plan.Verdict{Code: plan.NodeNominated}}
	if at := disruption.ChangesAt(snap, opts, kept); !at.Equal(noon.Add(5 * time.Second)) {
		t.Errorf("changes at %v", at)
	}
	kept.Verdict.Code = plan.PDBBlocks
	if at := disruption.ChangesAt(snap, opts, kept); !at.IsZero() {
		t.Errorf("a PodDisruptionBudget changes at %v", at)
	}
}
