package disruption_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestLeastCostOfWhatExists compares the bounds with today's fleet and with that after all proposals, for fleets whose
// nodes are larger than their types, or of offerings that are sold out, or of unknown price.
func TestLeastCostOfWhatExists(t *testing.T) {
	var bounds, ends int64
	for seed := range uint64(*fleets / 2) {
		f := fleetOf(seed)
		f.vary(dice{rand.New(rand.NewPCG(seed, 11))})
		snap := f.snapshot(nil)
		price, cost := disruption.LeastCost(snap, usual, func(*model.Node) bool { return true })
		todayPrice, today := priced(snap)
		if price > todayPrice || cost > today {
			t.Errorf("seed %d: today's fleet has the price %d and the cost %d, the bounds are %d and %d", seed, todayPrice, today, price, cost)
		}
		for range 50 {
			commands := disruption.Propose(snap, usual).Commands
			if len(commands) == 0 {
				break
			}
			for _, c := range commands {
				snap = disruption.After(snap, c)
			}
		}
		endPrice, end := priced(snap)
		if price > endPrice || cost > end {
			t.Errorf("seed %d: the plan ends at the price %d and the cost %d, the bounds are %d and %d", seed, endPrice, end, price, cost)
		}
		bounds, ends = bounds+cost, ends+end
	}
	t.Logf("all bounds are %.1f%% of all costs at the end", 100*float64(bounds)/float64(ends))
	if 2*bounds < ends {
		t.Errorf("all bounds are %.1f%% of all costs at the end: they are loose", 100*float64(bounds)/float64(ends))
	}
}

// vary makes nodes differ from what the catalog has for them. No node is being deleted: its pods need another place.
func (f *fleet) vary(d dice) {
	for i := range f.nodes {
		n := &f.nodes[i]
		n.Deleting, n.Disrupted = false, false
		switch {
		case d.chance(30):
			n.Allocatable = larger(n.Allocatable, int64(105+d.IntN(200)))
		case d.chance(10):
			n.Labels[model.LabelType] = "unknown"
		}
	}
	for i := range f.pools {
		for j := range f.pools[i].Catalog.Types {
			for k := range f.pools[i].Catalog.Types[j].Offerings {
				if o := &f.pools[i].Catalog.Types[j].Offerings[k]; d.chance(20) {
					o.Available = false
				}
			}
		}
	}
}

func larger(list []quantity.Amount, percent int64) []quantity.Amount {
	list = slices.Clone(list)
	for i := range list {
		list[i].Value = list[i].Value * percent / 100
	}
	return list
}

// priced returns the price and the cost of the managed nodes whose price is known.
func priced(snap *model.Snapshot) (price, cost int64) {
	for _, n := range snap.Nodes {
		if n.Ours() && n.Price > 0 {
			price += n.Price
			cost += usual.CostOf(snap, n)
		}
	}
	return price, cost
}
