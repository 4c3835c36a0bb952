package disruption

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
)

// Renewal replaces nodes that no longer match their pool (drifted), and nodes that will soon be deleted because of
// their age. It ignores cost and respects budgets. A node is removed as soon as its pods have room on nodes that are
// kept or on new ones. No pod is moved to a node that is itself due for renewal.

// drifted proposes the renewal of drifted nodes: those without pods to move first, then by the time of drift.
func (p *Proposal) drifted(run *run) {
	nodes := slices.DeleteFunc(run.candidates(), func(n *model.Node) bool { return n.Drifted == "" || run.static(n) })
	p.renew(run, eldestDrift(nodes), plan.Drifted)
}

// expiring proposes the renewal of nodes that expire soon, by the time of expiry.
func (p *Proposal) expiring(run *run) {
	nodes := slices.DeleteFunc(run.candidates(), func(n *model.Node) bool {
		from := RenewFrom(n)
		if !from.IsZero() && from.After(run.snap.Now) {
			p.wakeAt(run.snap, from)
		}
		return from.IsZero() || from.After(run.snap.Now) || run.static(n)
	})
	p.renew(run, firstToExpire(nodes), plan.Expired)
}

func (p *Proposal) renew(run *run, nodes []*model.Node, reason plan.Reason) {
	for _, n := range nodes {
		if v := run.guard.Removable(n, reason); !v.OK() {
			p.stays(run, n, reason, v)
			continue
		}
		p.Eligible[reason]++
		if v := run.renewed(n, reason); !v.OK() {
			p.stays(run, n, reason, v)
		}
	}
}

// renewed proposes the renewal of a node that may be removed, or returns the verdict that prevents it.
func (run *run) renewed(n *model.Node, reason plan.Reason) plan.Verdict {
	if a := run.guard.Allowance(n.Pool, reason); !a.Verdict.OK() || a.Remaining() < 1 {
		return exhausted(n, a)
	}
	w := run.projection()
	if w.taken[n.Name] {
		return plan.Verdict{Code: plan.NodeNominated, Node: n.Name}
	}
	o := w.without([]*model.Node{w.snap.Node(n.Name)}, run.shut)
	if len(o.unplaced) > 0 {
		return unplacedVerdict(n, o)
	}
	c := w.changes(o)[0]
	command := w.command(c, reason)
	if v := run.guard.Admit(command); !v.OK() {
		return v
	}
	if v := run.guard.Paused(command); !v.OK() {
		run.guard.Release(command)
		return v
	}
	w.apply(c)
	run.p.Commands = append(run.p.Commands, command)
	return plan.Verdict{}
}

// shut reports whether a renewal must not move pods to the node. A node that awaits pods may look free for a moment,
// after they have been evicted and before they are recreated.
func (run *run) shut(n *model.Node) bool {
	return renewable(n, run) || !readyForPods(n) || run.guard.AwaitsArrivals(n) || reserve.Expecting(run.snap, n)
}

// renewable reports whether the node is due for renewal now or soon.
func renewable(n *model.Node, run *run) bool {
	from := RenewFrom(n)
	return n.Drifted != "" || !from.IsZero() && !from.After(run.snap.Now)
}

// readyForPods reports whether a plan that removes the old node of pods may move the pods to this node: it is
// initialized and ready.
func readyForPods(n *model.Node) bool { return n.Stage == model.Initialized && n.Ready }

func exhausted(n *model.Node, a guard.Allowance) plan.Verdict {
	if !a.Verdict.OK() {
		return a.Verdict
	}
	return plan.Verdict{Code: plan.BudgetExhausted, Node: n.Name, Have: a.Allowed}
}

// unplacedVerdict returns a verdict with the first pod that cannot run elsewhere.
func unplacedVerdict(n *model.Node, o *outcome) plan.Verdict {
	v := o.unplaced[0].verdict(len(o.unplaced))
	v.Node = n.Name
	return v
}
