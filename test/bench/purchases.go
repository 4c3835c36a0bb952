package main

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"path/filepath"
	"strconv"

	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// notablyDearer is the share beyond which a purchase counts as dearer than the best one.
const notablyDearer = 0.01

// purchases compares what is launched for a few pods with the cheapest nodes that hold them. The features of the rows
// change the cheapest nodes in nothing.
func (b *bench) purchases() error {
	row := b.table("Purchases of 3 to 11 pods beside the optimum (USD per hour, node price included; dearer: over 1%)",
		"features", "purchases", "ours", "optimum", "ours/optimum", "dearer", "worst (seed)", "unschedulable")
	for _, features := range []workload.Features{{}, farLimit, fivePools, wideSpread} {
		name := cmp.Or(features.Name, "none")
		if !b.only.MatchString(name) {
			continue
		}
		var s purchased
		for seed := b.seed; seed < b.seed+b.fleets; seed++ {
			f := workload.Purchase(seed)
			folder := filepath.Join(b.folder, fmt.Sprintf("purchase-s%d-%s", seed, name))
			if err := f.With(features).Pending().Write(folder); err != nil {
				return err
			}
			a, _, err := b.answer(folder)
			if err != nil {
				return err
			}
			s.add(seed, a.CostPerHour, optimum(f), len(a.Unschedulable))
		}
		row(append([]string{name}, s.cells()...)...)
	}
	return nil
}

// purchased adds up the purchases of a row.
type purchased struct {
	count, dearer, unschedulable int
	ours, optimum, worst         float64
	worstSeed                    int
}

func (s *purchased) add(seed int, ours, optimum float64, unschedulable int) {
	s.count++
	s.unschedulable += unschedulable
	s.ours, s.optimum = s.ours+ours, s.optimum+optimum
	r := ours / optimum
	if r > 1+notablyDearer {
		s.dearer++
	}
	if r > s.worst {
		s.worst, s.worstSeed = r, seed
	}
}

func (s *purchased) cells() []string {
	return []string{
		strconv.Itoa(s.count), usd(s.ours), usd(s.optimum), over(s.ours, s.optimum), strconv.Itoa(s.dearer),
		fmt.Sprintf("%s (%d)", ratio(s.worst), s.worstSeed), verdict(strconv.Itoa(s.unschedulable), s.unschedulable > 0),
	}
}

// optimum returns the cost of the cheapest nodes that hold the pods of a fleet: of all divisions of the pods into nodes,
// by dynamic programming over the subsets of pods.
func optimum(f *workload.Fleet) float64 {
	all := 1<<len(f.Pods) - 1
	alone := make([]float64, all+1) // of one node for a subset
	best := make([]float64, all+1)
	needs := make([]workload.Room, all+1)
	for set := 1; set <= all; set++ {
		rest := set & (set - 1)
		needs[set] = sum(needs[rest], f.Pods[bits.TrailingZeros(uint(set))].Room)
		alone[set] = oneNode(f, needs[set])
		best[set] = math.Inf(1)
		first := set &^ rest // is on one of the nodes: the subsets without it need not be tried
		for part := set; part > 0; part = (part - 1) & set {
			if part&first != 0 {
				best[set] = min(best[set], alone[part]+best[set^part])
			}
		}
	}
	return best[all]
}

func sum(a, b workload.Room) workload.Room {
	return workload.Room{CPU: a.CPU + b.CPU, Memory: a.Memory + b.Memory, Pods: a.Pods + b.Pods}
}

// oneNode returns the cost of the cheapest node that holds the pods; types are in the order of their prices.
func oneNode(f *workload.Fleet, pods workload.Room) float64 {
	for _, m := range f.Types {
		if m.Room.Holds(pods) {
			return float64(m.Cheapest().Price) + nodePrice
		}
	}
	return math.Inf(1)
}
