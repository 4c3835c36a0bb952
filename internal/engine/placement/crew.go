package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// The crew are the daemons that affect pods by hostname or are affected by them: a rule by hostname selects their
// labels, or they have anti-affinity by hostname. On a node that is not initialized, and on every new node, those that
// are certain to run there count as present. A pod with affinity to a daemon is bound by kube-scheduler when the daemon
// is there. Not considered are daemons that run on some types of a pool only, and domains larger than hosts.

// crewman is a daemon of the crew; at is its index.
type crewman struct {
	*model.Daemon
	at int
	// slots count its pods.
	slots []int
}

// musterCrew finds the crew, once all slots are known.
func (r *run) musterCrew() {
	for _, d := range r.snap.Daemons {
		man := crewman{Daemon: d, at: len(r.counters.crew)}
		for mark, slot := range r.counters.slotOf {
			if m := &r.snap.Marks[mark]; slot >= 0 && !m.Carrier && m.Selector.Selects(d.Namespace, d.Labels) {
				man.slots = append(man.slots, slot)
			}
		}
		if len(man.slots) > 0 || slices.ContainsFunc(d.Terms, keepsHost) {
			r.counters.crew = append(r.counters.crew, man)
		}
	}
	if len(r.counters.crew) == 0 {
		return
	}
	for _, m := range r.pools {
		if m.open() {
			m.crew = r.counters.comingTo(m.pool.Types.Hull(m.pool.Start, m.pool.Eligible), m.pool.Taints)
		}
	}
}

// crewed reports whether the crew has members.
func (r *run) crewed() bool { return len(r.counters.crew) > 0 }

// keepsHost reports whether the term keeps other pods away from the hosts of its own pods.
func keepsHost(t model.Term) bool { return t.Anti && t.Required() && t.Key == model.LabelHostname }

// comingTo returns those of the crew that are certain to run on nodes of the row.
func (c *counters) comingTo(row label.Row, taints []model.Taint) []crewman {
	var coming []crewman
	for _, man := range c.crew {
		if _, no := model.Untolerated(taints, man.Tolerations); no {
			continue
		}
		if slices.ContainsFunc(man.Rows, func(r label.Row) bool { return c.snap.Space.Contains(r, row) }) {
			coming = append(coming, man)
		}
	}
	return coming
}

// coming returns those of the crew that are not on the node yet and are certain to run there.
func (c *counters) coming(n *model.Node) []crewman {
	if len(c.crew) == 0 || n.Stage == model.Initialized {
		return nil
	}
	return slices.DeleteFunc(c.comingTo(n.Row, n.Taints), func(man crewman) bool {
		return slices.ContainsFunc(n.Pods, func(p *model.Pod) bool { return p.Controller.UID == man.UID })
	})
}

// board counts the daemons.
func (t *tally) board(crew []crewman) {
	for _, man := range crew {
		for _, slot := range man.slots {
			t.add(slot, 1)
		}
	}
}

// keepsOff reports whether the daemon keeps one of the group's pods off its host. Daemons' terms are not marks, so the
// pods of a group may differ here.
func (man *crewman) keepsOff(g *model.Group) bool {
	return slices.ContainsFunc(man.Terms, func(term model.Term) bool {
		return keepsHost(term) && slices.ContainsFunc(g.Pods, func(p *model.Pod) bool { return term.Selector.Selects(p.Namespace, p.Labels) })
	})
}

// answer is whether a daemon admits the pods of a task on its host.
type answer uint8

const (
	unasked answer = iota
	welcome
	unwelcome
)

// keptOff reports whether the daemon keeps pods of the task off its host. The result is cached.
func (t *task) keptOff(man *crewman) bool {
	for len(t.off) <= man.at {
		t.off = append(t.off, unasked)
	}
	if t.off[man.at] == unasked {
		if t.off[man.at] = welcome; man.keepsOff(t.group) {
			t.off[man.at] = unwelcome
		}
	}
	return t.off[man.at] == unwelcome
}

// shuns reports whether the daemons exclude the task's pods from their host, or are excluded by them.
func shuns(t *task, crew []crewman) bool {
	for i := range crew {
		if t.keptOff(&crew[i]) || slices.ContainsFunc(crew[i].slots, func(slot int) bool { return slices.Contains(t.rules.hostApart, slot) }) {
			return true
		}
	}
	return false
}

// clashes reports whether pods of the tasks and a daemon cannot share a node of the row and one of the types. The fewer
// labels are open, the more daemons are certain to run on the node.
func (r *run) clashes(m *market, row label.Row, kinds bitset.Set, tasks ...*task) bool {
	if kinds.Empty() {
		return false
	}
	crew := r.counters.comingTo(m.pool.Types.Hull(row, kinds), m.pool.Taints)
	return slices.ContainsFunc(tasks, func(t *task) bool { return shuns(t, crew) })
}

// tasks returns the tasks with pods on the place.
func (p *place) tasks() []*task {
	tasks := make([]*task, 0, len(p.shares))
	for _, s := range p.shares {
		tasks = append(tasks, s.task)
	}
	return tasks
}

// planned returns the tasks that the bin may be filled with.
func (b *bin) planned() []*task {
	tasks := make([]*task, 0, len(b.parts))
	for _, p := range b.parts {
		tasks = append(tasks, p.task)
	}
	return tasks
}
