package placement_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/audit"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

var worlds = flag.Int("worlds", 400, "random worlds per property")

// check fails the test with everything that the judge finds wrong with a plan.
func check(t *testing.T, snap *model.Snapshot, p *plan.Provision) {
	t.Helper()
	for i, problem := range audit.Provision(snap, p) {
		if i == 5 {
			t.Fatal("and more")
		}
		t.Error(problem)
	}
	if t.Failed() {
		t.Fatalf("the plan:\n%s", explain.Provision(snap, p))
	}
}

// TestRandomWorlds holds every plan to the judge, asks for the same plan when the world was told in another order, and
// for nothing more to be bought once the plan's claims are in flight.
func TestRandomWorlds(t *testing.T) {
	for seed := range uint64(*worlds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { properties(t, seed) })
	}
}

func FuzzWorlds(f *testing.F) {
	f.Add(uint64(1 << 40))
	f.Fuzz(properties)
}

func properties(t *testing.T, seed uint64) {
	w := randomWorld(seed)
	snap := w.snapshot(nil)
	p := placement.Schedule(snap, placement.Options{})
	check(t, snap, p)

	again := w.snapshot(rand.New(rand.NewPCG(seed, 2)))
	if diff := cmp.Diff(explain.AnswerOf(snap, p), explain.AnswerOf(again, placement.Schedule(again, placement.Options{}))); diff != "" {
		t.Fatalf("seed %d: the order in which the world is told matters:\n%s", seed, diff)
	}

	next := w.launching(p.Claims)
	after := next.snapshot(nil)
	q := placement.Schedule(after, placement.Options{})
	check(t, after, q)
	if len(q.Claims) > 0 {
		t.Fatalf("seed %d: with the plan's claims in flight more is bought:\n%s\nafter\n%s", seed, explain.Provision(after, q), explain.Provision(snap, p))
	}

	later := next.later(newDice(seed + 1<<32))
	snap = later.snapshot(nil)
	p = placement.Schedule(snap, placement.Options{})
	check(t, snap, p)
	again = later.snapshot(rand.New(rand.NewPCG(seed, 3)))
	if diff := cmp.Diff(explain.AnswerOf(snap, p), explain.AnswerOf(again, placement.Schedule(again, placement.Options{}))); diff != "" {
		t.Fatalf("seed %d: later the order in which the world is told matters:\n%s", seed, diff)
	}
}
