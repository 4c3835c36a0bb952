package offline

import (
	"encoding/json"
	"io"
	"math"
	"slices"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/plugin/top"
)

// DisruptAnswer is the output of the verb with --disrupt; docs/simulate.md describes it for users. Money is USD per
// hour.
type DisruptAnswer struct {
	Before FleetFigures `json:"before"`
	Steps  []Step       `json:"steps"`
	After  FleetFigures `json:"after"`
	// These are lower bounds of the fleet's price and cost for any plan that keeps the nodes that must be kept.
	LowerBoundPerHour     float64    `json:"lowerBoundPerHour"`
	LowerBoundCostPerHour float64    `json:"lowerBoundCostPerHour"`
	Kept                  []KeptNode `json:"kept"`
	// Waits are the times that pass between steps, in their order (--until-stable).
	Waits []Wait `json:"waits,omitempty"`
	// UnderWay counts nodes of commands that were started before. No step concerns them.
	UnderWay int `json:"underWay,omitempty"`
	// PriceSource is the source and the date of prices; omitted for invented prices.
	PriceSource string `json:"priceSource,omitempty"`
	Gaps
	Stats *Stats `json:"stats,omitempty"`
}

// Step is one command.
type Step struct {
	// Reason and Method are spelled as in budgets and metrics. A renewal has no method.
	Reason string      `json:"reason"`
	Method string      `json:"method"`
	Remove []string    `json:"remove"`
	Add    []AddedNode `json:"add"`
	Moved  int         `json:"podsMoved"`
	Moves  []PodMove   `json:"moves"`
	// Saving is omitted if the price of a removed node is unknown.
	Saving top.Sum      `json:"savingPerHour,omitzero"`
	Score  *float64     `json:"score"`
	After  FleetFigures `json:"after"`
	// WaitSeconds is how long the step waits for time to pass, from the time of the decision.
	WaitSeconds int64 `json:"waitSeconds,omitempty"`
}

// AddedNode is a node to launch, as its cheapest offering. Its name is that of its claim. The same pods give the same
// name.
type AddedNode struct {
	Name         string `json:"name"`
	NodePool     string `json:"nodePool"`
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	// PricePerHour is omitted if it is unknown.
	PricePerHour float64 `json:"pricePerHour,omitempty"`
}

// KeptNode is a node that is kept after all steps, and why.
type KeptNode struct {
	Node    string       `json:"node"`
	Reasons []KeptReason `json:"reasons"`
}

// DisruptDecision is a decision about nodes and its input.
type DisruptDecision struct {
	opts  disruption.Options
	first *model.Snapshot
	// placed is first with pending pods on nodes if steps are made until none is left. The lower bound is that of its
	// pods.
	placed *model.Snapshot
	// last is the snapshot after the steps, proposal the last proposal if one was made.
	last     *model.Snapshot
	proposal disruption.Proposal
	proposed bool
	steps    []decidedStep
	waits    []Wait
	// pools are the objects whose budgets change with time.
	pools []*karpv1.NodePool
	stats *Stats
	// source is the source of the prices.
	source string
	gaps   Gaps
	// removed is what the objects say about nodes that are being deleted.
	removed removals
	// settles means that steps are made until none is left: then pods that wait get their places between the steps.
	settles bool
	// offered is the snapshot whose pending pods were offered places last.
	offered *model.Snapshot
	// observe is told each step and the snapshot after it; nil for none.
	observe func(*decidedStep, *model.Snapshot)
}

// decidedStep is a command and the fleet after it.
type decidedStep struct {
	plan.Command
	moves []PodMove
	score *float64
	after FleetFigures
	// at is the time of the model at which it begins.
	at time.Time
	// unpriced means that the price of a node that it removes is unknown.
	unpriced bool
}

// unpricedNode reports whether the price of a node that the command removes is unknown.
func unpricedNode(snap *model.Snapshot, c *plan.Command) bool {
	return slices.ContainsFunc(c.Candidates, func(c plan.Candidate) bool {
		n := snap.Node(c.Node)
		return n != nil && n.LeastPrice() == 0
	})
}

// Disrupt converts the objects and decides which nodes should be removed, rounds times. No state is kept between
// rounds.
func (o *Manifests) Disrupt(p *Policy, rounds int) *DisruptDecision {
	var d *DisruptDecision
	var problems []error
	for round := range rounds {
		d = &DisruptDecision{opts: p.disruptOptions(), source: o.sale.Source, gaps: o.gaps(), removed: o.removals()}
		d.stats = measure(func() {
			m := o.mirror()
			problems = m.problems
			d.first = m.Snapshot(o.now)
			if round == rounds-1 {
				o.release()
			}
			d.last, d.pools = d.first, o.poolObjects()
			if p.UntilStable {
				d.launch()
			}
			d.placed = d.last
			for d.next() && p.UntilStable {
			}
		})
	}
	o.tell(problems)
	o.aside = d.first.DaemonsAside
	return d
}

func (o *objects) poolObjects() []*karpv1.NodePool {
	pools := make([]*karpv1.NodePool, len(o.pools))
	for i := range o.pools {
		pools[i] = o.pools[i].object
	}
	return pools
}

// release drops references to objects that are no longer needed, because the next steps need more memory.
func (o *objects) release() { o.pods, o.nodes, o.claims = nil, nil, nil }

// step proposes commands and applies them to the model. It continues after the steps made before.
func (d *DisruptDecision) step() {
	if d.opts.Static {
		d.stand()
	}
	if d.settles {
		d.launch()
	}
	d.proposal, d.proposed = disruption.Propose(d.last, d.opts), true
	snap := d.last
	for _, c := range d.proposal.Commands {
		if pool := snap.Pool(candidatePool(&c)); pool != nil && pool.Static && len(c.Replacements) > 0 {
			d.apply(c)
			continue
		}
		step := decidedStep{Command: c, moves: movesOf(snap, &c), unpriced: unpricedNode(snap, &c), at: snap.Now}
		if score, priced := d.opts.Score(snap, &c); priced {
			step.score = &score
		}
		d.last = disruption.After(d.last, c)
		step.after = d.figures(d.last)
		if d.observe != nil {
			d.observe(&step, d.last)
		}
		d.steps = append(d.steps, step)
	}
}

// provisioning is the reason of the step that launches nodes for pending pods.
const provisioning = "Provisioning"

// launch makes a step of the launches for pending pods, and of the pods that fit on existing nodes. Without it, a
// fleet at rest would have nodes that wait for pods forever. From then on, it is made before each round of steps as
// well: pods of nodes of static pools that are gone wait, and a step may have freed room or limits.
func (d *DisruptDecision) launch() {
	d.settles = true
	if d.offered == d.last || len(d.last.Groups) == 0 {
		return
	}
	d.offered = d.last
	p := placement.Schedule(d.last, d.opts.Placement)
	if len(p.Order) == 0 {
		return
	}
	command := plan.Command{Reason: provisioning, Replacements: p.Claims}
	for _, placed := range p.Placed {
		command.Assignments = append(command.Assignments, model.Assignment{Node: placed.Node, Pods: placed.Pods})
	}
	command.Worth.Pods = len(p.Order)
	d.apply(command)
	d.offered = d.last
}

// stand makes the steps that give static pools the number of nodes in their specification, as the controller's loop for
// them does.
func (d *DisruptDecision) stand() {
	standing := disruption.Static(d.last)
	if len(standing.Create) > 0 {
		d.apply(plan.Command{Reason: provisioning, Replacements: standing.Create})
	}
	for _, n := range standing.Surplus {
		c := plan.Command{Reason: disruption.Surplus, Candidates: []plan.Candidate{plan.CandidateOf(n)}}
		c.Worth.Pods = n.Reschedulable()
		d.apply(c)
	}
}

// apply makes a step of a command that was not judged by what it saves: its saving is the difference of the fleets.
func (d *DisruptDecision) apply(c plan.Command) {
	c = disruption.Chosen(d.last, c)
	next := disruption.After(d.last, c)
	step := decidedStep{Command: c, at: d.last.Now, after: d.figures(next), moves: movesOf(d.last, &c)}
	before := d.figures(d.last)
	if step.unpriced = before.CostPerHour.IsZero() || step.after.CostPerHour.IsZero(); !step.unpriced {
		step.Worth.Saving = int64(math.Round(float64(before.CostPerHour-step.after.CostPerHour) * model.Nano))
	}
	if d.observe != nil {
		d.observe(&step, next)
	}
	d.last, d.steps = next, append(d.steps, step)
}

// candidatePool returns the pool of the first node that a command removes, "" for none.
func candidatePool(c *plan.Command) string {
	if len(c.Candidates) == 0 {
		return ""
	}
	return c.Candidates[0].Pool
}

func (d *DisruptDecision) figures(snap *model.Snapshot) FleetFigures {
	return figuresOf(snap, d.opts, func(*model.Node) bool { return true })
}

// Answer converts the decision to words and figures.
func (d *DisruptDecision) Answer() *DisruptAnswer {
	a := &DisruptAnswer{Before: d.figures(d.first), After: d.figures(d.last), Steps: []Step{}, Kept: []KeptNode{},
		Waits: d.waitsForSteps(), PriceSource: d.source, Gaps: d.gaps, Stats: d.stats}
	for i := range d.steps {
		step := d.steps[i].told()
		step.WaitSeconds = d.waited(d.steps[i].at)
		a.Steps = append(a.Steps, step)
	}
	for _, n := range d.first.Nodes {
		if n.Command != "" {
			a.UnderWay++
		}
	}
	a.Kept = d.keptNodes()
	price, cost := disruption.LeastCost(d.placed, d.opts, func(*model.Node) bool { return true })
	a.LowerBoundPerHour, a.LowerBoundCostPerHour = usd(price), usd(cost)
	return a
}

func (s *decidedStep) told() Step {
	step := Step{Reason: string(s.Reason), Method: s.Method, Remove: []string{}, Add: []AddedNode{}, Moved: s.Worth.Pods,
		Moves:  append([]PodMove{}, s.moves...),
		Saving: top.Sum(usd(s.Worth.Saving)), Score: s.score, After: s.after}
	if s.unpriced {
		step.Saving = top.Sum(math.NaN())
	}
	for _, c := range s.Candidates {
		step.Remove = append(step.Remove, c.Node)
	}
	for i := range s.Replacements {
		r := &s.Replacements[i]
		if len(r.Options) == 0 {
			continue
		}
		o := r.Options[0]
		step.Add = append(step.Add, AddedNode{r.Name, r.Pool, o.Type, o.Zone, o.CapacityType, usd(o.Price)})
	}
	return step
}

// keptNodes groups the entries of a proposal by node.
func (d *DisruptDecision) keptNodes() []KeptNode {
	list := []KeptNode{}
	for _, k := range d.proposal.Kept {
		if len(list) == 0 || list[len(list)-1].Node != k.Node {
			list = append(list, KeptNode{Node: k.Node})
		}
		n := &list[len(list)-1]
		n.Reasons = append(n.Reasons, d.drained(keptReasonOf(d.last, k)))
	}
	return list
}

// Names returns the nodes with claims, except those that are being removed already, as `kubectl get -o name` does.
func (a *DisruptAnswer) Names() []string {
	var names []string
	for i := range a.Steps {
		for _, node := range a.Steps[i].Remove {
			names = append(names, "node/"+node)
		}
	}
	for i := range a.Kept {
		names = append(names, "node/"+a.Kept[i].Node)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// drained adds to the reason of a node that is being deleted what blocks its drain.
func (d *DisruptDecision) drained(r KeptReason) KeptReason {
	n := d.last.Node(r.node)
	if r.Code != explain.Code(plan.NodeLeaving) || n == nil {
		return r
	}
	if why := d.removed.drainOf(d.last, n).obstacle(); why != "" {
		r.Message += "; " + why
		r.ofEach = r.Message
	}
	return r
}

// WriteJSON writes the answer as one JSON object, whose fields simulate documents.
func (a *DisruptAnswer) WriteJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(a)
}
