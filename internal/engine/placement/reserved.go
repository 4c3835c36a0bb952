package placement

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// reservedPod is a pod with a reservation. It may have more than one: if it no longer fits, a claim was launched for it
// since, or it got another reservation. The one that precedes the others applies, and another one if it cannot be used.
type reservedPod struct {
	pending *pendingGroup
	pod     *model.Pod
	// places are the nodes with a reservation for the pod, each once, in order of precedence.
	places []reservedPlace
	kept   bool
	// listed reports that the pod is in the list.
	listed bool
}

// reservedPlace is a node with a reservation, and the source of the reservation.
type reservedPlace struct {
	node   *target
	source model.Source
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

// place places pods where they have a reservation, while they are still admissible there. Everything else is planned
// around them, so that a repeated plan is the same. The rules by domain are evaluated at the end, when every pod is
// placed: it is sufficient that an order exists in which all pods can be bound.
func (r *reservedPods) place(groups []*pendingGroup) {
	list := r.find(groups)
	if len(list) == 0 {
		return
	}
	// Preferences of that time may have been dropped: only hard rules are evaluated.
	for _, pg := range groups {
		pg.force(len(pg.levels) - 1)
	}
	r.placeAll(list, true)
	if slices.ContainsFunc(list, func(p *reservedPod) bool { return !p.kept && len(p.places) > 1 }) {
		r.placeAll(list, false)
	}
	r.countKept(groups, list)
	for _, pg := range groups {
		pg.force(0)
	}
}

// placeAll uses the first reservation of each pod, or any: an older reservation of one pod must not take capacity that
// is now reserved for another. A pod with affinity may be placed when its targets have been: as long as some are
// placed, all are tried again.
func (r *reservedPods) placeAll(list []*reservedPod, first bool) {
	for placed := true; placed; {
		placed = false
		for _, p := range list {
			places := p.places
			if first {
				places = places[:1]
			}
			placed = !p.kept && r.placeOn(p, places) || placed
		}
	}
}

// placeOn places the pod on the first of the nodes that admits it, and reports whether one did.
func (r *reservedPods) placeOn(p *reservedPod, places []reservedPlace) bool {
	for _, place := range places {
		n := place.node
		if !r.admits(p.pending, n) {
			continue
		}
		for _, c := range p.pending.rules.touched {
			if r.deferral.counts(p.pod) {
				break // it counts where it runs
			}
			// The domain of a future node may be open: then the pod may be in any of them.
			c.put(r.snap.Space, n.node.Row, 1, n.node.Taints)
		}
		r.nodes.onto(p.pending, n, []*model.Pod{p.pod})
		p.kept = true
		return true
	}
	return false
}

func (r *reservedPods) admits(pg *pendingGroup, n *target) bool {
	fit := r.fit.node(pg, pg.group.Rows, n)
	return fit.Count > 0 || fit.Verdict.Code == plan.AffinityUnmet && r.fit.place(pg, &n.place, true).Count > 0
}

// countKept removes the placed pods from the remaining pods of the groups.
func (r *reservedPods) countKept(groups []*pendingGroup, list []*reservedPod) {
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

// find lists the pods of the groups that have a reservation. The pods of nodes are in the order in which they were
// placed, because an earlier pod may affect the admission of later ones. Then follow nominated pods without another
// reservation, in the order of the groups.
func (r *reservedPods) find(groups []*pendingGroup) []*reservedPod {
	some := slices.ContainsFunc(r.nodes.list, func(n *target) bool { return len(n.node.Reservations) > 0 })
	nominates := func(p *model.Pod) bool { return p.Nominated != "" }
	if !some && !slices.ContainsFunc(groups, func(pg *pendingGroup) bool { return slices.ContainsFunc(pg.left, nominates) }) {
		return nil
	}
	byName, known := map[string]*target{}, map[string]*reservedPod{}
	for _, n := range r.nodes.list {
		byName[n.node.Name] = n
	}
	var nominated []*reservedPod
	for _, pg := range groups {
		for _, p := range pg.left {
			n := byName[p.Nominated]
			if n == nil && !some {
				continue
			}
			entry := &reservedPod{pending: pg, pod: p}
			if n != nil {
				entry.add(n, model.FromNomination)
				nominated = append(nominated, entry)
			}
			known[p.UID] = entry
		}
	}
	list := make([]*reservedPod, 0, len(known))
	add := func(p *reservedPod) {
		if !p.listed {
			p.listed = true
			list = append(list, p)
		}
	}
	for _, n := range r.nodes.list {
		for _, reservation := range n.node.Reservations {
			if p := known[reservation.Pod.UID]; p != nil {
				p.add(n, reservation.Source)
				add(p)
			}
		}
	}
	for _, p := range nominated {
		add(p)
	}
	for _, p := range list {
		p.sort()
	}
	return list
}

// add adds a reservation. Of several on one node, that with the precedence remains.
func (p *reservedPod) add(n *target, source model.Source) {
	at := slices.IndexFunc(p.places, func(other reservedPlace) bool { return other.node == n })
	if at < 0 {
		p.places = append(p.places, reservedPlace{n, source})
		return
	}
	p.places[at].source = min(p.places[at].source, source)
}

// sort puts the places of the pod in order of precedence: by source, and the newest of the claims that were created for
// the pod first.
func (p *reservedPod) sort() {
	slices.SortStableFunc(p.places, func(a, b reservedPlace) int {
		order := cmp.Compare(a.source, b.source)
		if order == 0 && a.source == model.FromLaunch {
			return model.CompareLaunches(a.node.node, b.node.node)
		}
		return order
	})
}
