package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Pods that stay. The pods of a node that leaves are planned as if they had left it. A pod that cannot be evicted at present
// (Snapshot.EvictionBlocked) and has no other place does not leave: kube-scheduler counts it where it runs, and its
// PodDisruptionBudget may not open before other pods are healthy. So the plan is made again with such pods on their nodes.
// They may keep other pods from the places that the plan had for them; those of them that are EvictionBlocked stay too. Each
// round has fewer pods to place.
//
// So are plans made in which a ReadWriteOncePod claim is at stake; where rules between pods are, see staysfirst.go.
//
// A run in portions (budget.go) has no work left for another: there, pods that stay count nowhere.

// mostStayRounds is how often a plan is made again at most. A further round is needed where a pod that stays takes away the
// place of another that stays then: such a chain is about as long as there are apps with rules about each other.
const mostStayRounds = 8

// staying returns a run in which the pods that stay count where they run, and the refusals of these pods.
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

// refusedInPlace lists the refused pods that stay where they run, as tasks of their own.
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

// counted reports whether it may matter to other pods that the pods of the tasks stay: a rule counts them, or they use a
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

// podsLeft lists what is left of the tasks.
func podsLeft(tasks []*task) []*model.Pod {
	var pods []*model.Pod
	for _, t := range tasks {
		pods = append(pods, t.left...)
	}
	return pods
}

// homes are the nodes that the pods run on.
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
