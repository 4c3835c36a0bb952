package placement

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// promised is a pod that was promised a place, on the first of the nodes that will have it. That of the plan before comes first,
// then its nomination, which may be older. It may have been promised more than one: where it no longer fits, a claim was
// launched for it since.
type promised struct {
	task  *task
	pod   *model.Pod
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
	// Who must be near others may come back when those have: until nobody does, all are asked again.
	for returned := true; returned; {
		returned = false
		for _, p := range list {
			returned = !p.kept && r.bringBack(p) || returned
		}
	}
	r.countKept(tasks, list)
	for _, t := range tasks {
		t.force(0)
	}
}

// bringBack puts the pod onto the first of its nodes that takes it, and reports whether one did.
func (r *run) bringBack(p *promised) bool {
	for _, n := range p.nodes {
		if !r.mayReturn(p.task, n) {
			continue
		}
		for _, c := range p.task.rules.touched {
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
	r.kept = make(map[*model.Pod]bool, len(list))
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
					entry.nodes = append(entry.nodes, n)
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
				p.nodes = append(p.nodes, n)
				add(p)
			}
		}
	}
	for _, p := range nominated {
		add(p)
	}
	return list
}
