package disruption

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// naiveMost is the largest prefix that the naive planner examines.
const naiveMost = 101

// Naive returns one command of a simple planner that examines only prefixes of one list: nodes by price per eviction
// cost. It uses bisection to find the longest prefix whose pods fit onto the other nodes and at most one new node; if
// there is none, it uses the first single node. It accepts any positive saving. The search is compared with it.
func Naive(snap *model.Snapshot, opts Options) (plan.Command, bool) {
	g := guard.New(snap)
	g.Settling = 0 // it reverts its own recent changes
	nodes := slices.DeleteFunc(slices.Clone(snap.Nodes), func(n *model.Node) bool {
		return !n.Ours() || n.Reschedulable() == 0 || !g.Removable(n, plan.Underutilized).OK()
	})
	ratio := func(n *model.Node) float64 { return float64(n.Price) / float64(1000+evictionCost(n)) }
	slices.SortFunc(nodes, func(a, b *model.Node) int {
		return cmp.Or(cmp.Compare(ratio(b), ratio(a)), strings.Compare(a.Name, b.Name))
	})
	w := project(snap, opts, departing)
	var best *change
	for low, high := 2, min(len(nodes), naiveMost); low <= high; {
		middle := (low + high) / 2
		if c := w.naiveChange(nodes[:middle]); c != nil {
			best, low = c, middle+1
		} else {
			high = middle - 1
		}
	}
	for i := 0; best == nil && i < len(nodes); i++ {
		best = w.naiveChange(nodes[i : i+1])
	}
	if best == nil {
		return plan.Command{}, false
	}
	return w.command(best, plan.Underutilized), true
}

func (w *projection) naiveChange(nodes []*model.Node) *change {
	o := w.without(nodes, w.unsettled)
	if len(o.unplaced) > 0 || len(o.claims) > 1 {
		return nil
	}
	c := &change{nodes: nodes, claims: o.claims, assignments: o.assignments}
	w.computeWorth(c)
	if c.worth.Saving <= 0 || len(c.claims) > 0 && !w.trim(c, &c.claims[0], c.worth.Saving-1).OK() {
		return nil
	}
	return c
}

// FitsAlone returns a function that reports whether the pods of the i-th node of the snapshot fit onto the other
// nodes.
func FitsAlone(snap *model.Snapshot, opts Options) func(i int) bool {
	w := project(snap, opts, departing)
	return func(i int) bool {
		o := w.without(w.snap.Nodes[i:i+1], w.unsettled)
		return len(o.unplaced) == 0 && len(o.claims) == 0
	}
}

// Single returns the verdict of the search on the removal of this one node, and the saving, nano-USD per hour.
func Single(snap *model.Snapshot, opts Options, name string) (plan.Verdict, int64) {
	w := project(snap, opts, departing)
	o := w.without([]*model.Node{w.snap.Node(name)}, w.unsettled)
	if len(o.unplaced) > 0 {
		return unplacedVerdict(w.snap.Node(name), o), 0
	}
	c := w.changes(o)[0]
	return w.decide(c), c.worth.Saving
}

// CommandOf returns the command of a change that replaces the nodes by the claims.
func CommandOf(snap *model.Snapshot, claims []plan.NewClaim, names ...string) plan.Command {
	w := project(snap, Options{}, departing)
	return w.command(w.changeOf(claims, names), plan.Underutilized)
}

// Moving returns the command of a change that moves the pods of a node to others, the given number to each.
func Moving(snap *model.Snapshot, from string, to map[string]int) plan.Command {
	w := project(snap, Options{}, departing)
	c := w.changeOf(nil, []string{from})
	pods := c.nodes[0].Pods
	for name, n := range to {
		c.assignments, pods = append(c.assignments, model.Assignment{Node: name, Pods: pods[:n]}), pods[n:]
	}
	return w.command(c, plan.Underutilized)
}

// Accepted returns the commands that the search creates from one change.
func Accepted(snap *model.Snapshot, claims []plan.NewClaim, names ...string) []plan.Command {
	w := project(snap, Options{}, departing)
	s := newSearch(w, guard.New(snap), func(*model.Node, plan.Verdict) {})
	s.accept([]*change{w.changeOf(claims, names)})
	return s.found
}

func (w *projection) changeOf(claims []plan.NewClaim, names []string) *change {
	c := &change{claims: claims}
	for _, name := range names {
		c.nodes = append(c.nodes, w.snap.Node(name))
	}
	return c
}

// Trial is the effect of removing the first N nodes: the saving, and the price of moving over the payback time, in
// nano-USD per hour, and the eviction cost, in thousandths.
type Trial struct {
	N                     int
	Saving, Spread, Moved float64
}

// Pick returns the N of the trial that the search selects, 0 for none.
func Pick(trials ...Trial) int {
	tried := map[int]trial{}
	for _, t := range trials {
		tried[t.N] = trial{t.N, t.Saving, t.Spread, t.Moved}
	}
	return pick(tried).n
}

// Decided returns the verdict of the search on a change that replaces the nodes by the claims, and the claims with the
// options that it leaves.
func Decided(snap *model.Snapshot, claims []plan.NewClaim, names ...string) (plan.Verdict, []plan.NewClaim) {
	w := project(snap, Options{}, departing)
	c := w.changeOf(claims, names)
	w.computeWorth(c)
	return w.decide(c), c.claims
}
