package placement

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Options of a run. The zero value selects the production defaults.
type Options struct {
	// NodePrice is the cost of a node beyond its price, nano-USD per hour: agents licensed per node, daemons, one more
	// point of failure. 0 means ProductionNodePrice, a negative value none.
	NodePrice int64
	// IgnorePreferences is --preference-policy=Ignore: preferred terms and soft spread are ignored.
	IgnorePreferences bool
	// RelaxMinValues is --min-values-policy=BestEffort: where too few values are left the minimum is lowered.
	RelaxMinValues bool
	// Effort is --packing-effort: the factor for the usual work spent on finding a cheaper packing; 0 means 1.
	Effort int
	// Closed reports nodes that accept no new pods. Their existing pods still count for topology. Nil closes none.
	Closed func(*model.Node) bool
	// Moving lists pods in transit: they may run on their old or their new node.
	Moving []Moving
	// Memory, optional, reduces the cost of consecutive runs, see the type.
	Memory *Memory
	// AskNodes adds the verdicts of existing nodes to refusals.
	AskNodes bool
	// Bought are decided claims that are not in the snapshot: they count for the part of one type in one zone in the
	// spot capacity, and for nothing else.
	Bought []plan.NewClaim
	// WorkBudget is how many evaluations a run may make (whether a group fits a node, a bin or a domain); 0 means no
	// limit. If they do not suffice, the plan is the part finished so far: see budget.go.
	WorkBudget int
}

// ProductionNodePrice is 0.005 USD per hour.
const ProductionNodePrice = 5 * model.Nano / 1000

func (o Options) nodePrice() int64 {
	switch {
	case o.NodePrice == 0:
		return ProductionNodePrice
	case o.NodePrice < 0:
		return 0
	}
	return o.NodePrice
}

// Schedule plans the pending pods of the snapshot. It depends only on its arguments: the same snapshot gives the same
// plan.
func Schedule(snap *model.Snapshot, opts Options) *plan.Provision {
	return newRun(snap, opts).schedule()
}

func (r *run) schedule() *plan.Provision {
	decided, stay := r.beside()
	if decided == nil {
		decided, stay = r.decided().staying()
	}
	result := decided.answer()
	result.Refused = append(result.Refused, stay...)
	return result
}

// decided places all pods, and returns the run with the best result: this one or another over the same snapshot.
func (r *run) decided() *run {
	best := r.wholly()
	if best.over() {
		return best.again(portioned)
	}
	return best
}

// wholly places all pods without portions; the returned run may be over its budget.
func (r *run) wholly() *run {
	r.place(whole)
	if r.inverted && !r.over() {
		if next := r.again(ranked); !next.over() {
			return next
		}
	}
	return r
}

// answer returns the decisions of the run as a plan.
func (r *run) answer() *plan.Provision {
	r.listPlacements()
	r.listClaims()
	r.listRefusals()
	r.result.Work = r.work
	return r.result
}

// run is one call of Schedule.
type run struct {
	snap     *model.Snapshot
	opts     Options
	counters *counters
	nodes    []*target
	// slack is the free cpu and memory of each of the nodes.
	slack []model.Slack
	pools []*market
	bins  []*bin
	tasks []*task
	// atoms caches which atoms of a key some node or pool can have.
	atoms map[label.Key]bitset.Set
	// partitions caches the nodes by their atoms on some keys, see nodesBy.
	partitions map[string]map[string]*[]int
	// avoidable: some pool or node has a PreferNoSchedule taint.
	avoidable bool
	// givenBack: a limit or a reservation has more left than at its last evaluation.
	givenBack bool
	// returned: something was released at any time; heavier.go.
	returned bool
	// scan: every pod examines all domains, without the heap. It is for tests.
	scan bool
	// boarding: every pod is placed, and the pods are bound one by one.
	boarding bool
	// order is the pods in the order of their assignment to domains.
	order []*model.Pod
	// kept are the pods that are placed on a node with a reservation for them.
	kept    map[*model.Pod]bool
	refused []*task
	// stay are pods that count where they run until the others are placed; leaving: the others are placed;
	// staysfirst.go.
	stay    map[*model.Pod]bool
	leaving bool
	// rivals need exclusive claims; exclusive.go.
	rivals  []*rival
	names   map[string]bool
	scratch scratch
	result  *plan.Provision
	// keptRows is how many rows the domains of the tasks keep; combine.go.
	keptRows int

	mode mode
	// work is how many evaluations were made; budget.go.
	work int
	// unequal: pods differ in priority. inverted: pods of a higher priority lost scarce capacity to lower ones;
	// reserved is the lowest rank that a reservation was used for; rank.go.
	unequal  bool
	inverted bool
	reserved int32
	// joinFirst: open bins contain pods of earlier tasks, and are filled before new ones are opened.
	joinFirst bool
}

func newRun(snap *model.Snapshot, opts Options) *run {
	return &run{snap: snap, opts: opts, result: &plan.Provision{}, counters: newCounters(snap, opts.Moving), names: map[string]bool{}, reserved: math.MaxInt32}
}

// again returns a new run over the same snapshot, which continues the work count of this one.
func (r *run) again(m mode) *run {
	next := newRun(r.snap, r.opts)
	next.work, next.scan, next.stay = r.work, r.scan, r.stay
	next.place(m)
	return next
}

// place places all pods.
func (r *run) place(m mode) {
	r.mode = m
	if len(r.snap.Groups) == 0 {
		return
	}
	r.openPools()
	r.openNodes()
	r.solve()
	r.askRivals()
	r.settle()
}

// solve places the tasks, depth by depth.
func (r *run) solve() {
	r.tasks = r.queue()
	r.placeTallies()
	r.holdBack()
	r.keepPromises(r.tasks)
	r.holdStaying()
	switch r.mode {
	case whole:
		r.solveByDepth(r.tasks)
	case ranked:
		for i, tasks := range r.byRank() {
			r.joinFirst = i > 0
			r.solveByDepth(tasks)
		}
	case portioned:
		r.solvePortions()
	}
}

// solveTogether places tasks that need not wait for each other, in rounds: assign to domains, place on nodes, join
// bins, open bins, join those. The rest tries another domain, then drops one preference. Tasks excluded by rules are
// tried again while other placements still change the counts.
func (r *run) solveTogether(active []*task) {
	var stuck []*task
	for round := 0; len(active) > 0 && !r.over(); round++ {
		pods := countTasks(active)
		lots := r.assignAndFill(active)
		r.joinBins(lots, round)
		r.buy(lots)
		r.joinRest(lots)
		r.takeBack(lots)
		placed := pods - countTasks(active)
		var next []*task
		for _, t := range active {
			switch {
			case len(t.left) == 0:
			case t.hasAnother() || r.relax(t):
				next = append(next, t)
			default:
				stuck = append(stuck, t)
			}
		}
		if len(next) == 0 && placed > 0 {
			next, stuck = r.retry(stuck)
		}
		active = next
	}
	r.refused = append(r.refused, stuck...)
}

// retry splits off the tasks that rules between pods excluded, because placements have changed the counts. When part of
// a limit was released, all tasks are included.
func (r *run) retry(stuck []*task) (again, rest []*task) {
	for _, t := range stuck {
		if t.unreached || !r.givenBack && t.rules.none() && len(t.rules.hostAffinities) == 0 {
			rest = append(rest, t)
			continue
		}
		t.shut, t.domains = nil, nil
		again = append(again, t)
	}
	return again, rest
}

func countTasks(tasks []*task) int {
	n := 0
	for _, t := range tasks {
		n += len(t.left)
	}
	return n
}

// assignAndFill assigns the tasks to domains and places them on nodes. Where the nodes of a domain hold fewer pods than
// estimated, the rest is assigned once more, so that no node is launched in one domain while nodes of another have
// capacity.
func (r *run) assignAndFill(tasks []*task) []*lot {
	var all []*lot
	for again := tasks; len(again) > 0 && !r.over(); {
		var lots []*lot
		filled := 0
		for _, t := range again {
			// The first pod of a self-affine group decides for all: the free capacity must be up to date.
			if r.decidesForAll(t) {
				r.fillNodes(lots[filled:])
				filled = len(lots)
			}
			lots = append(lots, r.assign(t)...)
		}
		r.fillNodes(lots[filled:])
		again = nil
		for _, l := range lots {
			if len(l.left) == 0 || !l.roomElsewhere() {
				all = append(all, l)
				continue
			}
			l.to.room = 0
			r.count(l.task, l.to, -len(l.left))
			l.task.left = append(slices.Clip(l.left), l.task.left...)
			if !slices.Contains(again, l.task) {
				again = append(again, l.task)
			}
		}
	}
	return all
}

// decidesForAll reports whether all other pods of the task must follow its first pod's domain.
func (r *run) decidesForAll(t *task) bool {
	return len(t.left) > 1 && slices.ContainsFunc(t.rules.affinities, func(a affinityRule) bool { return a.first() })
}

// roomElsewhere reports whether the lot was expected to fit on nodes of its domain, and another domain has capacity.
func (l *lot) roomElsewhere() bool {
	return l.expected && slices.ContainsFunc(l.domains, func(d *domain) bool { return d != l.to && d.room > 0 && !l.shut[d.id] })
}

// takeBack returns the unplaced pods of the lots to their tasks, and shuts the domains that proved full.
func (r *run) takeBack(lots []*lot) {
	full := map[*task]bool{} // tasks of which a domain proved full
	for _, l := range lots {
		if len(l.left) > 0 && l.to != nil && !l.capped {
			full[l.task] = true
		}
	}
	for _, l := range lots {
		if len(l.left) == 0 {
			continue
		}
		if l.to != nil {
			r.count(l.task, l.to, -len(l.left))
			l.turnedAway = true
			if l.shut == nil {
				l.shut = map[string]bool{}
			}
			l.shut[l.to.id] = l.shut[l.to.id] || !l.capped || !full[l.task]
		}
		l.task.left = append(slices.Clip(l.left), l.task.left...)
	}
}

// hasAnother reports whether a domain turned the task away in this round and another one is left to try. It is called
// once per round.
func (t *task) hasAnother() bool {
	turned := t.turnedAway
	t.turnedAway = false
	return turned && slices.ContainsFunc(t.domains, func(d *domain) bool { return !t.shut[d.id] })
}

// listPlacements adds the pods placed on nodes of the snapshot to the result.
func (r *run) listPlacements() {
	for _, t := range r.nodes {
		if len(t.shares) > 0 {
			r.result.Placed = append(r.result.Placed, plan.Placement{Node: t.node.Name, Pods: t.allPods()})
		}
	}
}

// listRefusals adds the unschedulable pods and the reasons to the result.
func (r *run) listRefusals() {
	for _, p := range r.snap.Rejected {
		if p.Rejected.Silent {
			continue
		}
		code := plan.PodInvalid
		if p.Rejected.Unsupported {
			code = plan.PodUnsupported
		}
		r.result.Refused = append(r.result.Refused, plan.Refusal{
			Pods: []*model.Pod{p}, Verdict: plan.Verdict{Code: code, Rejection: p.Rejected}})
	}
	r.refuseRivals()
	for _, t := range r.refused {
		r.result.Refused = append(r.result.Refused, r.verdicts(t))
	}
}
