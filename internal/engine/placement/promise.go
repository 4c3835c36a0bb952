package placement

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// promised is a pod that was promised a place. It may have been promised more than one: where it no longer fits, a claim was
// launched for it since, or it was reserved another. The newest promise holds, and an older one where that cannot be kept.
type promised struct {
	task *task
	pod  *model.Pod
	// nodes are those that promise the pod a place, each once: first that of the newest promise.
	nodes []*target
	kept  bool
	// listed: it has its turn.
	listed bool
}

// keepPromises puts pods where they were promised a place, while they still may be there: on the node that we
// nominated, or on the claim that was bought for them. Everything else is planned around them, so that a plan made again
// says the same. The rules by domain are asked in the end, when everybody has a place: what matters is that there is an
// order in which all can be bound.
func (r *run) keepPromises(tasks []*task) {
	list := r.promises(tasks)
	if len(list) == 0 {
		return
	}
	// What was wished for then may have been dropped: only what must hold is asked.
	for _, t := range tasks {
		t.force(len(t.levels) - 1)
	}
	r.bringAllBack(list, true)
	if slices.ContainsFunc(list, func(p *promised) bool { return !p.kept && len(p.nodes) > 1 }) {
		r.bringAllBack(list, false)
	}
	r.countKept(tasks, list)
	for _, t := range tasks {
		t.force(0)
	}
}

// bringAllBack keeps the newest promises, or any: an older promise of one pod takes no place that is promised to another one now.
// A pod that must be near others may come back when those have: as long as some do, all are asked again.
func (r *run) bringAllBack(list []*promised, newest bool) {
	for returned := true; returned; {
		returned = false
		for _, p := range list {
			nodes := p.nodes
			if newest {
				nodes = nodes[:1]
			}
			returned = !p.kept && r.bringBack(p, nodes) || returned
		}
	}
}

// bringBack puts the pod onto the first of the nodes that takes it, and reports whether one did.
func (r *run) bringBack(p *promised, nodes []*target) bool {
	for _, n := range nodes {
		if !r.mayReturn(p.task, n) {
			continue
		}
		for _, c := range p.task.rules.touched {
			if r.stay[p.pod] && !r.leaving {
				break // it counts where it runs
			}
			// It may be open in which domain the node will be: then it may be in any of them.
			c.put(r.snap.Space, n.node.Row, 1, n.node.Taints)
		}
		r.onto(p.task, n, []*model.Pod{p.pod})
		p.kept = true
		return true
	}
	return false
}

func (r *run) mayReturn(t *task, n *target) bool {
	fit := r.fits(t, t.group.Rows, n)
	return fit.Count > 0 || fit.Verdict.Code == plan.AffinityUnmet && r.fitsPlace(t, &n.place, true).Count > 0
}

// countKept takes the pods that have their places out of what is left of the tasks.
func (r *run) countKept(tasks []*task, list []*promised) {
	if r.kept == nil {
		r.kept = make(map[*model.Pod]bool, len(list))
	}
	for _, p := range list {
		if p.kept {
			r.kept[p.pod] = true
		}
	}
	for _, t := range tasks {
		rest := make([]*model.Pod, 0, len(t.left))
		for _, p := range t.left {
			if r.kept[p] {
				r.order = append(r.order, p)
			} else {
				rest = append(rest, p)
			}
		}
		t.left = rest
	}
}

// promises lists the pods of the tasks that were promised a place, if any. Nodes have them in the order
// in which they were put there, and who comes first may matter to who may come after; then come those that no node knows
// of, in the order of the tasks.
func (r *run) promises(tasks []*task) []*promised {
	byName, known := map[string]*target{}, map[string]*promised{}
	some := false
	for _, n := range r.nodes {
		byName[n.node.Name] = n
		some = some || len(n.node.Promised) > 0
	}
	var nominated []*promised
	for _, t := range tasks {
		for _, p := range t.left {
			entry := &promised{task: t, pod: p}
			for _, name := range []string{r.snap.Planned[p.UID], p.Nominated} {
				if n := byName[name]; n != nil {
					entry.may(n)
				}
			}
			if len(entry.nodes) == 0 && !some {
				continue
			}
			if len(entry.nodes) > 0 {
				nominated = append(nominated, entry)
			}
			known[p.UID] = entry
		}
	}
	list := make([]*promised, 0, len(known))
	add := func(p *promised) {
		if !p.listed {
			p.listed = true
			list = append(list, p)
		}
	}
	for _, n := range r.nodes {
		for _, uid := range n.node.Promised {
			if p := known[uid]; p != nil {
				p.may(n)
				add(p)
			}
		}
	}
	for _, p := range nominated {
		add(p)
	}
	for _, p := range list {
		if len(p.nodes) > 1 {
			r.newestFirst(p)
		}
	}
	return list
}

func (p *promised) may(n *target) {
	if !slices.Contains(p.nodes, n) {
		p.nodes = append(p.nodes, n)
	}
}

// newestFirst orders the nodes of a pod by what promises it a place there: the plan before; a reservation, which is taken back
// when the pod goes elsewhere; a nomination, which is written later than reservations and may be older; claims that were
// created for it, the newest first; at last what commands promise.
func (r *run) newestFirst(p *promised) {
	const (
		planned = iota
		reserved
		nominated
		launched
		commanded
	)
	kind := func(n *model.Node) int {
		switch {
		case n.Name == r.snap.Planned[p.pod.UID]:
			return planned
		case slices.ContainsFunc(n.ReservedFor, p.pod.NamedBy):
			return reserved
		case n.Name == p.pod.Nominated:
			return nominated
		case plan.LaunchedFor(n, p.pod):
			return launched
		}
		return commanded
	}
	slices.SortStableFunc(p.nodes, func(a, b *target) int {
		order := cmp.Compare(kind(a.node), kind(b.node))
		if order == 0 && kind(a.node) == launched {
			return plan.CompareLaunches(a.node, b.node)
		}
		return order
	})
}
