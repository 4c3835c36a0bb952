package placement

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// ScheduleVirtual plans the virtual pods of the snapshot on what a plan of its pending pods leaves: the free capacity of
// nodes, in flight or to launch, and the remainder of the pools' limits. It returns nil if there are no virtual pods. The
// pending pods are present there as if they were bound, so that they count for the constraints of virtual pods. They
// never see a virtual pod themselves: the plan is complete before. Of the options, those for pods in transit and for
// closed nodes do not apply: the pods are where the plan has them, and room exists wherever a node has it.
//
// A virtual pod may be on a node that a command is about to remove, until the command's replacements exist (plan.Leaving):
// they have the room, and none must be launched twice.
func ScheduleVirtual(snap *model.Snapshot, opts Options, planned *plan.Provision) *plan.Provision {
	if len(snap.Virtual) == 0 {
		return nil
	}
	opts.Closed, opts.Moving = nil, nil
	return newScheduler(afterPlan(snap, planned), &opts, nil).schedule()
}

// afterPlan returns the snapshot that virtual pods are planned on.
func afterPlan(snap *model.Snapshot, planned *plan.Provision) *model.Snapshot {
	assignments := planned.Assignments()
	var futures []*model.Node
	for i := range planned.Claims {
		c := &planned.Claims[i]
		if n := snap.Future(c.FutureSpec(snap), c.Types()); n != nil {
			futures = append(futures, n)
			assignments = append(assignments, model.Assignment{Node: n.Name, Pods: c.Pods})
		}
	}
	read := plan.CommandReader{}
	open := snap.Reopened(func(n *model.Node) bool { return n.Command != "" && !n.Deleting && !read.Leaving(n) })
	return open.AfterPlan(assignments, futures)
}
