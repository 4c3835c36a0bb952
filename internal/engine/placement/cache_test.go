package placement_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
)

// withNodes is a random world with four additional nodes.
func withNodes(seed uint64) *model.Snapshot {
	d := diceOf(seed, rich)
	w := d.world()
	for i := range 4 {
		w.node(d, 10+i)
	}
	return w.snapshot(nil)
}

// TestCache: a run with the cache of earlier runs returns the same plan as one without, for the whole world and for the
// world without each of its nodes.
func TestCache(t *testing.T) {
	for seed := range uint64(*worlds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			snap := withNodes(seed)
			var cache placement.Cache
			for i := range len(snap.Nodes) + 1 {
				what := snap
				if i > 0 {
					what = snap.Without(snap.Nodes[i-1].Name)
				}
				want := explain.AnswerOf(what, unbounded(what, placement.Options{}))
				p, next := placement.ScheduleCached(what, placement.Options{}, cache)
				cache = next
				got := explain.AnswerOf(what, p)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("run %d: the cache changes the plan (-without +with):\n%s", i, diff)
				}
			}
		})
	}
}

// TestCacheWithinBudgets: a plan that returns to its earlier run, because the next one exceeds the work budget, is the
// same with a cache and without.
func TestCacheWithinBudgets(t *testing.T) {
	for seed := range uint64(*worlds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			snap := withNodes(seed)
			work := unbounded(snap, placement.Options{}).Work
			for budget := work / 4; budget <= 3*work; budget += max(1, work/8) {
				opts := placement.Options{WorkBudget: budget}
				want := explain.AnswerOf(snap, unbounded(snap, opts))
				p, _ := placement.ScheduleCached(snap, opts, placement.Cache{})
				if diff := cmp.Diff(want, explain.AnswerOf(snap, p)); diff != "" {
					t.Fatalf("budget %d of %d: the cache changes the plan (-without +with):\n%s", budget, work, diff)
				}
			}
		})
	}
}
