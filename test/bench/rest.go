package main

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// settings are the rows of table rest: sizes of fleets, and how they are consolidated. Each row is printed for the steps
// that need no waiting, and for all.
var settings = []setting{
	{least: 3, most: 10, budget: "10%", economics: "usual"},
	{least: 3, most: 10, budget: "10%", economics: "moves free", flags: []string{"--move-price", "0"}},
	{least: 3, most: 10, budget: "100%", economics: "usual"},
	{least: 3, most: 10, budget: "100%", economics: "moves free", flags: []string{"--move-price", "0"}},
	{least: 20, most: 40, budget: "10%", economics: "usual"},
	{least: 3, most: 10, budget: "10%", economics: "usual", features: twelvePools},
	{least: 3, most: 10, budget: "10%", economics: "usual", features: wideSpread},
}

// Features of everyday clusters that leave the best plan as it is.
var (
	farLimit    = workload.Features{Name: "far limits", Limits: map[string]string{"cpu": "1000"}}
	fivePools   = workload.Features{Name: "five pools", Pools: 5}
	twelvePools = workload.Features{Name: "twelve pools", Pools: 12}
	wideSpread  = workload.Features{Name: "wide zone spread", Skew: 1000}
)

type setting struct {
	least, most       int // nodes
	budget, economics string
	flags             []string
	features          workload.Features
}

// kind returns the economics with the name of the features.
func (s setting) kind() string {
	if s.features.Name == "" {
		return s.economics
	}
	return s.economics + ", " + s.features.Name
}

func (s setting) size() string { return fmt.Sprintf("%d to %d", s.least, s.most) }

// reference is a fleet with the costs that its cost at rest is compared with, in USD per hour.
type reference struct {
	*workload.Fleet

	name                 string
	start, greedy, fresh float64
}

// rested is what plans did to a fleet.
type rested struct {
	cost  float64        // USD per hour
	moves map[string]int // by pod
}

// rest compares the cost of fleets at rest, after consolidation, with the cost of the nodes that the same engine launches
// for the same pods without nodes.
func (b *bench) rest() error {
	row := b.table("At rest and fresh (USD per hour, node price included; 2%: fleets that cost over 2% more or less than with greedy)",
		"nodes", "budget", "economics", "steps", "fleets", "start", "at rest", "greedy", "fresh", "at rest/fresh",
		"dearer, 2%", "cheaper, 2%", "worst (seed)", "moves per USD/h", "moved over twice")
	known := map[string][]*reference{}
	for _, s := range settings {
		if !b.only.MatchString(s.size() + " nodes, " + s.budget + ", " + s.kind()) {
			continue
		}
		references, ok := known[s.size()]
		if !ok {
			var err error
			if references, err = b.references(s); err != nil {
				return err
			}
			known[s.size()] = references
		}
		once, later := summary{}, summary{}
		for _, r := range references {
			first, last, err := b.settle(r, s)
			if err != nil {
				b.problems++
				fmt.Fprintf(b.out, "\n%s, %s, %s: %v\n\n", r.name, s.budget, s.kind(), err)
				continue
			}
			once.add(r, first)
			later.add(r, last)
		}
		head := []string{s.size(), s.budget, s.kind()}
		row(append(append(head, "at once"), once.cells()...)...)
		row(append(append(head, "all"), later.cells()...)...)
	}
	return nil
}

// references generates the fleets of a size.
func (b *bench) references(s setting) ([]*reference, error) {
	var all []*reference
	for seed := b.seed; seed < b.seed+b.fleets; seed++ {
		nodes := s.least + seed%(s.most-s.least+1)
		r := &reference{Fleet: workload.Everyday(nodes, seed), name: fmt.Sprintf("everyday-%d-s%d", nodes, seed)}
		r.start = costOf(r.Fleet)
		cheaper, err := greedy(r.Fleet)
		if err != nil {
			return nil, err
		}
		r.greedy = costOf(cheaper)
		if r.fresh, err = b.fresh(r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func costOf(f *workload.Fleet) float64 {
	cost := 0.0
	for _, n := range f.Nodes {
		cost += n.Price + nodePrice
	}
	return cost
}

// fresh returns the cost of the nodes that the binary launches for the pods alone.
func (b *bench) fresh(r *reference) (float64, error) {
	folder := filepath.Join(b.folder, r.name+"-fresh")
	if err := r.Pending().Write(folder); err != nil {
		return 0, err
	}
	answer, _, err := b.answer(folder)
	if err != nil {
		return 0, err
	}
	if n := len(answer.Unschedulable); n > 0 {
		return 0, fmt.Errorf("%s: %d pods are unschedulable", folder, n)
	}
	return answer.CostPerHour, nil
}

// settle consolidates a fleet until it is stable. It returns its state before the first step that waits for time to
// pass, and at the end.
func (b *bench) settle(r *reference, s setting) (first, last rested, err error) {
	f := r.Clone()
	moves := map[string]int{}
	folder := filepath.Join(b.folder, r.name)
	if err := f.With(s.features).Bound(s.budget).Write(folder); err != nil {
		return first, last, err
	}
	a, _, err := b.rearrange(folder, s.flags...)
	if err != nil {
		return first, last, err
	}
	first, err = a.applyTo(f, moves)
	return first, rested{costOf(f), moves}, err
}

// applyTo executes the steps of a plan on a fleet and counts the moves of each pod. It returns the state before the first
// step that waits, and an error if a node is overfull or a pod is lost after any step, or if the result does not cost what
// the plan says.
func (a *rearranged) applyTo(f *workload.Fleet, moves map[string]int) (first rested, err error) {
	waits := false
	for i, s := range a.Steps {
		if !waits && s.WaitSeconds > 0 {
			waits, first = true, rested{costOf(f), maps.Clone(moves)}
		}
		if err := s.applyTo(f, moves); err != nil {
			return first, fmt.Errorf("step %d: %w", i, err)
		}
	}
	cost := costOf(f)
	if math.Abs(cost-a.After.CostPerHour) > 1e-4*cost {
		return first, fmt.Errorf("the plan says that the fleet costs %g USD per hour, the catalog %.5f", a.After.CostPerHour, cost)
	}
	if !waits {
		first = rested{cost, moves}
	}
	return first, nil
}

func (s step) applyTo(f *workload.Fleet, moves map[string]int) error {
	for _, add := range s.Add {
		n, err := f.NewNode(add.Name, add.InstanceType, add.Zone)
		if err != nil {
			return err
		}
		f.Nodes = append(f.Nodes, n)
	}
	for _, m := range s.Moves {
		name := strings.TrimPrefix(m.Pod, "default/")
		i := slices.IndexFunc(f.Pods, func(p workload.FleetPod) bool { return p.Name == name && p.Node == m.From })
		if i < 0 {
			return fmt.Errorf("pod %s is not on node %s", name, m.From)
		}
		f.Pods[i].Node = m.To
		moves[name]++
	}
	for _, name := range s.Remove {
		i := slices.IndexFunc(f.Nodes, func(n workload.FleetNode) bool { return n.Name == name })
		if i < 0 {
			return fmt.Errorf("there is no node %s to remove", name)
		}
		f.Nodes = slices.Delete(f.Nodes, i, i+1)
	}
	_, err := f.Free()
	return err
}

// summary adds up the fleets of a row.
type summary struct {
	fleets, dearer, cheaper, moves, often int
	start, rest, greedy, fresh            float64
	worst                                 float64 // of at rest/fresh
	worstSeed                             string
}

// notable is the difference from greedy beyond which a fleet counts as dearer or cheaper.
const notable = 0.02

func (s *summary) add(r *reference, at rested) {
	s.fleets++
	s.start, s.rest, s.greedy, s.fresh = s.start+r.start, s.rest+at.cost, s.greedy+r.greedy, s.fresh+r.fresh
	if at.cost > r.greedy*(1+notable) {
		s.dearer++
	}
	if at.cost < r.greedy*(1-notable) {
		s.cheaper++
	}
	if x := at.cost / r.fresh; x > s.worst {
		s.worst, s.worstSeed = x, strconv.Itoa(r.Seed)
	}
	for _, n := range at.moves {
		s.moves += n
		if n > 2 {
			s.often++
		}
	}
}

func (s *summary) cells() []string {
	perUSD := "-"
	if saved := s.start - s.rest; saved > 0 {
		perUSD = strconv.FormatFloat(float64(s.moves)/saved, 'f', 1, 64)
	}
	return []string{
		strconv.Itoa(s.fleets), usd(s.start), usd(s.rest), usd(s.greedy), usd(s.fresh), over(s.rest, s.fresh),
		strconv.Itoa(s.dearer), strconv.Itoa(s.cheaper), fmt.Sprintf("%s (%s)", ratio(s.worst), s.worstSeed), perUSD, strconv.Itoa(s.often),
	}
}
