package disruption

import (
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/spotshare"
)

// change is a set of nodes to remove together and the claims to launch in their place. It cannot be split, because
// the pods of each node share a new node with pods of another.
type change struct {
	nodes  []*model.Node
	claims []plan.NewClaim
	// assignments are the existing nodes for the pods that need no new node.
	assignments []model.Assignment
	worth       plan.Worth
	// groups holds the groups of the pods of the outcome that the change is part of.
	groups map[*model.Pod]*model.Group
}

// changes splits an outcome into its independent parts, ordered by the name of their first node.
func (w *projection) changes(o *outcome) []*change {
	origin := w.origins(o.nodes)
	root, first := together(o, origin)
	byRoot := map[*model.Node]*change{}
	var list []*change
	nodes := slices.SortedFunc(slices.Values(o.nodes), func(a, b *model.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range nodes {
		c := byRoot[root(n)]
		if c == nil {
			c = &change{}
			byRoot[root(n)] = c
			list = append(list, c)
		}
		c.nodes = append(c.nodes, n)
	}
	for i := range o.claims {
		if first[i] != nil {
			c := byRoot[root(first[i])]
			c.claims = append(c.claims, o.claims[i])
		}
	}
	if len(o.room) > 0 { // then there is one change
		list[0].claims = append(list[0].claims, o.room...)
	}
	share(o.assignments, func(p *model.Pod) *change { return byRoot[root(origin[p])] })
	groups := groupsOf(o)
	for _, c := range list {
		c.groups = groups
		w.computeWorth(c)
	}
	return list
}

// together determines which nodes cannot be separated because their pods share a new node. root returns the first
// node by name of the set that a node belongs to. first is, by new node, the node of one of its pods, or nil if its
// pods are on none of the nodes. If nodes are launched for virtual pods, which are on no node, no node can be separated.
func together(o *outcome, origin map[*model.Pod]*model.Node) (root func(*model.Node) *model.Node, first []*model.Node) {
	toward := make(map[*model.Node]*model.Node, len(o.nodes))
	for _, n := range o.nodes {
		toward[n] = n
	}
	root = func(n *model.Node) *model.Node {
		for toward[n] != n {
			n = toward[n]
		}
		return n
	}
	join := func(n, other *model.Node) {
		a, b := root(n), root(other)
		if a.Name > b.Name {
			a, b = b, a
		}
		toward[b] = a
	}
	first = make([]*model.Node, len(o.claims))
	for i := range o.claims {
		for _, p := range o.claims[i].Pods {
			n := origin[p]
			if n == nil {
				continue
			}
			if first[i] == nil {
				first[i] = n
			}
			join(first[i], n)
		}
	}
	if len(o.room) > 0 {
		for _, n := range o.nodes {
			join(o.nodes[0], n)
		}
	}
	return root, first
}

// share adds to each change the assignments of its own pods.
func share(assignments []model.Assignment, of func(*model.Pod) *change) {
	for _, assignment := range assignments {
		parts := map[*change]int{}
		for _, p := range assignment.Pods {
			c := of(p)
			at, known := parts[c]
			if !known {
				at = len(c.assignments)
				parts[c] = at
				c.assignments = append(c.assignments, model.Assignment{Node: assignment.Node})
			}
			c.assignments[at].Pods = append(c.assignments[at].Pods, p)
		}
	}
}

// computeWorth computes the worth of the change.
func (w *projection) computeWorth(c *change) {
	c.worth = plan.Worth{}
	for _, n := range c.nodes {
		c.worth.Saving += w.cost(n)
		c.worth.Price += w.economics(n).priceOfMoving(n)
		c.worth.Pods += n.Reschedulable()
	}
	for i := range c.claims {
		c.worth.Saving -= c.claims[i].Price() + w.nodePrice(c.claims[i].Pool)
	}
}

// least returns the minimum saving at which the change pays, nano-USD per hour: more than the price of moving spread
// over the payback time, and more than the minimum saving of the pools.
func (w *projection) least(c *change) int64 {
	var least int64
	var spread float64
	for _, n := range c.nodes {
		e := w.economics(n)
		least = max(least, e.MinSaving)
		spread += e.spread(n)
	}
	if spread >= float64(plan.Unpayable) { // may exceed the range of int64
		return plan.Unpayable
	}
	return max(least, int64(spread)) + 1
}

// refuse returns a verdict on all nodes of the change.
func (c *change) refuse(code plan.Code, need, have int64) plan.Verdict {
	return plan.Verdict{Code: code, Node: c.nodes[0].Name, Others: len(c.nodes) - 1, Need: need, Have: have}
}

// noSaving returns the verdict that the change does not pay because of the new nodes for the pods.
func (c *change) noSaving() plan.Verdict {
	v := c.refuse(plan.NoSaving, int64(len(c.claims)), c.worth.Saving)
	if len(c.claims) > 0 && len(c.claims[0].Options) > 0 {
		v.Name, v.Pool = c.claims[0].Options[0].Type, c.claims[0].Pool
	}
	return v
}

// decide returns whether the change may be made. It restricts the options of the new nodes to types at which the
// change pays, whichever of them the provider selects.
func (w *projection) decide(c *change) plan.Verdict {
	least := w.least(c)
	if c.worth.Saving < least {
		if c.worth.Saving <= 0 {
			return c.noSaving()
		}
		return c.refuse(plan.SavingTooSmall, least, c.worth.Saving)
	}
	if v := w.spotRules(c); !v.OK() {
		return v
	}
	if v := w.keepsSpread(c); !v.OK() {
		return v
	}
	if len(c.claims) > 0 {
		slack := (c.worth.Saving - least) / int64(len(c.claims))
		for i := range c.claims {
			if v := w.trim(c, &c.claims[i], slack); !v.OK() {
				return v
			}
		}
		w.computeWorth(c)
		if saving := w.billedSaving(c); saving < least {
			return c.refuse(plan.SavingTooSmall, least, saving)
		}
	}
	return w.balanced(c)
}

// billedSaving returns the saving of the change as the judge computes it: commitments cover its new nodes by rank, after those
// of earlier changes. A plan counts on one commitment for each new node.
func (w *projection) billedSaving(c *change) int64 {
	if len(w.snap.Commitments) == 0 {
		return c.worth.Saving
	}
	var nodes []*model.Node
	for _, claims := range [][]plan.NewClaim{w.decidedClaims, c.claims} {
		for i := range claims {
			if n := w.snap.Future(claims[i].FutureSpec(w.snap), claims[i].Types()); n != nil {
				nodes = append(nodes, n)
			}
		}
	}
	prices, saving := w.snap.With(nodes...).PricesWithout(c.nodes, nodes), c.worth.Saving
	for i := range c.claims {
		if price, known := prices[c.claims[i].Name]; known {
			saving -= price - c.claims[i].Price()
		}
	}
	return saving
}

// spotRules refuses changes that replace only spot nodes by spot nodes, unless the feature gate
// SpotToSpotConsolidation is enabled and enough cheaper types exist. See
// https://karpenter.sh/docs/concepts/disruption/#consolidation.
func (w *projection) spotRules(c *change) plan.Verdict {
	onDemand := func(n *model.Node) bool { return n.Labels[model.LabelCapacityType] != spotshare.Spot }
	if len(c.claims) == 0 || slices.ContainsFunc(c.nodes, onDemand) {
		return plan.Verdict{}
	}
	launchesSpot := slices.ContainsFunc(c.claims, func(n plan.NewClaim) bool { return n.Options[0].CapacityType == spotshare.Spot })
	if launchesSpot && !w.opts.SpotToSpot {
		return plan.Verdict{Code: plan.SpotForbidden, Node: c.nodes[0].Name}
	}
	return plan.Verdict{}
}

// command converts the change to a command, and shortens it if it is too large to store.
func (w *projection) command(c *change, reason plan.Reason) plan.Command {
	candidates := make([]plan.Candidate, len(c.nodes))
	for i, n := range c.nodes {
		candidates[i] = plan.CandidateOf(n)
	}
	w.rename(c.claims)
	plan.StampClaims(w.began, c.claims)
	cmd := plan.NewCommand(w.snap.Now, reason, method(c, reason), candidates)
	cmd.Replacements, cmd.Assignments, cmd.Worth = c.claims, c.assignments, c.worth
	for _, assignment := range c.assignments {
		if n := w.snap.Node(assignment.Node); n != nil {
			cmd.Destinations = append(cmd.Destinations, plan.DestinationOf(n, assignment.Pods))
		}
	}
	w.shorten(&cmd)
	return cmd
}

// rename gives new names to claims with the same name as a node that is being removed. A what-if does not contain
// these nodes, and a node that was launched for the same pods has the same name. A candidate would otherwise count as
// its own replacement.
func (w *projection) rename(claims []plan.NewClaim) {
	for i := range claims {
		r := &claims[i]
		r.Name = plan.ClaimName(w.began.Pool(r.Pool).PoolSpec, r.Pods, func(name string) bool { return w.began.Claim(name) != nil })
	}
}

// method returns the value of the metrics label for the way in which a change was found.
func method(c *change, reason plan.Reason) string {
	switch {
	case reason != plan.Underutilized:
		return ""
	case len(c.nodes) > 1:
		return MethodMulti
	}
	return MethodSingle
}
