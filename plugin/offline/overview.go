package offline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/futile"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/billing"
	"github.com/karpenter-go/karpenter/plugin/panel"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// Overview is one reading of a cluster: its snapshot, and what is decided about it. Parts that several views need are
// computed when they are first asked for, and kept. It is safe for concurrent use: the snapshot is immutable, and a view
// waits for another only if both need the same part.
type Overview struct {
	w      *Manifests
	policy Policy
	from   *mirror
	snap   *model.Snapshot
	// removed is what the objects say about nodes that are being deleted.
	removed removals

	// converting is held while objects are converted, which the overviews of changes share.
	converting sync.Mutex
	// decide returns the decision about pending pods, and disruptNow the one about nodes that the controller would make
	// now: a single round.
	decide     func() *Decision
	disruptNow func() *DisruptDecision
	// planning has an entry while the plan is made. plan launches nodes for pending pods first, and rest is the snapshot
	// after its last step. lost are nodes that a change takes away before, lostBy in a word why.
	planning chan struct{}
	plan     *view.Plan
	rest     *model.Snapshot
	lost     []string
	lostBy   string

	// CostBy is what views of the cost share it by if nothing else is asked.
	CostBy bill.Grouping
	saved  savings
}

// Overview converts the objects once, and returns what the page shows of them.
func (o *Manifests) Overview(p *Policy) *Overview {
	reading := &Overview{w: o, policy: *p, removed: o.removals(), from: o.mirror(), planning: make(chan struct{}, 1),
		CostBy: bill.Grouping{By: bill.ByNamespace}}
	reading.snap = reading.from.Snapshot(o.now)
	reading.decide, reading.disruptNow = sync.OnceValue(reading.decision), sync.OnceValue(reading.disruption)
	reading.saved.turn, reading.saved.list = make(chan struct{}, 1), sync.OnceValue(reading.findBlockers)
	return reading
}

// Bill returns what the cost of the nodes is for.
func (o *Overview) Bill(g bill.Grouping) *bill.Bill { return o.w.bill(o.snap, g) }

// CostLabels returns the keys of labels by which the cost can be shared, those of most pods first.
func (o *Overview) CostLabels() []string { return billing.Labels(o.snap) }

// At is the time of the reading.
func (o *Overview) At() time.Time { return o.snap.Now }

// PriceSource is the source and the date of prices; empty for invented ones.
func (o *Overview) PriceSource() string { return o.w.sale.Source }

// Incomplete says what the answers lack: kinds that the user may not read, and objects that are not among the files.
func (o *Overview) Incomplete() []string {
	var lines []string
	for _, d := range o.w.denied {
		lines = append(lines, fmt.Sprintf("%s may not be read (%s): %s", d.Resource, d.Verb, d.Effect))
	}
	return append(lines, o.w.missingLines()...)
}

// Problems are the objects that could not be read.
func (o *Overview) Problems() []error { return append(slices.Clone(o.w.Problems), o.from.problems...) }

// Empty reports whether there is nothing to show.
func (o *Overview) Empty() bool { return o.w.Empty() }

// Fleet returns the nodes with their pods. With the decision it also has why each node is kept.
func (o *Overview) Fleet(decided bool) *view.Fleet {
	f := o.fleetOf(o.snap)
	if decided {
		o.keepReasons(f, o.disruptNow())
	}
	return f
}

// fleetOf returns the nodes of a snapshot.
func (o *Overview) fleetOf(snap *model.Snapshot) *view.Fleet {
	f := &view.Fleet{At: snap.Now}
	at := map[model.Owner]int{}
	for _, n := range snap.Nodes {
		f.Nodes = append(f.Nodes, o.nodeOf(snap, n, f, at))
	}
	for _, p := range waitingOf(snap) {
		f.Waiting = append(f.Waiting, view.Pod{Name: p.Name, Workload: workloadIn(f, at, p)})
	}
	f.Normalize()
	return f
}

// waitingOf returns the pods without a node that exist.
func waitingOf(snap *model.Snapshot) []*model.Pod {
	list := slices.Clone(snap.Rejected)
	for _, g := range snap.Groups {
		for _, p := range g.Pods {
			if p.Virtual == "" {
				list = append(list, p)
			}
		}
	}
	return list
}

// workloadIn returns the index of the workload of the pod in the fleet.
func workloadIn(f *view.Fleet, at map[model.Owner]int, p *model.Pod) int {
	owner := workloadOwner(p)
	w, known := at[owner]
	if !known {
		w = len(f.Workloads)
		at[owner], f.Workloads = w, append(f.Workloads, view.Workload{Namespace: p.Namespace, Kind: owner.Kind, Name: owner.Name})
	}
	return w
}

func (o *Overview) nodeOf(snap *model.Snapshot, n *model.Node, f *view.Fleet, at map[model.Owner]int) view.Node {
	line := nodeLineOf(snap, n, o.removed)
	v := view.Node{Name: line.Name, Pool: line.NodePool, Type: line.InstanceType, Zone: line.Zone, CapacityType: line.CapacityType,
		State: line.State, CPU: n.Usable.At(quantity.CPU), Memory: n.Usable.At(quantity.Memory), CPUShare: line.CPU,
		MemoryShare: line.Memory,
		Price:       line.PricePerHour, Managed: n.Ours(), Unpriced: line.Unpriced,
		Age: time.Duration(line.Age * float64(time.Second)), Drifted: n.Drifted}
	for _, p := range n.Pods {
		w := workloadIn(f, at, p)
		f.Workloads[w].Pods++
		v.Pods = append(v.Pods, view.Pod{Name: p.Name, Workload: w, Share: max(share(p.Requests, n.Usable, quantity.CPU),
			share(p.Requests, n.Usable, quantity.Memory))})
	}
	return v
}

// workloadOwner returns the workload of a pod. The UID holds the namespace, so that owners of the same name in two
// namespaces differ.
func workloadOwner(p *model.Pod) model.Owner {
	o := p.Controller.Workload(p.Labels, p.Created)
	if o.UID = p.Namespace; o.Kind == "" {
		o.Name = p.Name
	}
	return o
}

// keepReasons sets why each node is kept or removed.
func (o *Overview) keepReasons(f *view.Fleet, d *DisruptDecision) {
	why := map[string]disruption.Kept{}
	for _, k := range d.proposal.Kept {
		if first, has := why[k.Node]; !has || first.Verdict.Code == plan.NoSaving {
			why[k.Node] = k
		}
	}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if k, kept := why[n.Name]; kept {
			n.Code, n.Why = explain.Code(k.Verdict.Code), explain.Verdict(d.first, k.Verdict)
		} else if step := d.stepRemoving(n.Name); step != nil {
			n.Code, n.Why = "Proposed", "would be removed now: "+string(step.Reason)
		}
	}
}

// disruption makes the decision that disruptNow keeps.
func (o *Overview) disruption() *DisruptDecision {
	d := newPlanRecorder(o, o.snap).d
	d.step()
	return d
}

// decision makes the decision that decide keeps.
func (o *Overview) decision() *Decision {
	d := &Decision{from: o.from, snap: o.snap, opts: o.policy.options(), source: o.w.sale.Source, gaps: o.w.gaps()}
	d.plan = new(futile.Launches).Restrain(o.snap, placement.Schedule(o.snap, d.opts))
	return d
}

// Cost returns the price of the fleet, beside that of a fresh fleet and the lower bound.
func (o *Overview) Cost() view.Cost {
	c := o.costOf(o.snap)
	for _, w := range o.decide().waitingPods("") {
		if c.Pending += w.Count; w.Outcome == "NoPlace" {
			c.NoPlace += w.Count
		}
	}
	return c
}

func (o *Overview) costOf(snap *model.Snapshot) view.Cost {
	all := func(*model.Node) bool { return true }
	opts := o.policy.disruptOptions()
	figures := figuresOf(snap, opts, all)
	c := view.Cost{Nodes: len(snap.Nodes), Unpriced: figures.UnknownPrices}
	if !figures.PricePerHour.IsZero() {
		c.Price = float64(figures.PricePerHour)
	}
	least, _ := disruption.LeastCost(snap, opts, all)
	c.Bound = usd(least)
	for _, n := range snap.Nodes {
		c.Pods += len(n.Pods)
	}
	fresh := o.freshPlan(snap)
	price, _ := priceOf(snap, fresh, o.policy.options())
	c.Fresh, c.FreshNodes = usd(price), len(fresh.Claims)
	for _, r := range fresh.Refused {
		c.FreshWithout += len(r.Pods)
	}
	return c
}

// freshPlan plans the pods of all managed nodes as if none of these nodes existed. Pods that are pending now are not part
// of it.
func (o *Overview) freshPlan(snap *model.Snapshot) *plan.Provision {
	bare := *snap
	bare.Groups = nil
	var ours []string
	for _, n := range snap.Nodes {
		if n.Ours() {
			ours = append(ours, n.Name)
		}
	}
	opts := o.policy.options()
	opts.AskNodes = false
	return placement.Schedule(bare.Without(ours...), opts)
}

// Pending returns the pending pods in sets with the same outcome, the unschedulable ones first.
func (o *Overview) Pending() []view.Pending {
	d := o.decide()
	list := []view.Pending{}
	for _, w := range d.waitingPods("") {
		list = append(list, view.Pending{Pod: w.Pod, Count: w.Count, Outcome: w.Outcome, Why: w.Why})
	}
	refusals := map[string]plan.Refusal{}
	for _, r := range d.plan.Refused {
		for _, p := range plan.Waiting(r.Pods) {
			refusals[p.Key()] = r
		}
	}
	for i := range list {
		if r, refused := refusals[list[i].Pod]; refused && list[i].Outcome == "NoPlace" {
			list[i].Pools = pendingPools(explain.RefusedOf(d.snap, r))
			for _, pool := range list[i].Pools {
				list[i].Nearest = cmp.Or(list[i].Nearest, pool.Nearest)
			}
		}
	}
	return list
}

// Node returns what `explain node` prints about a node, and its pods; nil if there is none of the name.
func (o *Overview) Node(name string) *view.NodeDetail {
	outcome := o.disruptNow().nodeOutcome(name)
	if outcome == nil {
		return nil
	}
	return &view.NodeDetail{Text: outcome.Text(), Pods: panel.Pods(o.snap, o.snap.NodeOrClaim(name), workloadKey)}
}

// Pod returns what is known of a pod, NAMESPACE/NAME: on its node, or what `explain pod` prints of one without a node. It is
// nil if there is none.
func (o *Overview) Pod(key string) *view.PodDetail {
	for _, n := range o.snap.Nodes {
		for _, p := range n.Pods {
			if p.Key() == key {
				d := panel.Pod(o.snap, n, p, workloadKey(p))
				return &d
			}
		}
	}
	for _, p := range waitingOf(o.snap) {
		if p.Key() != key {
			continue
		}
		d := panel.Pod(o.snap, nil, p, workloadKey(p))
		if object := o.w.podOf(key); object != nil {
			d.Text = o.decide().outcome(object).Text()
		}
		return &d
	}
	return nil
}

// workloadKey returns the controller of a pod in words.
func workloadKey(p *model.Pod) string {
	owner := workloadOwner(p)
	return view.Workload{Namespace: p.Namespace, Kind: owner.Kind, Name: owner.Name}.Key()
}

// Plan launches nodes for pending pods, and then returns the steps until no further one is worthwhile. It ends early with
// the context; what is done by then is lost. The plan is made once: later callers wait for it. tell is given the plan so far,
// which must not be changed, first without a step, then after each round; nil for nothing.
func (o *Overview) Plan(ctx context.Context, tell func(*view.Plan)) (*view.Plan, error) {
	select {
	case o.planning <- struct{}{}:
		defer func() { <-o.planning }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if o.plan != nil {
		return o.plan, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	recorder := newPlanRecorder(o, o.snap)
	if len(o.lost) > 0 {
		recorder.lose(o.lost, o.lostBy)
	}
	recorder.d.launch()
	if err := recorder.removeAll(ctx, tell); err != nil {
		return nil, err
	}
	o.plan, o.rest = recorder.finish(), recorder.d.last
	for _, g := range o.rest.Groups {
		o.plan.Homeless += len(g.Pods)
	}
	return o.plan, nil
}

// removeAll proposes steps until there is none, and lets time pass as --until-stable does.
func (r *planRecorder) removeAll(ctx context.Context, tell func(*view.Plan)) error {
	for len(r.d.steps) < mostSteps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if tell != nil {
			tell(r.soFar())
		}
		if !r.d.next() {
			return nil
		}
	}
	return nil
}

// mostSteps ends a plan whose steps would fill no page.
const mostSteps = 5000

// planRecorder keeps what the page shows of a plan while it is made.
type planRecorder struct {
	o    *Overview
	d    *DisruptDecision
	plan *view.Plan
	// at is the index of each workload in the fleet of the plan.
	at map[model.Owner]int
}

// newPlanRecorder returns a recorder for a decision on the snapshot, which has not been made yet.
func newPlanRecorder(o *Overview, snap *model.Snapshot) *planRecorder {
	d := &DisruptDecision{opts: o.policy.disruptOptions(), first: snap, last: snap, source: o.w.sale.Source,
		gaps: o.w.gaps(), removed: o.removed, pools: o.w.poolObjects()}
	r := &planRecorder{o: o, d: d, at: map[model.Owner]int{}, plan: &view.Plan{Fleet: &view.Fleet{At: snap.Now}}}
	d.observe = r.step
	for _, n := range snap.Nodes {
		r.plan.Fleet.Nodes = append(r.plan.Fleet.Nodes, o.nodeOf(snap, n, r.plan.Fleet, r.at))
	}
	r.plan.Before = figuresFor(d.figures(snap))
	return r
}

func figuresFor(f FleetFigures) view.Figures {
	v := view.Figures{Nodes: f.Nodes}
	if !f.PricePerHour.IsZero() {
		v.Price = float64(f.PricePerHour)
	}
	return v
}

// step adds a step, after which the snapshot is next.
func (r *planRecorder) step(s *decidedStep, next *model.Snapshot) {
	told := s.told()
	step := view.Step{Reason: told.Reason, Method: told.Method, Remove: told.Remove, Moved: told.Moved, Price: figuresFor(s.after).Price,
		WaitSeconds: r.d.waited(s.at), Shares: map[string]view.Shares{}}
	if len(told.Add) > 0 {
		step.AddText = additions(told.Add)
	}
	for _, added := range told.Add {
		if n := next.Node(added.Name); n != nil {
			step.Add = append(step.Add, added.Name)
			r.plan.Fleet.Nodes = append(r.plan.Fleet.Nodes, r.o.nodeOf(next, n, r.plan.Fleet, r.at))
		}
	}
	for _, assignment := range s.Assignments {
		if n := next.Node(assignment.Node); n != nil {
			step.Shares[n.Name] = view.Shares{CPU: share(n.Used, n.Usable, quantity.CPU), Memory: share(n.Used, n.Usable, quantity.Memory)}
		}
	}
	r.plan.Append(step)
}

func (r *planRecorder) finish() *view.Plan {
	p := r.soFar()
	p.Fleet.Normalize()
	return p
}

// soFar returns the plan of the steps so far. Its fleet is a copy, which is not in the order of view.Fleet.Normalize.
func (r *planRecorder) soFar() *view.Plan {
	p, f := *r.plan, *r.plan.Fleet
	p.Steps, p.After = slices.Clone(p.Steps), figuresFor(r.d.figures(r.d.last))
	f.Nodes, f.Workloads = slices.Clone(f.Nodes), slices.Clone(f.Workloads)
	p.Fleet = &f
	return &p
}

// pendingPools returns the pools of a refusal, the closest to a place first.
func pendingPools(refused explain.Refused) []view.PoolFilter {
	var list []view.PoolFilter
	for _, pool := range refused.Pools {
		f := view.PoolFilter{Pool: pool.Pool, Code: pool.Code, Text: pool.Text, Nearest: pool.Hint}
		for _, rule := range pool.Filters {
			f.Rules = append(f.Rules, view.Filter{Rule: rule.Rule, Before: rule.Before, After: rule.After})
		}
		if len(pool.Nearest) > 0 {
			f.Nearest = cmp.Or(pool.Nearest[0].Text, f.Nearest)
		}
		list = append(list, f)
	}
	return list
}
