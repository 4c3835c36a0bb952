package disruption

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Naive is one command of prefixes.
func Naive(snap *model.Snapshot, opts Options) (plan.Command, bool) {
	guard := plan.NewGuard(snap)
	var nodes []*model.Node
	for _, n := range snap.Nodes {
		if n.Ours() && guard.Removable(n, plan.Underutilized).OK() {
			nodes = append(nodes, n)
		}
	}
	ratio := func(n *model.Node) float64 { return float64(n.Price) / float64(1000+evictionCost(n)) }
	slices.SortFunc(nodes, func(a, b *model.Node) int {
		return cmp.Or(cmp.Compare(ratio(b), ratio(a)), strings.Compare(a.Name, b.Name))
	})
	w := settle(snap, opts, leaving)
	try := func(set []*model.Node) *change {
		o := w.without(set, w.unsettled)
		if len(o.homeless) > 0 || len(o.claims) > 1 {
			return nil
		}
		c := &change{nodes: set, claims: o.claims, seats: o.seats}
		w.reckon(c)
		if c.worth.Saving <= 0 {
			return nil
		}
		if len(c.claims) > 0 && !w.trim(c, &c.claims[0], c.worth.Saving-1).OK() {
			return nil
		}
		return c
	}
	lo, hi := 2, min(len(nodes), 101)
	var best *change
	for lo <= hi {
		mid := (lo + hi) / 2
		if c := try(nodes[:mid]); c != nil {
			best, lo = c, mid+1
		} else {
			hi = mid - 1
		}
	}
	if best == nil {
		for _, n := range nodes {
			if best = try([]*model.Node{n}); best != nil {
				break
			}
		}
	}
	if best == nil {
		return plan.Command{}, false
	}
	return w.command(best, plan.Underutilized), true
}

// Sweep asks about every node alone.
func Sweep(snap *model.Snapshot, opts Options) (asked, feasible int) {
	w := settle(snap, opts, leaving)
	for _, n := range snap.Nodes {
		o := w.without([]*model.Node{n}, w.unsettled)
		asked++
		if len(o.homeless) == 0 && len(o.claims) == 0 {
			feasible++
		}
	}
	return
}
