package placement

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Options of a run. The zero value is what production uses.
type Options struct {
	// NodePrice is what a node costs beyond its price, nano-USD per hour: agents with a licence per node, daemons, one
	// more thing that can break. 0 means ProductionNodePrice, a negative value none.
	NodePrice int64
	// IgnorePreferences is --preference-policy=Ignore: preferred terms and soft spread are not looked at.
	IgnorePreferences bool
	// RelaxMinValues is --min-values-policy=BestEffort: where too few values are left the minimum is lowered.
	RelaxMinValues bool
	// Effort is --packing-effort: how many times the usual work may be spent on finding a cheaper packing; 0 means once.
	Effort int
	// Closed are nodes that stay as they are: who is on them counts, and nobody comes. Nil closes none.
	Closed func(*model.Node) bool
	// Moving are pods of whom it is open where they are.
	Moving []Moving
	// Memory, where there is one, makes runs cheaper that follow each other, see there.
	Memory *Memory
	// AskNodes: refusals say what the nodes that are there answered, too.
	AskNodes bool
	// Bought are claims that are decided and not in the snapshot: they count for the share of spot capacity that one type in
	// one zone may have, and for nothing else.
	Bought []plan.NewClaim
	// WorkBudget is how many questions a run may ask (may this group go onto that node, into that bin, to that domain);
	// 0 means any number. When they do not suffice the plan is the part finished so far: see budget.go.
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

// Schedule answers the pending pods of the snapshot. It depends on nothing but its arguments: the same snapshot gives
// the same plan.
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

// decided places all pods, and returns the run that does it best: this one or another over the same snapshot.
func (r *run) decided() *run {
	best := r.wholly()
	if best.over() {
		return best.again(portioned)
	}
	return best
}

// wholly places all pods without portions; the run that it returns may be over.
func (r *run) wholly() *run {
	r.place(whole)
	if r.inverted && !r.over() {
		if next := r.again(ranked); !next.over() {
			return next
		}
	}
	return r
}

// answer writes down what was decided.
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
	// slack is what each of the nodes has free of cpu and memory.
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
	// givenBack: a limit or a reservation has more left than when it was last asked.
	givenBack bool
	// returned: something was given back at any time; heavier.go.
	returned bool
	// scan: every pod looks at all domains, as slow as it is. It is for tests.
	scan bool
	// boarding: everybody has a place, and the pods are bound one by one.
	boarding bool
	// order is the pods in the order of their assignment to domains.
	order []*model.Pod
	// kept are the pods that are where they were promised a place.
	kept    map[*model.Pod]bool
	refused []*task
	// stay are pods that count where they run until the others have their places; leaving: they have; staysfirst.go.
	stay    map[*model.Pod]bool
	leaving bool
	// rivals want a claim for themselves; exclusive.go.
	rivals  []*rival
	names   map[string]bool
	scratch scratch
	result  *plan.Provision

	mode mode
	// work is how many questions were asked; budget.go.
	work int
	// unequal: pods differ in priority. inverted: somebody of a higher priority lost something scarce to a lower one;
	// reserved is the lowest rank that a reservation was taken for; rank.go.
	unequal  bool
	inverted bool
	reserved int32
	// joinFirst: bins that are open have earlier, other tasks in them, and are to be filled up before any is bought.
	joinFirst bool
}

func newRun(snap *model.Snapshot, opts Options) *run {
	return &run{snap: snap, opts: opts, result: &plan.Provision{}, counters: newCounters(snap, opts.Moving), names: map[string]bool{}, reserved: math.MaxInt32}
}

// again is a new run over the same snapshot, the work of this one counted.
func (r *run) again(m mode) *run {
	next := newRun(r.snap, r.opts)
	next.work, next.scan, next.stay = r.work, r.scan, r.stay
	next.place(m)
	return next
}

// place finds places for all pods.
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
// bins, open bins, join those; what is left tries another domain, then with one wish less. Tasks that rules kept out are tried
// again while others are still moving the counts.
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

// retry splits off the tasks that rules between pods kept out: as pods came to rest, the counts have changed. When
// something was given back to a limit, everybody may hope.
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

// assignAndFill assigns the tasks to domains and puts them onto nodes. Where the nodes of a domain hold fewer than was
// thought, the rest is assigned once more, so that nothing is bought in one domain while nodes of another have room.
func (r *run) assignAndFill(tasks []*task) []*lot {
	var all []*lot
	for again := tasks; len(again) > 0 && !r.over(); {
		var lots []*lot
		filled := 0
		for _, t := range again {
			// The first of those who want to be together decides for all: he must see what room others have left.
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

// decidesForAll reports whether the domain of the task's first pod is where all others will have to go.
func (r *run) decidesForAll(t *task) bool {
	return len(t.left) > 1 && slices.ContainsFunc(t.rules.affinities, func(a affinityRule) bool { return a.first() })
}

// roomElsewhere reports whether the lot was to find room on nodes of its domain, and another domain has some.
func (l *lot) roomElsewhere() bool {
	return l.expected && slices.ContainsFunc(l.domains, func(d *domain) bool { return d != l.to && d.room > 0 && !l.shut[d.id] })
}

// takeBack returns what the lots could not place to their tasks, and shuts the domains that proved full.
func (r *run) takeBack(lots []*lot) {
	full := map[*task]bool{} // those of which a domain proved full
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

// hasAnother reports whether the task was turned away by a domain in this round and has another to try.
// It is asked once in a round.
func (t *task) hasAnother() bool {
	turned := t.turnedAway
	t.turnedAway = false
	return turned && slices.ContainsFunc(t.domains, func(d *domain) bool { return !t.shut[d.id] })
}

// listPlacements writes down what went onto nodes of the snapshot.
func (r *run) listPlacements() {
	for _, t := range r.nodes {
		if len(t.shares) > 0 {
			r.result.Placed = append(r.result.Placed, plan.Placement{Node: t.node.Name, Pods: t.everybody()})
		}
	}
}

// listRefusals writes down who has no place, and why.
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
