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

// deferral is the pods that count where they run until the others are placed.
type deferral struct {
	queue *queue
	pods  map[*model.Pod]bool
	// placing: the other pods are placed.
	placing bool
}

// counts reports whether the pod counts where it runs for now.
func (d *deferral) counts(p *model.Pod) bool { return d.pods[p] && !d.placing }

// deferringBlocked returns a run that places pods which cannot be evicted at present beside the others, and the refusals
// of pods that count where they run for good. It returns nil where rules between pods have no effect, or the work
// budget does not suffice.
func (s *scheduler) deferringBlocked() (*scheduler, []plan.Refusal) {
	if !blockedPodsCounted(s.snap) {
		return nil, nil
	}
	left, refusals := s.snap, []plan.Refusal(nil)
	for range mostStayRounds {
		next := s.deferringBlockedIn(left)
		if next.budget.ended {
			return next, nil
		}
		if next.budget.over() || !next.countsDeferred() {
			break
		}
		still := next.refusedInPlace()
		if next.bindableInPlace(podsLeft(still)) {
			return next, refusals
		}
		for _, pg := range still {
			refusals = append(refusals, next.refusals.of(pg))
		}
		left = left.Bound(byNode(podsLeft(still)))
	}
	return nil, nil
}

// countsDeferred reports whether rules count the pods that remain for now. Rules that cannot bind are left out (rule.go).
func (s *scheduler) countsDeferred() bool {
	return slices.ContainsFunc(s.queue.groups, func(pg *pendingGroup) bool {
		return len(pg.hard().touched)+len(pg.hard().hostTouched) > 0 &&
			slices.ContainsFunc(pg.pods, func(p *model.Pod) bool { return s.deferral.pods[p] })
	})
}

// deferringBlockedIn returns the run for a snapshot in which the pods that cannot be evicted at present have left their
// nodes.
func (s *scheduler) deferringBlockedIn(left *model.Snapshot) *scheduler {
	stay := evictionBlocked(left)
	both := left.Bound(byNode(stay))
	both.Groups = left.Groups
	next := s.fresh(both)
	next.deferral.pods = map[*model.Pod]bool{}
	for _, p := range stay {
		next.deferral.pods[p] = true
	}
	if next = next.placeWhole(); !next.budget.over() {
		next.placeDeferred()
	}
	s.budget.work = next.budget.work
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

// blockedPodsCounted reports whether the snapshot has pods that cannot be evicted at present, other pods to place, and
// rules that count the former. If one of them uses a claim that only one pod may use, other pods wait for it in any
// case, and the result is false.
func blockedPodsCounted(snap *model.Snapshot) bool {
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

// holdDeferred removes the pods that remain for now from the remaining pods of the groups.
func (s *scheduler) holdDeferred() {
	if len(s.deferral.pods) == 0 {
		return
	}
	for _, pg := range s.queue.groups {
		pg.left = slices.DeleteFunc(slices.Clone(pg.left), func(p *model.Pod) bool { return s.deferral.pods[p] })
	}
}

// placeDeferred places the remaining pods as if they had left their nodes, and tries refused pods again.
func (s *scheduler) placeDeferred() {
	if len(s.deferral.pods) == 0 {
		return
	}
	s.deferral.placing = true
	s.binds.find() // counts all pods; verifyBindOrder removes those that cannot be bound
	var groups []*pendingGroup
	for _, pg := range s.queue.groups {
		rest := slices.DeleteFunc(slices.Clone(pg.pods), func(p *model.Pod) bool { return !s.deferral.pods[p] || s.reserved.kept[p] })
		pg.left = append(slices.Clip(pg.left), rest...)
		if len(pg.left) > 0 {
			pg.choices = choices{}
			groups = append(groups, pg)
		}
	}
	s.solver.refused = nil
	s.reserved.place(groups)
	s.solver.byDepth(groups)
	s.verifyBindOrder()
	s.fleet.pinRedundant()
}

// bindableInPlace reports whether all placed pods can be bound while these pods remain on their nodes.
func (s *scheduler) bindableInPlace(stay []*model.Pod) bool {
	if len(stay) == 0 {
		return true
	}
	for _, p := range stay {
		delete(s.deferral.pods, p)
	}
	order, late := s.binds.find()
	s.result.Order = order
	return len(late) == 0
}

// uncount removes the departing pods from the counts of the nodes they run on.
func (d *deferral) uncount(c *counters) {
	for _, pg := range d.queue.groups {
		for _, p := range pg.pods {
			if !d.pods[p] {
				continue
			}
			n := c.snap.Node(p.Node)
			nameless := c.nameless(n)
			for _, mark := range slices.Concat(pg.group.Matches, p.CarrierMarks) {
				if mark < 0 {
					continue
				}
				if slot := c.slotOf[mark]; slot >= 0 && !nameless {
					c.totals[slot]--
				}
				for _, counter := range c.byMark[mark] {
					counter.put(c.snap.Space, n.Row, -1, n.Taints)
				}
			}
		}
	}
}

// Pods that remain on their nodes. The pods of a node under removal are planned as if they had left it. A pod that
// cannot be evicted at present (Snapshot.EvictionBlocked) and fits nowhere else remains: kube-scheduler counts it where
// it runs, and its PodDisruptionBudget may not open before other pods are healthy. So the plan is repeated with such
// pods on their nodes. They may exclude other pods from their planned places; those of them that are EvictionBlocked
// remain too. Each round has fewer pods to place.
//
// This applies to plans with a ReadWriteOncePod claim in use; for rules between pods, see deferral.
//
// A run in portions (budget.go) has no work left for a repetition: there, remaining pods are not counted.

// mostStayRounds is how often a plan is repeated at most. A further round is needed where a remaining pod takes the
// place of another, which then remains too. Such a chain is about as long as the number of apps with rules about each
// other.
const mostStayRounds = 8

// withRemaining returns a run that counts the remaining pods where they run, and the refusals of these pods.
func (s *scheduler) withRemaining() (decided *scheduler, stay []plan.Refusal) {
	for range mostStayRounds {
		refused := s.refusedInPlace()
		if !s.affectsOthers(refused) {
			break
		}
		next := s.fresh(s.snap.Bound(byNode(podsLeft(refused)))).placeWhole()
		if next.budget.over() {
			s.budget.work = next.budget.work
			break
		}
		for _, pg := range refused {
			stay = append(stay, s.refusals.of(pg))
		}
		s = next
	}
	return s, stay
}

// refusedInPlace lists the refused pods that remain where they run, as separate groups.
func (s *scheduler) refusedInPlace() []*pendingGroup {
	if s.budget.mode == portioned || len(s.snap.EvictionBlocked) == 0 {
		return nil
	}
	var groups []*pendingGroup
	for _, pg := range s.solver.refused {
		own := *pg
		own.left = slices.DeleteFunc(slices.Clone(pg.left), func(p *model.Pod) bool { return !s.snap.EvictionBlocked[p.UID] })
		if len(own.left) > 0 {
			groups = append(groups, &own)
		}
	}
	return groups
}

// affectsOthers reports whether other pods may be affected if the pods of the groups remain: a rule counts them, or
// they use a claim that only one pod may use.
func (s *scheduler) affectsOthers(groups []*pendingGroup) bool {
	all := 0
	for _, g := range s.snap.Groups {
		all += len(g.Pods)
	}
	if countPods(groups) == all {
		return false
	}
	used := func(mark int) bool {
		return mark >= 0 && (len(s.counters.byMark[mark]) > 0 || s.counters.slotOf[mark] >= 0)
	}
	return slices.ContainsFunc(groups, func(pg *pendingGroup) bool {
		return slices.ContainsFunc(pg.group.Matches, used) || slices.ContainsFunc(pg.group.CarrierMarks, used) || pg.rwopClaims() != nil
	})
}

// podsLeft lists the remaining pods of the groups.
func podsLeft(groups []*pendingGroup) []*model.Pod {
	var pods []*model.Pod
	for _, pg := range groups {
		pods = append(pods, pg.left...)
	}
	return pods
}

// byNode groups the pods by the nodes that they run on.
func byNode(pods []*model.Pod) []model.Assignment {
	var assignments []model.Assignment
	at := map[string]int{}
	for _, p := range pods {
		i, known := at[p.Node]
		if !known {
			i = len(assignments)
			at[p.Node] = i
			assignments = append(assignments, model.Assignment{Node: p.Node})
		}
		assignments[i].Pods = append(assignments[i].Pods, p)
	}
	return assignments
}
