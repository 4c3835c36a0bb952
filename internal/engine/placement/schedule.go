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
	result := decided.answer()
	result.Refused = append(result.Refused, remaining...)
	return result
}

// decided places all pods, and returns the run with the best result: this one or another over the same snapshot.
func (s *scheduler) decided() *scheduler {
	best := s.placeWhole()
	if best.budget.over() {
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
		s.fleet.pinIdle()
	}
}

// open lists the pools, the nodes and the groups, and counts the pods on the nodes.
func (s *scheduler) open() {
	s.fleet.open()
	cache := s.cache
	if s.opts.WorkBudget > 0 && s.budget.work > 0 {
		cache = nil // an earlier run in its memory may still become the result
	}
	s.nodes.open(s.opts.Closed, cache)
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
