package placement

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement/relax"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// pendingGroup is a group, or a part of it, that is being placed.
type pendingGroup struct {
	group *model.Group
	left  []*model.Pod
	// pods are all its pods, placed or not: those of the model's group, except for pods that were split off.
	pods []*model.Pod
	// rank is the priority of the group, or that of pods with affinity to it.
	rank int32
	// unreached: the work budget was spent before the group was processed.
	unreached bool
	// attempted: its remaining pods are unschedulable.
	attempted bool
	// levels are the levels of relaxation. at is the current one, and rules are its rules. compiled are the rules of
	// the levels that were needed so far.
	levels   []relax.Level
	at       int
	rules    *rules
	compiled map[int]*rules
	// rows are the group's alternatives with the preference in force.
	rows []label.Row
	// domainFull: a domain of this round had no capacity for some of its pods.
	domainFull bool
	// depth is how many groups must come first because this one has affinity to them.
	depth int
	// daemonAnswers caches, by the index of a daemon, whether they keep the group's pods off their hosts.
	daemonAnswers []daemonAnswer
	// choices are the domains of the group.
	choices choices
	// crowded: there are too many domains to list any. cut: the list is a part of them; combine.go.
	crowded, cut bool
}

// domainBatch is a part of a group that goes to one domain: identical pods with identical options.
type domainBatch struct {
	pending *pendingGroup
	left    []*model.Pod
	rows    []label.Row
	domain  *domain
	// first is when the first of its pods was assigned: the batch assigned first is placed first. turns is when each pod
	// was assigned, nil for pods that were not assigned one by one.
	first int
	turns []int
	// capped: pods are left because those of other domains must come first, not because the domain is full.
	capped bool
	// expected: nodes of the domain were assumed to have capacity for some.
	expected bool
	// anyDomain: the packing chooses the domains, within skew; spread.go.
	anyDomain bool
	skew      *skewLimits
}

// hard returns the rules with all preferences dropped.
func (pg *pendingGroup) hard() *rules { return pg.compiled[len(pg.levels)-1] }

// removeFirst removes the first n pods from the batch and returns them.
func (batch *domainBatch) removeFirst(n int) []*model.Pod {
	pods := batch.left[:n:n]
	batch.left = batch.left[n:]
	return pods
}

// queue is the groups to place.
type queue struct {
	snap     *model.Snapshot
	opts     *Options
	counters *counters
	nodes    *existingNodes
	fleet    *fleet
	groups   []*pendingGroup
	// everywhere caches whether all nodes have a label. onHosts is how many pods there may be, by slot.
	everywhere map[label.Key]bool
	onHosts    []int
}

// fill makes a pending group of every group and orders them: first the targets of affinity, then higher priority, then
// larger pods, because these are harder to place.
func (q *queue) fill() {
	var groups []*pendingGroup
	// A claim in one zone may have too few values for a pool's minValues, so that the last level leaves the zone open.
	prefers := q.fleet.varied() || slices.ContainsFunc(q.fleet.pools, func(ps *poolState) bool { return prefersNot(ps.spec.Taints) }) ||
		slices.ContainsFunc(q.snap.Nodes, func(n *model.Node) bool { return prefersNot(n.Taints) && q.nodes.accepts(n) })
	for _, g := range q.snap.Groups {
		// The pods are not this controller's, whatever room its nodes have. What-ifs have them: they run on its nodes.
		if q.opts.Provisioning && q.fleet.elsewhere(g) {
			continue
		}
		pg := &pendingGroup{group: g, left: g.Pods, pods: g.Pods, rank: g.Priority, levels: q.levels(g.Shape, prefers)}
		groups = append(groups, pg)
		q.fleet.inversion.manyRanks = q.fleet.inversion.manyRanks || pg.rank != groups[0].rank
	}
	q.compile(groups)
	slices.SortFunc(groups, (*pendingGroup).compare)
	q.groups = groups
}

// compare orders groups as they are placed: those of the least depth first, then by priority and size. The size nearly always
// decides, and comparing the rest is expensive.
func (pg *pendingGroup) compare(other *pendingGroup) int {
	a, b := pg.group, other.group
	order := cmp.Or(cmp.Compare(pg.depth, other.depth), cmp.Compare(b.Priority, a.Priority))
	if order == 0 {
		order = compareSize(b.Requests, a.Requests)
	}
	if order == 0 {
		order = strings.Compare(a.Signature, b.Signature)
	}
	if order == 0 {
		order = strings.Compare(a.Pods[0].Key(), b.Pods[0].Key())
	}
	return order
}

// levels lists what is in force for pods of the shape, step by step.
func (q *queue) levels(s *model.Shape, preferTaints bool) []relax.Level {
	if q.opts.IgnoreSoftSpread && slices.ContainsFunc(s.Spread, func(c model.Spread) bool { return c.Soft }) {
		list := relax.Levels(s, q.opts.IgnorePreferences, preferTaints)
		for i := range list {
			list[i].Spreads = slices.DeleteFunc(list[i].Spreads, func(at int) bool { return s.Spread[at].Soft })
		}
		return list
	}
	return relax.Levels(s, q.opts.IgnorePreferences, preferTaints)
}

// softly reports whether soft topology spread is in force for the group.
func (pg *pendingGroup) softly() bool {
	return slices.ContainsFunc(pg.levels[pg.at].Spreads, func(i int) bool { return pg.group.Spread[i].Soft })
}

// compile compiles the rules of all groups and counts the pods on nodes.
func (q *queue) compile(groups []*pendingGroup) {
	for _, pg := range groups {
		pg.compiled = map[int]*rules{0: q.counters.compile(pg.group, &pg.levels[0])}
		if last := len(pg.levels) - 1; last > 0 {
			pg.compiled[last] = q.counters.compile(pg.group, &pg.levels[last])
		}
		pg.hard().require()
		pg.force(0)
	}
	q.counters.fill()
	q.findDaemons()
	for _, pg := range groups {
		for at, rules := range pg.compiled {
			q.counters.touch(rules, pg.group, at > 0 && at == len(pg.levels)-1 && q.fleet.varied())
		}
		pg.rows = q.rowsAt(pg)
	}
	q.dropRedundant(groups)
	if len(q.snap.Marks) > 0 {
		findDepths(groups)
	}
}

// relax drops one preference, and reports whether there was one.
func (q *queue) relax(pg *pendingGroup) bool {
	if pg.at+1 >= len(pg.levels) {
		return false
	}
	if next := pg.at + 1; pg.compiled[next] == nil {
		pg.compiled[next] = q.counters.compile(pg.group, &pg.levels[next])
		q.counters.touch(pg.compiled[next], pg.group, false)
		q.dropRedundantOf(pg.compiled[next])
		pg.compiled[next].pinUsed()
	}
	pg.force(pg.at + 1)
	pg.rows, pg.choices = q.rowsAt(pg), choices{}
	return true
}

// force puts the rules of a compiled level in force.
func (pg *pendingGroup) force(at int) { pg.at, pg.rules = at, pg.compiled[at] }

// rowsAt returns the group's alternatives, narrowed by the preferred term in force.
func (q *queue) rowsAt(pg *pendingGroup) []label.Row {
	i := pg.levels[pg.at].Preference
	if i < 0 {
		return pg.group.Rows
	}
	wish := pg.group.Preferences[i]
	if wish == nil {
		return nil
	}
	var rows []label.Row
	for _, row := range pg.group.Rows {
		both := make(label.Row, len(row))
		if q.snap.Space.And(both, row, wish) {
			rows = append(rows, both)
		}
	}
	return rows
}

// findDepths sets the depth of each group to one more than the depth of the groups whose pods its affinity terms
// select. Cycles are cut where they are entered.
func findDepths(groups []*pendingGroup) {
	byMark := map[int][]*pendingGroup{}
	for _, pg := range groups {
		for _, m := range pg.group.Matches {
			byMark[m] = append(byMark[m], pg)
		}
	}
	state := map[*pendingGroup]int{}
	var visit func(pg *pendingGroup)
	visit = func(pg *pendingGroup) {
		if state[pg] != 0 {
			return
		}
		state[pg] = 1
		for i := range pg.group.Terms {
			if term := &pg.group.Terms[i]; term.Anti || slices.Contains(pg.group.Matches, pg.group.TermMarks[i]) {
				continue
			}
			for _, near := range byMark[pg.group.TermMarks[i]] {
				visit(near)
				if state[near] == 2 {
					pg.depth = max(pg.depth, near.depth+1)
				}
			}
		}
		state[pg] = 2
	}
	for _, pg := range groups {
		visit(pg)
	}
}

// compareSize orders requests by extended resources first (scarce), then cpu, then memory.
func compareSize(a, b quantity.Vector) int {
	return cmp.Or(compareExtended(a, b), cmp.Compare(a.At(quantity.CPU), b.At(quantity.CPU)),
		cmp.Compare(a.At(quantity.Memory), b.At(quantity.Memory)))
}

// compareExtended orders requests by extended resources.
func compareExtended(a, b quantity.Vector) int {
	for i := max(len(a), len(b)) - 1; i > int(quantity.Pods); i-- {
		if c := cmp.Compare(a.At(quantity.Resource(i)), b.At(quantity.Resource(i))); c != 0 {
			return c
		}
	}
	return 0
}

// pinned returns the group's rows, narrowed to the atoms.
func (pg *pendingGroup) pinned(space *label.Space, atoms []int) []label.Row {
	var rows []label.Row
next:
	for _, row := range pg.rows {
		fixed := slices.Clone(row)
		for i, key := range pg.rules.pins {
			if !space.HasAtom(row, key, atoms[i]) {
				continue next
			}
			space.SetOnly(fixed, key, atoms[i])
		}
		rows = append(rows, fixed)
	}
	return rows
}
