package placement

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// task is a group, or a part of it, that is being placed.
type task struct {
	group *model.Group
	left  []*model.Pod
	// pods are all pods of the task, placed or not: those of the group, except for pods that were split off.
	pods []*model.Pod
	// rank is the priority of the group, or that of pods with affinity to it.
	rank int32
	// unreached: the work budget was spent before the task was processed.
	unreached bool
	// tried: its remaining pods are unschedulable.
	tried bool
	// levels are the levels of relaxation. at is the current one, and rules are its rules. compiled are the rules of
	// the levels that were needed so far.
	levels   []level
	at       int
	rules    *rules
	compiled map[int]*rules
	// rows are the group's alternatives with the preference in force.
	rows []label.Row
	// shut are the domains, as tuples over rules.pins, that proved to have no capacity.
	shut map[string]bool
	// turnedAway: a domain of this round had no capacity for some of its pods.
	turnedAway bool
	// depth is how many groups must come first because this one has affinity to them.
	depth int
	// off caches, for daemons of the crew, whether they keep the task's pods off their hosts.
	off []answer
	// domains are the choices of the group, once known.
	domains []*domain
	// crowded: there are too many domains to list any. cut: the list is a part of them; combine.go.
	crowded, cut bool
}

// lot is a part of a task that goes to one domain: identical pods with identical options.
type lot struct {
	*task
	left []*model.Pod
	rows []label.Row
	to   *domain
	// first is when the first of its pods was assigned: the lot assigned first is placed first. turns is when each pod
	// was assigned, nil for pods that were not assigned one by one.
	first int
	turns []int
	// capped: pods are left because those of other domains must come first, not because the domain is full.
	capped bool
	// expected: nodes of the domain were assumed to have capacity for some.
	expected bool
}

// take removes n pods from the lot and returns them.
func (l *lot) take(n int) []*model.Pod {
	pods := l.left[:n:n]
	l.left = l.left[n:]
	return pods
}

// queue makes a task of every group and orders them: first the targets of affinity, then higher priority, then larger
// pods, because these are harder to place.
func (r *run) queue() []*task {
	var tasks []*task
	for _, g := range r.snap.Groups {
		t := &task{group: g, left: g.Pods, pods: g.Pods, rank: g.Priority, levels: levels(g.Shape, r.opts.IgnorePreferences, r.avoidable)}
		tasks = append(tasks, t)
		r.unequal = r.unequal || t.rank != tasks[0].rank
	}
	r.compile(tasks)
	slices.SortFunc(tasks, func(a, b *task) int {
		return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(b.group.Priority, a.group.Priority),
			compareSize(b.group.Requests, a.group.Requests), strings.Compare(a.group.Signature, b.group.Signature),
			strings.Compare(a.group.Pods[0].Key(), b.group.Pods[0].Key()))
	})
	return tasks
}

// compile compiles the rules of all tasks and counts the pods on nodes.
func (r *run) compile(tasks []*task) {
	for _, t := range tasks {
		t.compiled = map[int]*rules{0: r.counters.compile(t.group, &t.levels[0])}
		if last := len(t.levels) - 1; last > 0 {
			t.compiled[last] = r.counters.compile(t.group, &t.levels[last])
		}
		t.force(0)
	}
	r.counters.fill(r.snap.Nodes)
	r.musterCrew()
	for _, t := range tasks {
		for _, rules := range t.compiled {
			r.counters.touch(rules, t.group)
		}
		t.rows = r.rowsAt(t)
	}
	if len(r.snap.Marks) > 0 {
		findDepths(tasks)
	}
}

// relax drops one preference, and reports whether there was one.
func (r *run) relax(t *task) bool {
	if t.at+1 >= len(t.levels) {
		return false
	}
	if next := t.at + 1; t.compiled[next] == nil {
		t.compiled[next] = r.counters.compile(t.group, &t.levels[next])
		r.counters.touch(t.compiled[next], t.group)
	}
	t.force(t.at + 1)
	t.rows, t.shut, t.domains = r.rowsAt(t), nil, nil
	return true
}

// force puts the rules of a compiled level in force.
func (t *task) force(at int) { t.at, t.rules = at, t.compiled[at] }

// rowsAt returns the group's alternatives, narrowed by the preferred term in force.
func (r *run) rowsAt(t *task) []label.Row {
	i := t.levels[t.at].preference
	if i < 0 {
		return t.group.Rows
	}
	wish := t.group.Preferences[i]
	if wish == nil {
		return nil
	}
	var rows []label.Row
	for _, row := range t.group.Rows {
		both := make(label.Row, len(row))
		if r.snap.Space.And(both, row, wish) {
			rows = append(rows, both)
		}
	}
	return rows
}

// findDepths sets the depth of each task to one more than the depth of the tasks whose pods its affinity terms select.
// Cycles are cut where they are entered.
func findDepths(tasks []*task) {
	byMark := map[int][]*task{}
	for _, t := range tasks {
		for _, m := range t.group.Matches {
			byMark[m] = append(byMark[m], t)
		}
	}
	state := map[*task]int{}
	var visit func(t *task)
	visit = func(t *task) {
		if state[t] != 0 {
			return
		}
		state[t] = 1
		for i := range t.group.Terms {
			if term := &t.group.Terms[i]; term.Anti || slices.Contains(t.group.Matches, t.group.TermMarks[i]) {
				continue
			}
			for _, near := range byMark[t.group.TermMarks[i]] {
				visit(near)
				if state[near] == 2 {
					t.depth = max(t.depth, near.depth+1)
				}
			}
		}
		state[t] = 2
	}
	for _, t := range tasks {
		visit(t)
	}
}

// compareSize orders requests by extended resources first (scarce), then cpu, then memory.
func compareSize(a, b quantity.Vector) int {
	for i := max(len(a), len(b)) - 1; i > int(quantity.Pods); i-- {
		if c := cmp.Compare(a.At(quantity.Resource(i)), b.At(quantity.Resource(i))); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(a.At(quantity.CPU), b.At(quantity.CPU)), cmp.Compare(a.At(quantity.Memory), b.At(quantity.Memory)))
}
