package disruption_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// stepsWorld returns a small fleet of half-used nodes, whose pool allows one disruption at a time or any number.
func stepsWorld(t *testing.T, seed uint64, budget string) *model.Snapshot {
	d := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	for _, cpu := range []int{2, 4, 8, 16} {
		for i, rate := range []float64{0.041, 0.048, 0.056} {
			fmt.Fprintf(&b, "type t%d-%d cpu=%g price=%.4f\n", cpu, i, float64(cpu)-0.1, rate*float64(cpu)+0.02)
		}
	}
	fmt.Fprintf(&b, "pool p policy=WhenEmptyOrUnderutilized budget=%s\n", budget)
	for n := range 3 + d.IntN(6) {
		cpu := []int{2, 4, 8, 16}[d.IntN(4)]
		fmt.Fprintf(&b, "node n%d pool=p type=t%d-%d\n", n, cpu, d.IntN(3))
		for p, used := 0, 0.0; ; p++ {
			request := []float64{0.7, 0.9, 1.3, 1.7}[d.IntN(4)]
			if used += request; used > 0.6*float64(cpu) {
				break
			}
			fmt.Fprintf(&b, "pod n%d-%d node=n%d cpu=%g\n", n, p, n, request)
		}
	}
	return worldOf(t, b.String()).snapshot(nil)
}

// TestBudgetsDoNotDecideTheEnd plays small fleets to rest with one disruption at a time, an hour apart, and with any
// number. Each step makes the fleet cheaper, no step exceeds the budget, and together the fleets end at most 2% above
// those without a limit.
func TestBudgetsDoNotDecideTheEnd(t *testing.T) {
	const fleets = 60
	costOf := func(snap *model.Snapshot) (cost int64) {
		for _, n := range snap.Nodes {
			cost += usual.CostOf(snap, n)
		}
		return cost
	}
	ends := map[string]int64{}
	for seed := range uint64(fleets) {
		for _, budget := range []string{"1", "100%"} {
			snap := stepsWorld(t, seed, budget)
			for range 100 {
				proposal := disruption.Propose(snap, usual)
				if len(proposal.Commands) == 0 {
					break
				}
				if budget == "1" && (len(proposal.Commands) > 1 || len(proposal.Commands[0].Candidates) > 1) {
					t.Fatalf("fleet %d: %d commands at once, want one for one node", seed, len(proposal.Commands))
				}
				before := costOf(snap)
				for _, c := range proposal.Commands {
					snap = disruption.After(snap, c)
				}
				if after := costOf(snap); after >= before {
					t.Fatalf("fleet %d: a step changes the cost from %d to %d", seed, before, after)
				}
				later := *snap
				later.Now = later.Now.Add(2 * time.Hour)
				snap = &later
			}
			ends[budget] += costOf(snap)
		}
	}
	if ratio := float64(ends["1"]) / float64(ends["100%"]); ratio > 1.02 {
		t.Errorf("one at a time, the fleets end at %.3f of the cost without a limit, want at most 1.02", ratio)
	} else {
		t.Logf("one at a time, the fleets end at %.3f of the cost without a limit", ratio)
	}
}

// TestNodesTogetherPayForALargeOne plays a fleet to rest whose pods fit on one node. It costs more than each of the nodes,
// and less than the two that may be removed at once.
func TestNodesTogetherPayForALargeOne(t *testing.T) {
	var b strings.Builder
	b.WriteString("type small cpu=15.9 price=0.8\ntype large cpu=47.9 price=1.2\npool p policy=WhenEmptyOrUnderutilized budget=2\n")
	for n := range 4 {
		fmt.Fprintf(&b, "node n%d pool=p type=small\n", n)
		for p := range 2 {
			fmt.Fprintf(&b, "pod n%d-%d node=n%d cpu=5\n", n, p, n)
		}
	}
	snap := worldOf(t, b.String()).snapshot(nil)
	for range 10 {
		for _, c := range disruption.Propose(snap, usual).Commands {
			if len(c.Candidates) > 2 {
				t.Fatalf("a command removes %d nodes, the budget is 2", len(c.Candidates))
			}
			snap = disruption.After(snap, c)
		}
		later := *snap
		later.Now = later.Now.Add(2 * time.Hour)
		snap = &later
	}
	if len(snap.Nodes) != 1 || snap.Nodes[0].Labels[model.LabelType] != "large" {
		t.Errorf("at rest, the fleet has %d nodes, the first of type %q, want one large node", len(snap.Nodes), snap.Nodes[0].Labels[model.LabelType])
	}
}
