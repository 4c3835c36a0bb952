package main

import (
	"fmt"
	"slices"
	"strconv"
)

// prices are the limits for the cost of plans: price, nodes and cost of upstream's plans, USD per hour, and the
// required values.
var prices = []struct {
	name     string
	upstream float64
	nodes    int
	cost     float64
	required float64
}{
	{"inflate-1k", 1.77, 2, 1.78, 1.30}, {"inflate-10k", 16.27, 14, 16.34, 12.70}, {"inflate-100k", 163.96, 136, 164.6, 127},
	{"diverse-5k", 58.6, 1000, 63.6, 54}, {"diverse-20k", 236.6, 4000, 256.6, 218},
	{"heterogeneous-1k", 98.94, 48, 99.2, 54.2}, {"heterogeneous-10k", 723.0, 137, 723.7, 486},
	{"spread-1k", 9.27, 50, 9.52, 9.1}, {"spread-5k", 46.83, 50, 47.1, 43.7},
	{"antiaffinity-500", 6.90, 41, 7.1, 4.1}, {"antiaffinity-2k", 19.57, 40, 19.8, 15.7},
}

func (b *bench) price() error {
	row := b.table("Price (USD per hour, seed 1; cost: with 0.005 for each node; bold: misses what is required)",
		"workload", "upstream (nodes), cost", "required cost", "ours (nodes)", "cost", "bound (cost)", "cost/bound", "median of types per node", "unschedulable")
	for _, p := range prices {
		if !b.only.MatchString(p.name) {
			continue
		}
		a, err := b.decide(p.name, 1)
		if err != nil {
			return err
		}
		row(p.name, fmt.Sprintf("%g (%d), %g", p.upstream, p.nodes, p.cost), strconv.FormatFloat(p.required, 'g', -1, 64),
			fmt.Sprintf("%s (%d)", usd(a.PricePerHour), len(a.Nodes)), verdict(usd(a.CostPerHour), a.CostPerHour > p.required),
			usd(a.LowerBoundCostPerHour), over(a.CostPerHour, a.LowerBoundCostPerHour),
			strconv.Itoa(a.medianOptions()), verdict(strconv.Itoa(len(a.Unschedulable)), len(a.Unschedulable) > 0))
	}
	return nil
}

// over returns a ratio, or a dash without a bound.
func over(cost, bound float64) string {
	if bound <= 0 {
		return "-"
	}
	return ratio(cost / bound)
}

// ratioLimit is the largest allowed multiple of the bound for a cost, for any seed.
const ratioLimit = 1.35

func (b *bench) seeds() error {
	row := b.table("Cost as a multiple of the bound (seeds 2 to 10; bold: more than 1.35)",
		"workload", "smallest", "median", "largest", "at seed")
	for _, name := range []string{
		"inflate-1k", "inflate-10k", "heterogeneous-1k", "heterogeneous-10k", "spread-1k", "spread-5k", "antiaffinity-500", "antiaffinity-2k",
	} {
		if !b.only.MatchString(name) {
			continue
		}
		var ratios []float64
		worst := 2
		for seed := 2; seed <= 10; seed++ {
			a, err := b.decide(name, seed)
			if err != nil {
				return err
			}
			r := a.CostPerHour / a.LowerBoundCostPerHour
			if len(ratios) > 0 && r > slices.Max(ratios) {
				worst = seed
			}
			ratios = append(ratios, r)
		}
		most := slices.Max(ratios)
		row(name, ratio(slices.Min(ratios)), ratio(median(ratios)), verdict(ratio(most), most > ratioLimit), strconv.Itoa(worst))
	}
	return nil
}
