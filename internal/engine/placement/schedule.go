package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Schedule plans the pending pods of the snapshot, and then its virtual pods. It depends only on its arguments: the same
// snapshot gives the same plan.
func Schedule(snap *model.Snapshot, opts Options) *plan.Provision {
	opts.Provisioning = true
	p := newScheduler(snap, &opts, nil).schedule()
	p.Virtual = ScheduleVirtual(snap, opts, p)
	return p
}

// ScheduleCached is Schedule for consecutive what-ifs, without the virtual pods: it takes the cache of the run before, and
// returns that for the next. Soft spread may cost any amount: a what-if knows what it costs to move some pods, and not what
// it is worth for all of them.
func ScheduleCached(snap *model.Snapshot, opts Options, cache Cache) (*plan.Provision, Cache) {
	p := newScheduler(snap, &opts, &cache).schedule()
	return p, cache
}

func (s *scheduler) schedule() *plan.Provision {
	decided, remaining := s.deferringBlocked()
	if decided == nil {
		decided, remaining = s.decided().withRemaining()
	}
	if decided.budget.ended {
		return decided.unreached()
	}
	result := decided.answer()
	result.Refused = append(result.Refused, remaining...)
	return result
}

// decided places all pods, and returns the run with the best result: this one or another over the same snapshot.
func (s *scheduler) decided() *scheduler {
	best := s.placeWhole()
	if best.budget.over() && !best.budget.ended {
		return best.again(portioned)
	}
	return best
}

// placeWhole places all pods without portions; the returned run may be over its budget.
func (s *scheduler) placeWhole() *scheduler {
	s.place(whole)
	if s.fleet.inversion.found && !s.budget.over() {
		if next := s.again(ranked); !next.budget.over() {
			return next.withinSoftSpread()
		}
	}
	return s.withinSoftSpread()
}

// Topology spread with ScheduleAnyway is a preference: it may cost mostSoft/leastSoft of what the new nodes cost without it.
const mostSoft, leastSoft = 3, 2

// withinSoftSpread returns this run, or one without soft spread if the nodes of this one cost too much for a preference.
func (s *scheduler) withinSoftSpread() *scheduler {
	soft := slices.ContainsFunc(s.queue.groups, func(pg *pendingGroup) bool { return pg.softly() })
	if !soft || !s.opts.Provisioning || len(s.fleet.bins) == 0 || s.budget.over() {
		return s
	}
	opts := *s.opts
	opts.IgnoreSoftSpread = true
	without := newScheduler(s.snap, &opts, nil) // this run, in the memory of its cache, may still become the result
	without.budget.work, without.deferral.pods, without.assigner.admission.scan = s.budget.work, s.deferral.pods, s.assigner.admission.scan
	without.place(s.budget.mode)
	refused, fewer := countPods(s.solver.refused), countPods(without.solver.refused)
	if !without.budget.over() && !without.fleet.inversion.found && (fewer < refused ||
		fewer == refused && leastSoft*s.fleet.cost(0) > mostSoft*without.fleet.cost(0)) {
		return without
	}
	s.budget.beside += without.budget.work - s.budget.work // this run is finished, and stays within its budget
	return s
}

// again returns a new run over the same snapshot, which continues the work count of this one.
func (s *scheduler) again(m mode) *scheduler {
	next := s.fresh(s.snap)
	next.deferral.pods = s.deferral.pods
	next.place(m)
	return next
}

// place places all pods.
func (s *scheduler) place(m mode) {
	s.budget.mode = m
	if len(s.snap.Groups) == 0 {
		return
	}
	s.open()
	s.reserved.place(s.queue.groups)
	s.holdDeferred()
	s.solve()
	s.solver.rwopWaiters()
	s.verifyBindOrder()
	if len(s.deferral.pods) == 0 {
		s.fleet.pinRedundant()
	}
}

// open lists the pools, the nodes and the groups, and counts the pods on the nodes.
func (s *scheduler) open() {
	s.fleet.open()
	cache := s.cache
	if s.opts.WorkBudget > 0 && s.budget.work > 0 {
		cache = nil // an earlier run in its memory may still become the result
	}
	s.nodes.open(s.opts, cache)
	s.queue.fill()
	s.nodes.placeTallies()
	s.rwop.hold(s.queue.groups)
}

// solve places the groups, depth by depth.
func (s *scheduler) solve() {
	switch s.budget.mode {
	case whole:
		s.solver.byDepth(s.queue.groups)
	case ranked:
		for i, groups := range s.queue.byRank() {
			s.solver.joinFirst = i > 0
			s.solver.byDepth(groups)
		}
	case portioned:
		s.solver.inPortions()
	}
}

// answer returns the decisions of the run as a plan.
func (s *scheduler) answer() *plan.Provision {
	s.listPlacements()
	s.result.Claims = s.claims.all()
	s.result.Renamed = s.claims.renamed
	s.listRefusals()
	s.result.Work = s.budget.work + s.budget.beside
	return s.result
}

// unreached returns the plan of a run that has ended because a pod needs a new node: every pod is refused.
func (s *scheduler) unreached() *plan.Provision {
	for _, g := range s.snap.Groups {
		s.result.Refused = append(s.result.Refused, plan.Refusal{Pods: g.Pods, Verdict: plan.Verdict{Code: plan.NotReached}})
	}
	s.result.Work = s.budget.work
	return s.result
}

// listPlacements adds the pods placed on nodes of the snapshot to the result.
func (s *scheduler) listPlacements() {
	for _, t := range s.nodes.list {
		if len(t.placed) > 0 {
			s.result.Placed = append(s.result.Placed, plan.Placement{Node: t.node.Name, Pods: t.allPods()})
		}
	}
}

// listRefusals adds the unschedulable pods and the reasons to the result.
func (s *scheduler) listRefusals() {
	for _, p := range s.snap.Rejected {
		if p.Rejected.Silent {
			continue
		}
		code := plan.PodInvalid
		if p.Rejected.Unsupported {
			code = plan.PodUnsupported
		}
		s.result.Refused = append(s.result.Refused, plan.Refusal{
			Pods: []*model.Pod{p}, Verdict: plan.Verdict{Code: code, Rejection: p.Rejected}})
	}
	s.result.Refused = append(s.result.Refused, s.rwop.refusals()...)
	for _, pg := range s.solver.refused {
		s.result.Refused = append(s.result.Refused, s.refusals.of(pg))
	}
}

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
	sums := &nodeSums{}
	if cache != nil {
		sums = &cache.sums
	}
	p := &schedulerParts{budget: budget{limit: opts.WorkBudget}, counters: newCounters(snap, opts.Moving, sums)}
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

// ScheduleVirtual plans the virtual pods of the snapshot on what a plan of its pending pods leaves: the free capacity of
// nodes, in flight or to launch, and the remainder of the pools' limits. It returns nil if there are no virtual pods. The
// pending pods are present there as if they were bound, so that they count for the constraints of virtual pods. They
// never see a virtual pod themselves: the plan is complete before. Of the options, those for pods in transit and for
// closed nodes do not apply: the pods are where the plan has them, and room exists wherever a node has it.
//
// A virtual pod may be on a node that a command is about to remove, until the command's replacements exist (plan.Leaving):
// they have the room, and none must be launched twice.
func ScheduleVirtual(snap *model.Snapshot, opts Options, planned *plan.Provision) *plan.Provision {
	if len(snap.Virtual) == 0 {
		return nil
	}
	opts.Closed, opts.Moving = nil, nil
	return newScheduler(afterPlan(snap, planned), &opts, nil).schedule()
}

// afterPlan returns the snapshot that virtual pods are planned on.
func afterPlan(snap *model.Snapshot, planned *plan.Provision) *model.Snapshot {
	assignments := planned.Assignments()
	var futures []*model.Node
	for i := range planned.Claims {
		c := &planned.Claims[i]
		if n := snap.Future(c.FutureSpec(snap), c.Types()); n != nil {
			futures = append(futures, n)
			assignments = append(assignments, model.Assignment{Node: n.Name, Pods: c.Pods})
		}
	}
	read := plan.CommandReader{}
	open := snap.Reopened(func(n *model.Node) bool { return n.Command != "" && !n.Deleting && !read.Leaving(n) })
	return open.AfterPlan(assignments, futures)
}
