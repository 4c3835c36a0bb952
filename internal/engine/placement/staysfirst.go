package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Pods that cannot be evicted at present count where they run until the other pods are placed. kube-scheduler counts
// them there, and their PodDisruptionBudget may not open before other pods are healthy: pods whose admission depends on
// the later places of these pods would wait, possibly forever. Then these pods are placed beside the others as if they
// had left their nodes, so that capacity exists when the budget opens. Other pods that were not placed are tried again.
// The order of the plan reflects this: first the pods that can be bound while those pods run where they are.

// beside returns a run that places pods which cannot be evicted at present beside the others, and the refusals of pods
// that count where they run for good. It returns nil where rules between pods have no effect, or the work budget does
// not suffice.
func (r *run) beside() (*run, []plan.Refusal) {
	if !concernsOthers(r.snap) {
		return nil, nil
	}
	left, refusals := r.snap, []plan.Refusal(nil)
	for range mostStayRounds {
		next := r.besideIn(left)
		if next.over() {
			break
		}
		still := next.refusedInPlace()
		if next.holdsInPlace(podsLeft(still)) {
			return next, refusals
		}
		for _, t := range still {
			refusals = append(refusals, next.verdicts(t))
		}
		left = left.Bound(homes(podsLeft(still)))
	}
	return nil, nil
}

// besideIn returns the run for a snapshot in which the pods that cannot be evicted at present have left their nodes.
func (r *run) besideIn(left *model.Snapshot) *run {
	stay := evictionBlocked(left)
	both := left.Bound(homes(stay))
	both.Groups = left.Groups
	next := newRun(both, r.opts)
	next.work, next.scan, next.stay = r.work, r.scan, map[*model.Pod]bool{}
	for _, p := range stay {
		next.stay[p] = true
	}
	if next = next.wholly(); !next.over() {
		next.placeStaying()
	}
	r.work = next.work
	return next
}

// evictionBlocked lists the pods to be placed that cannot be evicted at present.
func evictionBlocked(snap *model.Snapshot) []*model.Pod {
	var pods []*model.Pod
	for _, g := range snap.Groups {
		for _, p := range g.Pods {
			if snap.EvictionBlocked[p.UID] {
				pods = append(pods, p)
			}
		}
	}
	return pods
}

// concernsOthers reports whether the snapshot has pods that cannot be evicted at present, other pods to place, and
// rules that count the former. If one of them uses a claim that only one pod may use, other pods wait for it in any
// case, and the result is false.
func concernsOthers(snap *model.Snapshot) bool {
	if len(snap.EvictionBlocked) == 0 {
		return false
	}
	used := map[int]bool{}
	for _, g := range snap.Groups {
		for _, marks := range [][]int{g.SpreadMarks, g.TermMarks, g.BlockedBy} {
			for _, mark := range marks {
				used[mark] = true
			}
		}
	}
	counts := func(mark int) bool { return mark >= 0 && used[mark] }
	counted, others := false, false
	for _, g := range snap.Groups {
		blocked := slices.ContainsFunc(g.Pods, func(p *model.Pod) bool { return snap.EvictionBlocked[p.UID] })
		others = others || slices.ContainsFunc(g.Pods, func(p *model.Pod) bool { return !snap.EvictionBlocked[p.UID] })
		if blocked && slices.ContainsFunc(g.Shared, func(v model.Volume) bool { return v.Exclusive }) {
			return false
		}
		counted = counted || blocked && (slices.ContainsFunc(g.Matches, counts) || slices.ContainsFunc(g.CarrierMarks, counts))
	}
	return counted && others
}

// holdStaying removes the pods that remain for now from the remaining pods of the tasks.
func (r *run) holdStaying() {
	if len(r.stay) == 0 {
		return
	}
	for _, t := range r.tasks {
		t.left = slices.DeleteFunc(slices.Clone(t.left), func(p *model.Pod) bool { return r.stay[p] })
	}
}

// placeStaying places the remaining pods as if they had left their nodes, and tries refused pods again.
func (r *run) placeStaying() {
	if len(r.stay) == 0 {
		return
	}
	r.leaving = true
	r.board() // counts all pods; settle removes those that cannot be bound
	var tasks []*task
	for _, t := range r.tasks {
		rest := slices.DeleteFunc(slices.Clone(t.pods), func(p *model.Pod) bool { return !r.stay[p] || r.kept[p] })
		t.left = append(slices.Clip(t.left), rest...)
		if len(t.left) > 0 {
			t.shut, t.domains = nil, nil
			tasks = append(tasks, t)
		}
	}
	r.refused = nil
	r.keepPromises(tasks)
	r.solveByDepth(tasks)
	r.settle()
}

// holdsInPlace reports whether all placed pods can be bound while the pods in stay remain on their nodes.
func (r *run) holdsInPlace(stay []*model.Pod) bool {
	if len(stay) == 0 {
		return true
	}
	for _, p := range stay {
		delete(r.stay, p)
	}
	order, late := r.board()
	r.result.Order = order
	return len(late) == 0
}

// vacate removes the departing pods from the counts of the nodes they run on.
func (r *run) vacate() {
	c := r.counters
	for _, t := range r.tasks {
		for _, p := range t.pods {
			if !r.stay[p] {
				continue
			}
			n := r.snap.Node(p.Node)
			nameless := c.nameless(n)
			for _, mark := range slices.Concat(t.group.Matches, p.CarrierMarks) {
				if mark < 0 {
					continue
				}
				if slot := c.slotOf[mark]; slot >= 0 && !nameless {
					c.totals[slot]--
				}
				for _, counter := range c.byMark[mark] {
					counter.put(r.snap.Space, n.Row, -1, n.Taints)
				}
			}
		}
	}
}
