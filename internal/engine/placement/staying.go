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

// staying returns a run that counts the remaining pods where they run, and the refusals of these pods.
func (r *run) staying() (decided *run, stay []plan.Refusal) {
	for range mostStayRounds {
		refused := r.refusedInPlace()
		if !r.counted(refused) {
			break
		}
		next := newRun(r.snap.Bound(homes(podsLeft(refused))), r.opts)
		next.work, next.scan = r.work, r.scan
		if next = next.wholly(); next.over() {
			r.work = next.work
			break
		}
		for _, t := range refused {
			stay = append(stay, r.verdicts(t))
		}
		r = next
	}
	return r, stay
}

// refusedInPlace lists the refused pods that remain where they run, as separate tasks.
func (r *run) refusedInPlace() []*task {
	if r.mode == portioned || len(r.snap.EvictionBlocked) == 0 {
		return nil
	}
	var tasks []*task
	for _, t := range r.refused {
		own := *t
		own.left = slices.DeleteFunc(slices.Clone(t.left), func(p *model.Pod) bool { return !r.snap.EvictionBlocked[p.UID] })
		if len(own.left) > 0 {
			tasks = append(tasks, &own)
		}
	}
	return tasks
}

// counted reports whether other pods may be affected if the pods of the tasks remain: a rule counts them, or they use a
// claim that only one pod may use.
func (r *run) counted(tasks []*task) bool {
	all := 0
	for _, g := range r.snap.Groups {
		all += len(g.Pods)
	}
	if countTasks(tasks) == all {
		return false
	}
	used := func(mark int) bool {
		return mark >= 0 && (len(r.counters.byMark[mark]) > 0 || r.counters.slotOf[mark] >= 0)
	}
	return slices.ContainsFunc(tasks, func(t *task) bool {
		return slices.ContainsFunc(t.group.Matches, used) || slices.ContainsFunc(t.group.CarrierMarks, used) || t.exclusive() != nil
	})
}

// podsLeft lists the remaining pods of the tasks.
func podsLeft(tasks []*task) []*model.Pod {
	var pods []*model.Pod
	for _, t := range tasks {
		pods = append(pods, t.left...)
	}
	return pods
}

// homes groups the pods by the nodes that they run on.
func homes(pods []*model.Pod) []model.Seating {
	var seats []model.Seating
	at := map[string]int{}
	for _, p := range pods {
		i, known := at[p.Node]
		if !known {
			i = len(seats)
			at[p.Node] = i
			seats = append(seats, model.Seating{Node: p.Node})
		}
		seats[i].Pods = append(seats[i].Pods, p)
	}
	return seats
}
