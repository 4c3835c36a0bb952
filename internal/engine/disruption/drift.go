package disruption

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Renewal: nodes that are no longer what their pool says (drifted), and nodes that will soon be deleted for their age.
// They go whatever it costs, within the budgets, each as soon as its pods have a place: on nodes that stay, or on new
// ones. Nobody is sent to a node that is to be renewed itself.

// drifted proposes the renewal of drifted nodes: those without pods to move first, then by when they drifted.
func (p *Proposal) drifted(run *run) {
	nodes := slices.DeleteFunc(run.candidates(), func(n *model.Node) bool { return n.Drifted == "" || run.static(n) })
	p.renew(run, eldestDrift(nodes), plan.Drifted)
}

// expiring proposes the renewal of nodes that will expire soon, in that order.
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

// renewed proposes the renewal of a node that may leave, or says what is in the way.
func (run *run) renewed(n *model.Node, reason plan.Reason) plan.Verdict {
	if a := run.guard.Allowance(n.Pool, reason); !a.Verdict.OK() || a.Remaining() < 1 {
		return exhausted(n, a)
	}
	w := run.world()
	if w.taken[n.Name] {
		return plan.Verdict{Code: plan.NodeNominated, Node: n.Name}
	}
	o := w.without([]*model.Node{w.snap.Node(n.Name)}, run.shut)
	if len(o.homeless) > 0 {
		return homelessVerdict(n, o)
	}
	c := w.changes(o)[0]
	command := w.command(c, reason)
	if v := run.guard.Admit(command); !v.OK() {
		return v
	}
	if v := run.guard.Backoff(command); !v.OK() {
		run.guard.Release(command)
		return v
	}
	w.apply(c)
	run.p.Commands = append(run.p.Commands, command)
	return plan.Verdict{}
}

// shut reports whether no pods are sent to the node when theirs is renewed. A node that others are on their way to may look
// free for a moment, when they have been evicted and nobody has started them again yet.
func (run *run) shut(n *model.Node) bool {
	return renewable(n, run) || !reached(n) || run.guard.Bought(n) || plan.Expecting(run.snap, n)
}

// renewable reports whether the node is to be renewed now or soon.
func renewable(n *model.Node, run *run) bool {
	from := RenewFrom(n)
	return n.Drifted != "" || !from.IsZero() && !from.After(run.snap.Now)
}

// reached reports whether pods may be sent to the node in a plan that takes their old one away: it is there.
func reached(n *model.Node) bool { return n.Stage == model.Initialized && n.Ready }

func exhausted(n *model.Node, a plan.Allowance) plan.Verdict {
	if !a.Verdict.OK() {
		return a.Verdict
	}
	return plan.Verdict{Code: plan.BudgetExhausted, Node: n.Name, Have: a.Allowed}
}

// homelessVerdict names the first pod that has no other place.
func homelessVerdict(n *model.Node, o *outcome) plan.Verdict {
	return plan.Verdict{Code: plan.PodsHomeless, Node: n.Name, Have: int64(len(o.homeless)), Holder: &plan.Holder{Pod: o.homeless[0].pod.Key()}}
}
