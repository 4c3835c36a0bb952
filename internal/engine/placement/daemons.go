package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement/tally"
)

// The daemons that matter are those that affect pods by hostname or are affected by them: a rule by hostname selects
// their labels, or they have anti-affinity by hostname. On a node that is not initialized, and on every new node, those
// that are certain to run there count as present. A pod with affinity to a daemon is bound by kube-scheduler when the
// daemon is there. Not considered are daemons that run on some types of a pool only, and domains larger than hosts.

// daemonPod is a daemon that matters; index is its index.
type daemonPod struct {
	daemon *model.Daemon
	index  int
	// slots count its pods.
	slots []int
}

// findDaemons finds the daemons that matter, once all slots are known.
func (q *queue) findDaemons() {
	for _, daemon := range q.snap.Daemons {
		d := daemonPod{daemon: daemon, index: len(q.counters.daemons)}
		for mark, slot := range q.counters.slotOf {
			if m := &q.snap.Marks[mark]; slot >= 0 && !m.Carrier && m.Selector.Selects(daemon.Namespace, daemon.Labels) {
				d.slots = append(d.slots, slot)
			}
		}
		if len(d.slots) > 0 || slices.ContainsFunc(daemon.Terms, isHostAntiAffinity) {
			q.counters.daemons = append(q.counters.daemons, d)
		}
	}
	if len(q.counters.daemons) == 0 {
		return
	}
	for _, ps := range q.fleet.pools {
		if ps.open() {
			ps.daemons = q.counters.comingTo(ps.spec.Types.Hull(ps.spec.Start, ps.spec.Eligible), ps.spec.Taints)
		}
	}
}

// isHostAntiAffinity reports whether the term keeps other pods away from the hosts of its own pods.
func isHostAntiAffinity(t model.Term) bool {
	return t.Anti && t.Required() && t.Key == model.LabelHostname
}

// comingTo returns the daemons that are certain to run on nodes of the row.
func (c *counters) comingTo(row label.Row, taints []model.Taint) []daemonPod {
	var coming []daemonPod
	for _, d := range c.daemons {
		if _, no := model.Untolerated(taints, d.daemon.Tolerations); no {
			continue
		}
		if slices.ContainsFunc(d.daemon.Rows, func(r label.Row) bool { return c.snap.Space.Contains(r, row) }) {
			coming = append(coming, d)
		}
	}
	return coming
}

// coming returns the daemons that are not on the node yet and are certain to run there.
func (c *counters) coming(n *model.Node) []daemonPod {
	if len(c.daemons) == 0 || n.Stage == model.Initialized {
		return nil
	}
	return slices.DeleteFunc(c.comingTo(n.Row, n.Taints), func(d daemonPod) bool {
		return slices.ContainsFunc(n.Pods, func(p *model.Pod) bool { return p.Controller.UID == d.daemon.UID })
	})
}

// addDaemons counts the daemons.
func addDaemons(t *tally.Tally, daemons []daemonPod) {
	for _, d := range daemons {
		for _, slot := range d.slots {
			t.Add(slot, 1)
		}
	}
}

// excludes reports whether the daemon keeps one of the group's pods off its host. Daemons' terms are not marks, so the
// pods of a group may differ here.
func (d *daemonPod) excludes(g *model.Group) bool {
	return slices.ContainsFunc(d.daemon.Terms, func(term model.Term) bool {
		return isHostAntiAffinity(term) &&
			slices.ContainsFunc(g.Pods, func(p *model.Pod) bool { return term.Selector.Selects(p.Namespace, p.Labels) })
	})
}

// daemonAnswer is whether a daemon admits the pods of a group on its host.
type daemonAnswer uint8

const (
	daemonUnknown daemonAnswer = iota
	daemonAdmits
	daemonExcludes
)

// excludedBy reports whether the daemon keeps pods of the group off its host. The result is cached.
func (pg *pendingGroup) excludedBy(d *daemonPod) bool {
	for len(pg.daemonAnswers) <= d.index {
		pg.daemonAnswers = append(pg.daemonAnswers, daemonUnknown)
	}
	if pg.daemonAnswers[d.index] == daemonUnknown {
		if pg.daemonAnswers[d.index] = daemonAdmits; d.excludes(pg.group) {
			pg.daemonAnswers[d.index] = daemonExcludes
		}
	}
	return pg.daemonAnswers[d.index] == daemonExcludes
}

// daemonsExclude reports whether the daemons exclude the group's pods from their host, or are excluded by them.
func daemonsExclude(pg *pendingGroup, daemons []daemonPod) bool {
	for i := range daemons {
		if pg.excludedBy(&daemons[i]) ||
			slices.ContainsFunc(daemons[i].slots, func(slot int) bool { return slices.Contains(pg.rules.hostApart, slot) }) {
			return true
		}
	}
	return false
}

// groups returns the groups with pods on the place.
func (p *place) groups() []*pendingGroup {
	groups := make([]*pendingGroup, 0, len(p.placed))
	for _, s := range p.placed {
		groups = append(groups, s.pending)
	}
	return groups
}
