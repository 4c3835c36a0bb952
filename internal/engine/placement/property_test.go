package placement_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/audit"
)

var worlds = flag.Int("worlds", 400, "random worlds per property")

// check fails the test with every problem that the audit finds in a plan.
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

// TestRandomWorlds audits every plan, and requires the same plan for another order of input, and no further launches
// once the plan's claims are in flight.
func TestRandomWorlds(t *testing.T) {
	for seed := range uint64(*worlds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { properties(t, seed, plain) })
	}
}

// TestRichWorlds does the same where pods have every kind of constraint.
func TestRichWorlds(t *testing.T) {
	for seed := range uint64(*worlds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { properties(t, seed, rich) })
	}
}

// TestForeignWorlds does the same where the selectors of constraints select other workloads' pods too.
func TestForeignWorlds(t *testing.T) {
	for seed := range uint64(*worlds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { properties(t, seed, foreign) })
	}
}

// TestSharedWorlds does the same with a limit on the part of one type in one zone in each pool's spot capacity.
func TestSharedWorlds(t *testing.T) {
	for seed := range uint64(*worlds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { properties(t, seed, shared) })
	}
}

// TestLimitedWorlds does the same with CapacityQuotas.
func TestLimitedWorlds(t *testing.T) {
	for seed := range uint64(*worlds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { properties(t, seed, limited) })
	}
}

func FuzzWorlds(f *testing.F) {
	for kind := range uint8(5) {
		f.Add(uint64(1<<40), kind)
	}
	f.Fuzz(func(t *testing.T, seed uint64, kind uint8) { properties(t, seed, kind%5) })
}

// The kinds of random worlds.
const (
	plain uint8 = iota
	rich
	foreign
	shared
	limited
)

func diceOf(seed uint64, kind uint8) dice {
	d := newDice(seed)
	d.rich, d.foreign = kind == rich || kind == foreign, kind == foreign
	return d
}

func properties(t *testing.T, seed uint64, kind uint8) {
	w := diceOf(seed, kind).world()
	if kind == shared {
		for i := range w.pools {
			w.pools[i].MaxSpotShare = 10 * (1 + int64(seed+uint64(i))%10) // 100 is no limit
		}
	}
	if kind == limited {
		w.quotas = newDice(seed + 2<<32).quotas()
	}
	snap := w.snapshot(nil)
	p := placement.Schedule(snap, placement.Options{})
	check(t, snap, p)
	if _, dropped := guard.CheckProvision(snap, p); kind == limited && len(dropped) > 0 {
		t.Fatalf("seed %d: the guard drops %+v", seed, dropped)
	}

	again := w.snapshot(rand.New(rand.NewPCG(seed, 2)))
	if diff := cmp.Diff(explain.AnswerOf(snap, p), explain.AnswerOf(again, placement.Schedule(again, placement.Options{}))); diff != "" {
		t.Fatalf("seed %d: the plan depends on the order of input:\n%s", seed, diff)
	}

	next := w.launching(p.Claims)
	next = next.nominated(next.snapshot(nil), p)
	after := keeping(next.snapshot(nil), p)
	q := placement.Schedule(after, placement.Options{})
	check(t, after, q)
	if n := boughtAgain(p, q); n > 0 {
		t.Fatalf("seed %d: with the plan's claims in flight %d are launched again:\n%s\nafter\n%s", seed, n,
			explain.Provision(after, q), explain.Provision(snap, p))
	}
	if kind == plain && len(q.Claims) > 0 {
		t.Fatalf("seed %d: with the plan's claims in flight %d more are launched, want none:\n%s\nafter\n%s", seed, len(q.Claims),
			explain.Provision(after, q), explain.Provision(snap, p))
	}

	later := next.later(diceOf(seed+1<<32, kind))
	snap = later.snapshot(nil)
	p = placement.Schedule(snap, placement.Options{})
	check(t, snap, p)
	again = later.snapshot(rand.New(rand.NewPCG(seed, 3)))
	if diff := cmp.Diff(explain.AnswerOf(snap, p), explain.AnswerOf(again, placement.Schedule(again, placement.Options{}))); diff != "" {
		t.Fatalf("seed %d: later the plan depends on the order of input:\n%s", seed, diff)
	}
}

// nominated returns the world in which the pods have the nominations of a plan: otherwise a pod that dropped a
// preference for an existing node would apply it again.
func (w world) nominated(snap *model.Snapshot, p *plan.Provision) world {
	nodes := map[string]string{}
	actions, _ := nominate.Nominations(snap, p)
	for _, a := range actions {
		if n, ok := a.(plan.NominatePod); ok {
			nodes[n.UID] = n.Node
		}
	}
	w.pods = slices.Clone(w.pods)
	for i := range w.pods {
		w.pods[i].Nominated = nodes[w.pods[i].UID]
	}
	return w
}

// boughtAgain counts the claims of a later plan for pods that the first plan had placed.
func boughtAgain(first, later *plan.Provision) int {
	placed := map[string]bool{}
	for _, p := range first.Order {
		placed[p.UID] = true
	}
	n := 0
	for _, c := range later.Claims {
		if slices.ContainsFunc(c.Pods, func(p *model.Pod) bool { return placed[p.UID] }) {
			n++
		}
	}
	return n
}
