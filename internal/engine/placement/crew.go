package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// The crew are the daemons that pods care about, or that care about pods: with labels that a rule by hostname selects, or
// with anti-affinity by hostname. On a node that is not initialised, and on every node that is bought, those count as
// present that are sure to come; kube-scheduler binds a pod that wants to be beside one when it is there. Daemons that
// come to some types of a pool only, and larger domains than hosts, are not looked at.

// crewman is a daemon of the crew; at is its place there.
type crewman struct {
	*model.Daemon
	at int
	// slots that count its pods.
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

// crewed reports whether there are daemons that matter.
func (r *run) crewed() bool { return len(r.counters.crew) > 0 }

// keepsHost reports whether the term keeps pods off the hosts of those who carry it.
func keepsHost(t model.Term) bool { return t.Anti && t.Required() && t.Key == model.LabelHostname }

// comingTo are those of the crew that are sure to come to nodes of the row.
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

// coming are those of the crew that are not on the node yet and are sure to come.
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

// keepsOff reports whether the daemon keeps one of the group's pods off its host. Daemons' terms are no marks, so that the
// pods of a group may differ here.
func (man *crewman) keepsOff(g *model.Group) bool {
	return slices.ContainsFunc(man.Terms, func(term model.Term) bool {
		return keepsHost(term) && slices.ContainsFunc(g.Pods, func(p *model.Pod) bool { return term.Selector.Selects(p.Namespace, p.Labels) })
	})
}

// answer says how a daemon receives the pods of a task on its host.
type answer uint8

const (
	unasked answer = iota
	welcome
	unwelcome
)

// keptOff reports whether the daemon keeps pods of the task off its host; the pods are asked once.
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

// shuns reports whether the daemons keep the task's pods off their host, or are kept off by them.
func shuns(t *task, crew []crewman) bool {
	for i := range crew {
		if t.keptOff(&crew[i]) || slices.ContainsFunc(crew[i].slots, func(slot int) bool { return slices.Contains(t.rules.hostApart, slot) }) {
			return true
		}
	}
	return false
}

// clashes reports whether pods of the tasks and a daemon cannot be on one node, as it will be that is of the row and one
// of the types: the less is open, the more daemons are sure to come.
func (r *run) clashes(m *market, row label.Row, kinds bitset.Set, tasks ...*task) bool {
	if kinds.Empty() {
		return false
	}
	crew := r.counters.comingTo(m.pool.Types.Hull(row, kinds), m.pool.Taints)
	return slices.ContainsFunc(tasks, func(t *task) bool { return shuns(t, crew) })
}

// tasks are whose pods the place has.
func (p *place) tasks() []*task {
	tasks := make([]*task, 0, len(p.shares))
	for _, s := range p.shares {
		tasks = append(tasks, s.task)
	}
	return tasks
}

// planned are whose pods the bin may be filled with.
func (b *bin) planned() []*task {
	tasks := make([]*task, 0, len(b.parts))
	for _, p := range b.parts {
		tasks = append(tasks, p.task)
	}
	return tasks
}
