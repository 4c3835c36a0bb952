package placement

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// scheduler is one run over a snapshot. Its parts have one duty each:
//
//	queue      the groups to place, with their levels of relaxation
//	counters   pods by domain and host; admission evaluates the rules between pods on them
//	nodes      existing nodes; fitChecker determines whether pods fit on a node or in a bin
//	fleet      new nodes (bins), and what the limits leave; launcher opens bins, packing fills the pools of a weight
//	assigner   assigns groups to domains; solver repeats assigning, filling and launching in rounds
//	binds      the order in which the pods can be bound
//	claims     bins as claims of the plan; refusals explains what is left
type scheduler struct {
	snap     *model.Snapshot
	opts     *Options
	cache    *Cache
	budget   *budget
	counters *counters
	nodes    *existingNodes
	fleet    *fleet
	launcher *launcher
	queue    *queue
	assigner *assigner
	reserved *reservedPods
	rwop     *rwopPods
	solver   *solver
	deferral *deferral
	binds    *bindOrder
	claims   *claimWriter
	refusals *refusals
	result   *plan.Provision
}

// schedulerParts are the scheduler and its parts in one allocation: what-ifs create many of them.
type schedulerParts struct {
	scheduler scheduler
	budget    budget
	counters  counters
	admission admission
	fit       fitChecker
	nodes     existingNodes
	fleet     fleet
	queue     queue
	assigner  assigner
	launcher  launcher
	rwop      rwopPods
	deferral  deferral
	reserved  reservedPods
	claims    claimWriter
	solver    solver
	binds     bindOrder
	refusals  refusals
}

func newScheduler(snap *model.Snapshot, opts *Options, cache *Cache) *scheduler {
	p := &schedulerParts{budget: budget{limit: opts.WorkBudget}, counters: newCounters(snap, opts.Moving)}
	b, c, ad, fit, nodes, f := &p.budget, &p.counters, &p.admission, &p.fit, &p.nodes, &p.fleet
	q, as, l := &p.queue, &p.assigner, &p.launcher
	*ad = admission{space: snap.Space, counters: c}
	*fit = fitChecker{snap: snap, admission: ad, budget: b}
	*nodes = existingNodes{snap: snap, counters: c, fit: fit, budget: b}
	*f = newFleet(snap, opts, fit, cache)
	*q = queue{snap: snap, opts: opts, counters: c, nodes: nodes, fleet: f}
	*as = assigner{snap: snap, counters: c, admission: ad, fit: fit, nodes: nodes, fleet: f, budget: b}
	*l = launcher{snap: snap, opts: opts, budget: b, fleet: f, assigner: as}
	p.rwop = rwopPods{snap: snap, nodes: nodes}
	p.deferral = deferral{queue: q}
	p.reserved = reservedPods{snap: snap, fit: fit, nodes: nodes, assigner: as, deferral: &p.deferral}
	p.claims = claimWriter{snap: snap, opts: opts, fleet: f, names: map[string]bool{}}
	p.solver = solver{snap: snap, budget: b, counters: c, queue: q, assigner: as, nodes: nodes, fleet: f, launcher: l, rwop: &p.rwop}
	p.binds = bindOrder{snap: snap, budget: b, counters: c, admission: ad, nodes: nodes, fleet: f, claims: &p.claims,
		assigner: as, reserved: &p.reserved, deferral: &p.deferral}
	p.refusals = refusals{snap: snap, opts: opts, admission: ad, fit: fit, nodes: nodes, fleet: f}
	p.scheduler = scheduler{snap: snap, opts: opts, cache: cache, budget: b, counters: c, nodes: nodes, fleet: f, launcher: l,
		queue: q, assigner: as, reserved: &p.reserved, rwop: &p.rwop, deferral: &p.deferral, claims: &p.claims, solver: &p.solver,
		binds: &p.binds, refusals: &p.refusals, result: &plan.Provision{}}
	return &p.scheduler
}

// fresh returns a new run over a snapshot, which continues the work count of this one.
func (s *scheduler) fresh(snap *model.Snapshot) *scheduler {
	next := newScheduler(snap, s.opts, s.cache)
	next.budget.work, next.assigner.admission.scan = s.budget.work, s.assigner.admission.scan
	return next
}
