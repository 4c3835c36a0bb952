package placement

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
)

// promised is a pod with a reservation. It may have more than one: if it no longer fits, a claim was launched for it
// since, or it got another reservation. The newest one applies, and an older one if the newest cannot be used.
type promised struct {
	task *pendingGroup
	pod  *model.Pod
	// nodes are those with a reservation for the pod, each once: the newest reservation first.
	nodes []*target
	kept  bool
	// listed reports that the pod is in the list.
	listed bool
}

// reservedPods places pods with a reservation.
type reservedPods struct {
	snap     *model.Snapshot
	fit      *fitChecker
	nodes    *existingNodes
	assigner *assigner
	deferral *deferral
	// kept are the pods that are placed on a node with a reservation for them.
	kept map[*model.Pod]bool
}

// keepPromises places pods where they have a reservation, while they are still admissible there: on the node they were
// nominated to, or on the claim launched for them. Everything else is planned around them, so that a repeated plan is
// the same. The rules by domain are evaluated at the end, when every pod is placed: it is sufficient that an order
// exists in which all pods can be bound.
func (r *reservedPods) keepPromises(groups []*pendingGroup) {
	list := r.promises(groups)
	if len(list) == 0 {
		return
	}
	// Preferences of that time may have been dropped: only hard rules are evaluated.
	for _, pg := range groups {
		pg.force(len(pg.levels) - 1)
	}
	r.bringAllBack(list, true)
	if slices.ContainsFunc(list, func(p *promised) bool { return !p.kept && len(p.nodes) > 1 }) {
		r.bringAllBack(list, false)
	}
	r.countKept(groups, list)
	for _, pg := range groups {
		pg.force(0)
	}
}

// bringAllBack restores the newest reservations, or any: an older reservation of one pod must not take capacity that is
// now reserved for another. A pod with affinity may be restored when its targets have been: as long as some are
// restored, all are tried again.
func (r *reservedPods) bringAllBack(list []*promised, newest bool) {
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

// bringBack places the pod on the first of the nodes that admits it, and reports whether one did.
func (r *reservedPods) bringBack(p *promised, nodes []*target) bool {
	for _, n := range nodes {
		if !r.mayReturn(p.task, n) {
			continue
		}
		for _, c := range p.task.rules.touched {
			if r.deferral.counts(p.pod) {
				break // it counts where it runs
			}
			// The domain of a future node may be open: then the pod may be in any of them.
			c.put(r.snap.Space, n.node.Row, 1, n.node.Taints)
		}
		r.nodes.onto(p.task, n, []*model.Pod{p.pod})
		p.kept = true
		return true
	}
	return false
}

func (r *reservedPods) mayReturn(pg *pendingGroup, n *target) bool {
	fit := r.fit.node(pg, pg.group.Rows, n)
	return fit.Count > 0 || fit.Verdict.Code == plan.AffinityUnmet && r.fit.place(pg, &n.place, true).Count > 0
}

// countKept removes the placed pods from the remaining pods of the groups.
func (r *reservedPods) countKept(groups []*pendingGroup, list []*promised) {
	if r.kept == nil {
		r.kept = make(map[*model.Pod]bool, len(list))
	}
	for _, p := range list {
		if p.kept {
			r.kept[p.pod] = true
		}
	}
	for _, pg := range groups {
		rest := make([]*model.Pod, 0, len(pg.left))
		for _, p := range pg.left {
			if r.kept[p] {
				r.assigner.order = append(r.assigner.order, p)
			} else {
				rest = append(rest, p)
			}
		}
		pg.left = rest
	}
}

// promises lists the pods of the groups that have a reservation. The pods of nodes are in the order in which they were
// placed, because an earlier pod may affect the admission of later ones. Then follow nominated pods that no node lists,
// in the order of the groups.
func (r *reservedPods) promises(groups []*pendingGroup) []*promised {
	byName, known := map[string]*target{}, map[string]*promised{}
	some := false
	for _, n := range r.nodes.list {
		byName[n.node.Name] = n
		some = some || len(n.node.Promised) > 0
	}
	var nominated []*promised
	for _, pg := range groups {
		for _, p := range pg.left {
			entry := &promised{task: pg, pod: p}
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
	for _, n := range r.nodes.list {
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

// newestFirst orders the nodes of a pod by the kind of its reservation there: the previous plan; a reservation on the
// claim, which is removed when the pod goes elsewhere; a nomination, which is written later than reservations and may
// be older; claims that were created for the pod, the newest first; and last, reservations by commands.
func (r *reservedPods) newestFirst(p *promised) {
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
		case reserve.LaunchedFor(n, p.pod):
			return launched
		}
		return commanded
	}
	slices.SortStableFunc(p.nodes, func(a, b *target) int {
		order := cmp.Compare(kind(a.node), kind(b.node))
		if order == 0 && kind(a.node) == launched {
			return reserve.CompareLaunches(a.node, b.node)
		}
		return order
	})
}
