package placement_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
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

// TestNoLaunch: a run that must launch nothing ends where the other launches a node. Otherwise it is the same, or it ends
// because a node seemed possible that minValues or limits exclude; in nearly all of these worlds, some pod has no place.
func TestNoLaunch(t *testing.T) {
	needed, same, stuck, early := 0, 0, 0, 0
	for seed := range uint64(5 * *worlds) {
		snap := withNodes(seed)
		want := unbounded(snap, placement.Options{})
		got, _ := placement.ScheduleCached(snap, placement.Options{NoLaunch: true}, placement.Cache{})
		if len(got.Claims) > 0 {
			t.Fatalf("seed %d: %d nodes are launched", seed, len(got.Claims))
		}
		switch {
		case len(want.Claims) > 0:
			needed++
			if !got.Unfinished() || refusedFor(got, plan.NotReached) != pending(snap) {
				t.Errorf("seed %d: %d nodes are needed, and the run did not end with all pods refused", seed, len(want.Claims))
			}
		case got.Unfinished() && len(want.Refused) > 0:
			stuck++
		case got.Unfinished():
			early++
		default:
			same++
			if diff := cmp.Diff(explain.AnswerOf(snap, want), explain.AnswerOf(snap, got)); diff != "" {
				t.Errorf("seed %d: (-launching +not launching):\n%s", seed, diff)
			}
		}
	}
	if needed == 0 || same == 0 || early > same/100 {
		t.Errorf("%d runs needed a node, %d none, and %d, %d ended early: want both, and few of the last", needed, same, stuck, early)
	}
}

// pending returns the number of pods without a node.
func pending(snap *model.Snapshot) int {
	n := 0
	for _, g := range snap.Groups {
		n += len(g.Pods)
	}
	return n
}
