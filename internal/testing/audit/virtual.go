package audit

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// virtual checks the plan of the virtual pods: it exists if there are any, contains them and no other pods, and is
// correct in the cluster in which the pods of the plan p are bound. That no pod of p is a virtual one, and that p
// respects the limits without them, follows from the check of p.
func (j *judge) virtual(p *plan.Provision) {
	switch {
	case len(j.snap.Virtual) == 0 && p.Virtual == nil:
		return
	case len(j.snap.Virtual) == 0 || p.Virtual == nil:
		j.blame("virtual", "plan", "has a plan of virtual pods: %t, with %d groups of them", p.Virtual != nil, len(j.snap.Virtual))
		return
	}
	for _, problem := range Provision(j.carriedOut(p), p.Virtual) {
		problem.Kind = "virtual " + problem.Kind
		j.problems = append(j.problems, problem)
	}
	for _, c := range p.Claims {
		for _, v := range p.Virtual.Claims {
			if c.Name == v.Name {
				j.blame("virtual", c.Name, "is the name of two claims")
			}
		}
	}
}

// carriedOut returns the cluster in which the plan is carried out, as far as the machines of its claims are known. Its
// pending pods are the virtual ones. Nodes with a command that has not begun to remove them still have their room.
func (j *judge) carriedOut(p *plan.Provision) *model.Snapshot {
	var bound []model.Assignment
	for _, placed := range p.Placed {
		bound = append(bound, model.Assignment{Node: placed.Node, Pods: placed.Pods})
	}
	var launched []*model.Node
	for i := range p.Claims {
		c := &p.Claims[i]
		if n := j.snap.Future(c.FutureSpec(j.snap), c.Types()); n != nil {
			launched = append(launched, n)
			bound = append(bound, model.Assignment{Node: n.Name, Pods: c.Pods})
		}
	}
	open := j.snap.Reopened(func(n *model.Node) bool { return n.Command != "" && !n.Deleting && !plan.Leaving(n.NodeSpec) })
	return open.AfterPlan(bound, launched)
}
