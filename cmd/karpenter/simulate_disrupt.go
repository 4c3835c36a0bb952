package main

import (
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/internal/cli"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/gates"
)

// economics are the required savings of a consolidation, from flags, for pools that do not set them.
type economics struct {
	payback, minStay     time.Duration
	movePrice, minSaving float64
}

func (e *economics) addFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&e.payback, "payback", disruption.ProductionPayback, "time over which a saving must exceed the price of the disruption, for pools that do not say")
	flags.DurationVar(&e.minStay, "min-stay", disruption.ProductionMinStay, "time for which what a consolidation launched, or sent pods to, stays, for pools that do not say")
	flags.Float64Var(&e.movePrice, "move-price", usd(disruption.ProductionMovePrice), "price of moving a pod of eviction cost 1, in USD, for pools that do not say")
	flags.Float64Var(&e.minSaving, "min-saving", 0, "least saving in USD per hour, for pools that do not say")
}

func (e *economics) check() error {
	money := func(v float64) bool { return v >= 0 && v <= 1e6 }
	switch {
	case e.payback < 0:
		return cli.UsageErrorf("--payback is %v, want a duration such as 1h, zero or more", e.payback)
	case e.minStay < 0:
		return cli.UsageErrorf("--min-stay is %v, want a duration such as 1h, zero or more", e.minStay)
	case !money(e.movePrice):
		return cli.UsageErrorf("--move-price is %v, want USD, zero or more", e.movePrice)
	case !money(e.minSaving):
		return cli.UsageErrorf("--min-saving is %v, want USD per hour, zero or more", e.minSaving)
	}
	return nil
}

// options converts the economics to those of the engine, where zero means the default and a negative value means
// none.
func (e *economics) options() disruption.Economics {
	nano := func(v float64) int64 { return int64(math.Round(v * model.Nano)) }
	o := disruption.Economics{Payback: e.payback, MinStay: e.minStay, MovePrice: nano(e.movePrice), MinSaving: nano(e.minSaving)}
	if o.Payback == 0 {
		o.Payback = -1
	}
	if o.MinStay == 0 {
		o.MinStay = -1
	}
	if o.MovePrice == 0 {
		o.MovePrice = -1
	}
	return o
}

// disruptAnswer is the output of the verb with --disrupt; docs/simulate.md describes it for users. Money is USD per
// hour.
type disruptAnswer struct {
	Before fleetFigures     `json:"before"`
	Steps  []disruptionStep `json:"steps"`
	After  fleetFigures     `json:"after"`
	// These are lower bounds of the fleet's price and cost for any plan that keeps the nodes that must be kept.
	LowerBoundPerHour     float64    `json:"lowerBoundPerHour"`
	LowerBoundCostPerHour float64    `json:"lowerBoundCostPerHour"`
	Kept                  []keptNode `json:"kept"`
	// UnderWay counts nodes of commands that were started before. No step concerns them.
	UnderWay int `json:"underWay,omitempty"`
	// PriceSource is the source and the date of prices; omitted for invented prices.
	PriceSource string `json:"priceSource,omitempty"`
	Stats       *stats `json:"stats,omitempty"`
}

// fleetFigures covers all nodes with claims, including those being launched.
type fleetFigures struct {
	Nodes        int     `json:"nodes"`
	PricePerHour float64 `json:"pricePerHour"`
	// CostPerHour includes the costs of nodes beyond their price.
	CostPerHour float64 `json:"costPerHour"`
}

// disruptionStep is one command.
type disruptionStep struct {
	// Reason and Method are spelled as in budgets and metrics. A renewal has no method.
	Reason string       `json:"reason"`
	Method string       `json:"method"`
	Remove []string     `json:"remove"`
	Add    []addedNode  `json:"add"`
	Moved  int          `json:"podsMoved"`
	Moves  []podMove    `json:"moves"`
	Saving float64      `json:"savingPerHour"`
	Score  *float64     `json:"score"`
	After  fleetFigures `json:"after"`
}

// addedNode is a node to launch, as its cheapest offering. Its name is that of its claim. The same pods give the same
// name.
type addedNode struct {
	Name         string  `json:"name"`
	NodePool     string  `json:"nodePool"`
	InstanceType string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	PricePerHour float64 `json:"pricePerHour"`
}

// keptNode is a node that is kept after all steps, and why.
type keptNode struct {
	Node    string       `json:"node"`
	Reasons []keptReason `json:"reasons"`
}

// disruptDecision is a decision about nodes and its input.
type disruptDecision struct {
	opts  disruption.Options
	first *model.Snapshot
	// last is the snapshot after the steps, proposal the last proposal.
	last     *model.Snapshot
	proposal disruption.Proposal
	steps    []decidedStep
	stats    *stats
	// source is the source of the prices.
	source string
}

// decidedStep is a command and the fleet after it.
type decidedStep struct {
	plan.Command
	moves []podMove
	score *float64
	after fleetFigures
}

// disruptOptions converts the policy to options of the engine.
func (p *policy) disruptOptions() disruption.Options {
	on, _, _ := gates.Read(p.featureGates) // validated before
	opts := disruption.Options{Placement: p.options(), Economics: p.economics.options(), SpotToSpot: on["SpotToSpotConsolidation"], Static: on["StaticCapacity"]}
	opts.Placement.AskNodes, opts.Placement.WorkBudget = false, 0 // what-ifs are not limited
	return opts
}

// disrupt converts the objects and decides which nodes should be removed, rounds times. No state is kept between
// rounds.
func (w *world) disrupt(p *policy, rounds int) *disruptDecision {
	var d *disruptDecision
	var problems []error
	for round := range rounds {
		d = &disruptDecision{opts: p.disruptOptions(), source: w.sale.Source}
		d.stats = measure(func() {
			told := w.tell()
			problems = told.problems
			d.first = told.builder.Snapshot(w.now)
			if round == rounds-1 {
				w.release()
			}
			d.run(p.untilStable)
		})
	}
	w.problems = append(w.problems, problems...)
	return d
}

// release drops references to objects that are no longer needed, because the next steps need more memory.
func (w *world) release() { w.pods, w.nodes, w.claims, w.nodeOf = nil, nil, nil, nil }

// run proposes and applies commands: once, or until none is proposed. The time does not advance, so that no step
// reverts the launches and moves of another one.
func (d *disruptDecision) run(untilStable bool) {
	d.last = d.first
	for {
		d.proposal = disruption.Propose(d.last, d.opts)
		snap := d.last
		for _, c := range d.proposal.Commands {
			step := decidedStep{Command: c, moves: movesOf(snap, &c)}
			if score, priced := d.opts.Score(snap, &c); priced {
				step.score = &score
			}
			d.last = disruption.After(d.last, c)
			step.after = d.figures(d.last)
			d.steps = append(d.steps, step)
		}
		if !untilStable || len(d.proposal.Commands) == 0 {
			return
		}
	}
}

func (d *disruptDecision) figures(snap *model.Snapshot) fleetFigures {
	var f fleetFigures
	var price, cost int64
	for _, n := range snap.Nodes {
		if n.Ours() {
			f.Nodes++
			price += n.LeastPrice()
			cost += d.opts.CostOf(snap, n)
		}
	}
	f.PricePerHour, f.CostPerHour = usd(price), usd(cost)
	return f
}

// answer converts the decision to words and figures.
func (d *disruptDecision) answer() *disruptAnswer {
	a := &disruptAnswer{Before: d.figures(d.first), After: d.figures(d.last), Steps: []disruptionStep{}, Kept: []keptNode{}, PriceSource: d.source, Stats: d.stats}
	for i := range d.steps {
		a.Steps = append(a.Steps, d.steps[i].told())
	}
	for _, n := range d.first.Nodes {
		if n.Command != "" {
			a.UnderWay++
		}
	}
	a.Kept = keptNodes(d.last, d.proposal.Kept)
	price, cost := disruption.LeastCost(d.first, d.opts, func(*model.Node) bool { return true })
	a.LowerBoundPerHour, a.LowerBoundCostPerHour = usd(price), usd(cost)
	return a
}

func (s *decidedStep) told() disruptionStep {
	step := disruptionStep{Reason: string(s.Reason), Method: s.Method, Remove: []string{}, Add: []addedNode{}, Moved: s.Worth.Pods, Moves: append([]podMove{}, s.moves...),
		Saving: usd(s.Worth.Saving), Score: s.score, After: s.after}
	for _, c := range s.Candidates {
		step.Remove = append(step.Remove, c.Node)
	}
	for i := range s.Replacements {
		r := &s.Replacements[i]
		if len(r.Options) == 0 {
			continue
		}
		o := r.Options[0]
		step.Add = append(step.Add, addedNode{r.Name, r.Pool, o.Type, o.Zone, o.CapacityType, usd(o.Price)})
	}
	return step
}

// keptNodes groups the entries of a proposal by node.
func keptNodes(snap *model.Snapshot, kept []disruption.Kept) []keptNode {
	list := []keptNode{}
	for _, k := range kept {
		if len(list) == 0 || list[len(list)-1].Node != k.Node {
			list = append(list, keptNode{Node: k.Node})
		}
		n := &list[len(list)-1]
		n.Reasons = append(n.Reasons, keptReasonOf(snap, k))
	}
	return list
}

func (a *disruptAnswer) writeJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(a)
}
