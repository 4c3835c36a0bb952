package main

import (
	"fmt"
	"math"
	"strconv"
)

// speeds are the limits for a decision in CPU seconds, 0 for no limit, and the number of measured rounds beyond the
// first.
var speeds = []struct {
	name                    string
	upstream, required, aim float64
	rounds                  int
}{
	{"inflate-10k", 3.0, 0.03, 0.01, 10}, {"inflate-100k", 30, 0.3, 0.1, 10},
	{"diverse-5k", 19, 0.15, 0.03, 10}, {"diverse-20k", 101, 0.6, 0.15, 10}, {"heterogeneous-10k", 14.6, 0.14, 0.03, 10},
	{"spread-5k", 3.0, 0.03, 0.01, 10}, {"antiaffinity-2k", 1.0, 0.02, 0.005, 10},
	{"cluster-500-pending-2k", 0, 0.05, 0, 10}, {"fill-100k", 0, 2, 0, 2},
}

func (b *bench) speed() error {
	row := b.table("CPU seconds of a decision (seed 1; bold: misses what is required)",
		"workload", "upstream", "required", "aim", "GOMAXPROCS=1", "GOMAXPROCS=2", "faster than upstream")
	for _, s := range speeds {
		if !b.only.MatchString(s.name) {
			continue
		}
		folder, err := b.made(s.name, 1)
		if err != nil {
			return err
		}
		one, err := b.cost(folder, s.rounds, 1)
		if err != nil {
			return err
		}
		two, err := b.cost(folder, s.rounds, 2)
		if err != nil {
			return err
		}
		faster := "-"
		if s.upstream > 0 {
			faster = strconv.FormatFloat(s.upstream/max(one, two), 'f', 0, 64) + "x"
		}
		row(s.name, orDash(s.upstream), orDash(s.required), orDash(s.aim), verdict(seconds(one), one > s.required), verdict(seconds(two), two > s.required), faster)
	}
	return nil
}

func orDash(x float64) string {
	if x == 0 {
		return "-"
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// slopeLimit is the largest exponent with which CPU seconds may grow with the number of pods.
const slopeLimit = 1.15

func (b *bench) slopes() error {
	sizes := []int{1000, 10_000, 100_000}
	row := b.table("Growth with the number of pods (GOMAXPROCS=1; bold: exponent above 1.15)",
		"workload", "1k", "10k", "100k", "exponent", "between the last two")
	for _, kind := range []string{"inflate", "heterogeneous", "diverse"} {
		if !b.only.MatchString(kind) {
			continue
		}
		costs, cells := make([]float64, len(sizes)), []string{kind}
		for i, n := range sizes {
			folder, err := b.made(fmt.Sprintf("%s-%dk", kind, n/1000), 1)
			if err != nil {
				return err
			}
			// A decision about few pods is too fast to be measured in few rounds; one about many pods would take too
			// long in many rounds.
			if costs[i], err = b.cost(folder, max(2, 200_000/n), 1); err != nil {
				return err
			}
			cells = append(cells, seconds(costs[i]))
		}
		all := slope(sizes, costs)
		row(append(cells, verdict(ratio(all), all > slopeLimit), ratio(slope(sizes[1:], costs[1:])))...)
	}
	return nil
}

// slope returns the least-squares slope of log(y) over log(x).
func slope(x []int, y []float64) float64 {
	var sx, sy, sxx, sxy float64
	for i := range x {
		lx, ly := math.Log(float64(x[i])), math.Log(max(y[i], 1e-6))
		sx, sy, sxx, sxy = sx+lx, sy+ly, sxx+lx*lx, sxy+lx*ly
	}
	n := float64(len(x))
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// memoryLimit is the maximum memory in MiB that a decision about 100,000 pods may need beyond its input.
const memoryLimit = 200

func (b *bench) memory() error {
	row := b.table("Memory (peak resident set, MiB; bold: more than 200 beyond the input)",
		"workload", "decoding alone", "with the decision", "beyond the input", "allocated by the decision")
	for _, name := range []string{"inflate-100k", "heterogeneous-100k", "diverse-100k"} {
		if !b.only.MatchString(name) {
			continue
		}
		folder, err := b.made(name, 1)
		if err != nil {
			return err
		}
		input, whole, beyond := make([]float64, b.runs), make([]float64, b.runs), make([]float64, b.runs)
		var allocated int64
		for i := range b.runs {
			in, err := b.decoding(folder)
			if err != nil {
				return err
			}
			a, u, err := b.answer(folder)
			if err != nil {
				return err
			}
			input[i], whole[i], beyond[i], allocated = in.Peak, u.Peak, u.Peak-in.Peak, a.Stats.AllocBytes
		}
		mib := func(x float64) string { return strconv.FormatFloat(x, 'f', 0, 64) }
		row(name, mib(median(input)), mib(median(whole)), verdict(mib(median(beyond)), median(beyond) > memoryLimit), mib(float64(allocated)/(1<<20)))
	}
	return nil
}
