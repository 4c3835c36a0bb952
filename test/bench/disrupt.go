package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// fleets are clusters at about half use, with limits for optimizing them: CPU seconds of the whole process, 0 for no
// limit, and the resulting cost in USD per hour, with the default economics and with free moves and a payback of a
// day.
var fleets = []struct {
	name           string
	upstream       string
	cpu            float64
	usual, patient float64
}{
	{"cluster-500", "113.4 after 50 commands, 172 s, not finished", 3, 105, 100},
	{"cluster-1000", "229.2 after 34 commands, 215 s, not finished", 5, 208, 200},
	{"cluster-2000", "471 after 19 commands, 279 s, not finished", 10, 440, 0},
}

// wholeLimit (CPU seconds) and wholeMemory (MiB beyond the input) are the limits for 10,000 nodes and 100,000 pods.
const (
	whole       = "cluster-10k"
	wholeLimit  = 60
	wholeMemory = 500
)

// rearranged holds the fields of an answer of simulate --disrupt that the benchmark reads.
type rearranged struct {
	Before, After struct {
		Nodes                     int
		PricePerHour, CostPerHour float64
	}
	Steps                                    []step
	LowerBoundPerHour, LowerBoundCostPerHour float64
}

// step is a command of a plan: nodes that are removed, nodes that are added, and where pods move.
type step struct {
	PodsMoved     int
	WaitSeconds   int64
	SavingPerHour float64
	Remove        []string
	Add           []struct{ Name, InstanceType, Zone string }
	Moves         []struct{ Pod, From, To string } // pods are "namespace/name"
}

// rearrange makes the binary plan a fleet until it is stable.
func (b *bench) rearrange(folder string, flags ...string) (*rearranged, used, error) {
	out, u, err := child(2, b.binary, append([]string{"simulate", "-f", folder, "-o", "json", "--disrupt", "--until-stable"}, flags...)...)
	if err != nil {
		return nil, used{}, err
	}
	var a rearranged
	if err := json.Unmarshal(out, &a); err != nil {
		return nil, used{}, fmt.Errorf("reading the answer: %w", err)
	}
	return &a, u, nil
}

var patience = []string{"--payback", "24h", "--move-price", "0"}

func (b *bench) disrupt() error {
	row := b.table("A half used fleet made cheaper until it is stable (seed 1; CPU of the whole process, decoding and bound included; bold: misses what is required)",
		"workload", "economics", "upstream", "CPU, s (required)", "USD/h at first", "USD/h in the end (required)", "cost/h", "bound (price)", "price/bound", "steps", "pods moved", "pods moved per USD/h")
	for _, f := range fleets {
		if !b.only.MatchString(f.name) {
			continue
		}
		for _, e := range []struct {
			name     string
			flags    []string
			required float64
		}{{"usual", nil, f.usual}, {"24h, moves free", patience, f.patient}} {
			folder, err := b.made(f.name, 1)
			if err != nil {
				return err
			}
			cpu := make([]float64, b.runs)
			var a *rearranged
			for i := range cpu {
				var u used
				if a, u, err = b.rearrange(folder, e.flags...); err != nil {
					return err
				}
				cpu[i] = u.CPU
			}
			moved := 0
			for _, s := range a.Steps {
				moved += s.PodsMoved
			}
			within := func(x, limit float64, text string) string {
				if limit == 0 {
					return text
				}
				return verdict(text, x > limit) + fmt.Sprintf(" (%g)", limit)
			}
			row(f.name, e.name, f.upstream, within(median(cpu), f.cpu, usd(median(cpu))), usd(a.Before.PricePerHour),
				within(a.After.PricePerHour, e.required, usd(a.After.PricePerHour)), usd(a.After.CostPerHour), usd(a.LowerBoundPerHour),
				over(a.After.PricePerHour, a.LowerBoundPerHour), strconv.Itoa(len(a.Steps)), strconv.Itoa(moved),
				usd(float64(moved)/max(a.Before.CostPerHour-a.After.CostPerHour, 1e-9)))
		}
	}
	return nil
}

// course prints the cost of the fleets after each tenth of the steps.
func (b *bench) course() error {
	row := b.table("Cost by step (USD per hour, node price included; usual economics)",
		"workload", "steps", "0", "10%", "20%", "30%", "40%", "50%", "60%", "70%", "80%", "90%", "100%")
	for _, f := range fleets {
		if !b.only.MatchString(f.name) {
			continue
		}
		folder, err := b.made(f.name, 1)
		if err != nil {
			return err
		}
		a, _, err := b.rearrange(folder)
		if err != nil {
			return err
		}
		row(append([]string{f.name, strconv.Itoa(len(a.Steps))}, a.course()...)...)
	}
	return nil
}

// course returns the cost before the first step and after each tenth of them.
func (a *rearranged) course() []string {
	cost, cells, done := a.Before.CostPerHour, []string{usd(a.Before.CostPerHour)}, 0
	for tenth := 1; tenth <= 10; tenth++ {
		for upTo := int(math.Round(float64(len(a.Steps)*tenth) / 10)); done < upTo; done++ {
			cost -= a.Steps[done].SavingPerHour
		}
		cells = append(cells, usd(cost))
	}
	return cells
}

// wholePlan measures the largest fleet.
func (b *bench) wholePlan() error {
	row := b.table("10,000 nodes, 100,000 pods: the whole plan (bold: more than 60 s of CPU, or 500 MiB beyond the input)",
		"workload", "CPU, s", "of that decoding", "memory, MiB", "beyond the input", "USD/h at first", "USD/h in the end", "steps")
	if !b.only.MatchString(whole) {
		return nil
	}
	folder, err := b.made(whole, 1)
	if err != nil {
		return err
	}
	in, err := b.decoding(folder)
	if err != nil {
		return err
	}
	a, u, err := b.rearrange(folder)
	if err != nil {
		return err
	}
	mib := func(x float64) string { return strconv.FormatFloat(x, 'f', 0, 64) }
	row(whole, verdict(usd(u.CPU), u.CPU > wholeLimit), usd(in.CPU), mib(u.Peak), verdict(mib(u.Peak-in.Peak), u.Peak-in.Peak > wholeMemory),
		usd(a.Before.PricePerHour), usd(a.After.PricePerHour), strconv.Itoa(len(a.Steps)))
	return nil
}
