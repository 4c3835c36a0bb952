package disruption

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
)

// IfAlone returns the effect of removing only this node, regardless of protection and budgets: the command, with its
// worth, and a verdict that speaks against it (PodsHomeless, NoSaving, SavingTooSmall, ScoreTooLow, SpotForbidden).
// If pods cannot run elsewhere, the command has no worth. It runs one what-if.
func IfAlone(snap *model.Snapshot, opts Options, name string) (plan.Command, plan.Verdict) {
	w := project(snap, opts, func(n *model.Node) bool { return n.Name != name && departing(n) })
	n := w.snap.Node(name)
	if n == nil {
		return plan.Command{}, plan.Verdict{Code: plan.NodeGone, Node: name}
	}
	if n.Price <= 0 {
		return plan.Command{}, plan.Verdict{Code: plan.PriceUnknown, Node: name}
	}
	o := w.withoutRelaunch([]*model.Node{n}, w.unsettled)
	if len(o.unplaced) > 0 {
		return plan.Command{}, unplacedVerdict(n, o)
	}
	c := w.changes(o)[0]
	v := w.decide(c)
	return w.command(c, plan.Underutilized), v
}

// ChangesAt returns when the first of the verdicts that keep nodes ends, or may end, by itself; zero if time alone
// changes nothing.
func ChangesAt(snap *model.Snapshot, opts Options, kept ...Kept) time.Time {
	g := guard.New(snap)
	var first time.Time
	for _, k := range kept {
		n := snap.Node(k.Node)
		if n == nil {
			continue
		}
		if at := changesAt(g, opts, snap, n, k); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// changesAt returns the earliest time after now at which the node's verdict may change, or the zero time. It
// considers the budgets for the reason, or all budgets if there is no reason.
func changesAt(g *guard.Guard, opts Options, snap *model.Snapshot, n *model.Node, kept Kept) time.Time {
	var first time.Time
	consider := func(at time.Time) {
		if at.After(snap.Now) && at.Before(model.Forever) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	pool := snap.Pool(n.Pool)
	switch kept.Verdict.Code {
	case plan.NodeTooYoung:
		if pool != nil {
			consider(guard.QuietFrom(n, pool))
		}
	case plan.NodeNominated:
		consider(n.NominatedUntil)
		consider(g.AwaitsPendingUntil(n))
	case plan.NodeExpecting:
		consider(reserve.ExpectingUntil(snap, n))
	case plan.NodeUnsettled:
		consider(g.SettledFrom(n))
	case plan.SavingTooSmall:
		consider(opts.stayUntil(snap, n))
	case plan.Paused:
		consider(time.Unix(kept.Verdict.Need, 0))
	case plan.NodeProtected:
		for _, pod := range n.Pods {
			consider(pod.ProtectedUntil)
		}
	case plan.BudgetExhausted:
		if pool != nil {
			for _, b := range pool.Budgets {
				if kept.Reason == "" || len(b.Reasons) == 0 || slices.Contains(b.Reasons, string(kept.Reason)) {
					consider(b.Changes)
				}
			}
		}
	}
	return first
}
