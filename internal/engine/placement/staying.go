package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Pods that remain on their nodes. The pods of a node under removal are planned as if they had left it. A pod that
// cannot be evicted at present (Snapshot.EvictionBlocked) and fits nowhere else remains: kube-scheduler counts it where
// it runs, and its PodDisruptionBudget may not open before other pods are healthy. So the plan is repeated with such
// pods on their nodes. They may exclude other pods from their planned places; those of them that are EvictionBlocked
// remain too. Each round has fewer pods to place.
//
// This applies to plans with a ReadWriteOncePod claim in use; for rules between pods, see staysfirst.go.
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
