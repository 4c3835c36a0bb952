package disruption

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Steps towards the target of the search, where the budgets do not allow all of the selected nodes to be removed at
// once. The target is what the pods of these nodes would get. Each step pays by itself:
//
//	target    new nodes A, B          a selected node of A's type, whose pods are like some of A's, is A
//	step      nodes m, n --> A        they cost more than A, which gets the size that the target needs
//	step      node o --> room on A and on nodes that are kept
//
// The next pass computes the target again, from the nodes that exist then. Expensive nodes are exchanged for nodes of
// the target before others are removed: a node that is cheaper than each new node cannot pay for one. Where no node
// costs as much as a large new node, the most expensive nodes that the budgets allow at once may together. So of the
// nodes whose pods need no new node, the cheapest are removed first.
//
// Cost: a few packings of the pods of the selected nodes, and one what-if for each examined pair of a set of nodes and a
// new node: 12 times 23 at most, for each step.

// mostPairs is how many nodes, alone and together, and how many new nodes are examined as pairs, those with the highest
// prices.
const mostPairs = 12

// walk begins removals of some of the selected nodes at a time, as long as the budgets allow it, and returns the nodes that
// remain selected.
func (s *search) walk(nodes []*model.Node) []*model.Node {
	for len(nodes) > 0 && !s.spent() {
		step := s.nextStep(nodes)
		if step == nil {
			break
		}
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *model.Node) bool {
			return slices.ContainsFunc(step.nodes, func(gone *model.Node) bool { return gone.Name == n.Name })
		})
		s.accept([]*change{step})
	}
	return nodes
}

// nextStep returns the removal of some of the nodes with which to begin, nil if the budgets allow none or none pays.
func (s *search) nextStep(nodes []*model.Node) *change {
	if !slices.ContainsFunc(nodes, s.maySpend) {
		return nil
	}
	target := s.targetOf(nodes, math.MaxInt64)
	matched := s.matched(nodes, target)
	for name := range matched {
		delete(s.waste, name)
	}
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *model.Node) bool { return matched[n.Name] })
	var open []*model.Node
	var highest int64
	for _, n := range nodes {
		if s.maySpend(n) && !s.taken[n.Name] {
			open = append(open, s.snap.Node(n.Name))
			highest = max(highest, n.Price)
		}
	}
	slices.SortFunc(open, func(a, b *model.Node) int {
		return cmp.Or(cmp.Compare(s.cost(b), s.cost(a)), strings.Compare(a.Name, b.Name))
	})
	if len(matched) > 0 {
		target = s.targetOf(nodes, math.MaxInt64)
	}
	if step := s.exchange(open, target); step != nil {
		return step
	}
	// No removal pays for a node of the target. The best fleet of cheaper nodes is the next target.
	if step := s.exchange(open, s.targetOf(nodes, highest)); step != nil {
		return step
	}
	for _, n := range slices.Backward(open) {
		if step := s.removal([]*model.Node{n}, nil); step != nil {
			return step
		}
	}
	return nil
}

// maySpend reports whether the budgets of the node's pool allow a removal.
func (s *search) maySpend(n *model.Node) bool {
	a := s.guard.Allowance(n.Pool, plan.Underutilized)
	return a.Verdict.OK() && a.Remaining() > 0
}

// exchange returns the best removal of some of the nodes that launches a node of the target: the one after which the new
// node has the fewest pods that the target has elsewhere.
func (s *search) exchange(nodes []*model.Node, target []plan.NewClaim) *change {
	slices.SortStableFunc(target, func(a, b plan.NewClaim) int { return cmp.Compare(b.Price(), a.Price()) })
	var best *change
	least := math.Inf(1)
	for i := range target[:min(len(target), mostPairs)] {
		for _, set := range s.sets(nodes) {
			if s.spent() {
				return best
			}
			step := s.removal(set, &target[i])
			if step == nil {
				continue
			}
			if misplaced := s.misplaced(step, &target[i]); misplaced < least {
				best, least = step, misplaced
			}
		}
	}
	return best
}

// sets returns the sets of nodes that may be exchanged for one node: each node alone, and the most expensive nodes, as
// many as the budgets allow at once. Of both there are mostPairs at most.
func (s *search) sets(nodes []*model.Node) [][]*model.Node {
	var sets [][]*model.Node
	for i := range nodes[:min(len(nodes), mostPairs)] {
		sets = append(sets, nodes[i:i+1])
	}
	for n := 2; n <= min(len(nodes), mostPairs) && s.admitted(nodes[:n]); n++ {
		sets = append(sets, nodes[:n])
	}
	return sets
}

// targetOf returns the new nodes that the pods of the nodes would get, each of a type that costs less than the price,
// nano-USD per hour.
func (s *search) targetOf(nodes []*model.Node, below int64) []plan.NewClaim {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	what := s.snap.Without(names...)
	what.Ledger = s.snap.Ledger
	if below == math.MaxInt64 {
		return s.schedule(what, s.closed, s.opts.Placement).Claims
	}
	what.Pools = cheaper(what.Pools, below)
	other := *s.projection // its cache must not be that of pools with all types
	other.cache = placement.Cache{}
	p := other.schedule(what, s.closed, other.opts.Placement)
	s.work = other.work
	return p.Claims
}

// cheaper returns the pools with the types only that cost less than the price somewhere.
func cheaper(pools []*model.Pool, below int64) []*model.Pool {
	list := make([]*model.Pool, len(pools))
	for i, p := range pools {
		list[i] = p
		if p.Types == nil {
			continue
		}
		affordable := bitset.New(p.Types.Len())
		for k := range p.Types.Classes {
			c := &p.Types.Classes[k]
			for t := range c.Types.All() {
				if c.Price[t] < below {
					affordable.Add(t)
				}
			}
		}
		affordable.AndWith(p.Eligible)
		fresh, spec := *p, *p.PoolSpec
		fresh.PoolSpec, fresh.Eligible = &spec, affordable
		list[i] = &fresh
	}
	return list
}

// removal returns the removal of the nodes, if their pods fit on nodes that are kept and, if it is not nil, on the node
// of the claim, which then gets some of them. It returns nil if they do not, or if the removal does not pay.
func (s *search) removal(nodes []*model.Node, claim *plan.NewClaim) *change {
	began, future := s.snap, ""
	if claim != nil {
		saving, spread := -claim.Price()-s.nodePrice(claim.Pool), 0.0
		for _, n := range nodes {
			saving += s.cost(n)
			spread += s.economics(n).spread(n)
		}
		if float64(saving) <= spread {
			return nil
		}
		launched := s.snap.Future(claim.FutureSpec(s.snap), claim.Types())
		if launched == nil {
			return nil
		}
		future = launched.Name
		s.snap = s.snap.With(launched)
		s.snap.Ledger = began.Ledger
	}
	o := s.ontoNodes(nodes, func(other *model.Node) bool { return other.Name != future && s.closed(other) })
	s.snap = began
	if len(o.unplaced)+len(o.claims)+len(o.room) > 0 {
		return nil
	}
	c := &change{nodes: nodes, groups: groupsOf(o)}
	for _, a := range o.assignments {
		if a.Node != future {
			c.assignments = append(c.assignments, a)
			continue
		}
		own := *claim
		own.Pods, own.Requirements = a.Pods, slices.Clone(claim.Requirements)
		own.Requests = requestsFor(claim, s.snap.Resources, a.Pods)
		c.claims = append(c.claims, own)
	}
	if claim != nil && len(c.claims) == 0 {
		return nil
	}
	s.computeWorth(c)
	if !s.decide(c).OK() {
		return nil
	}
	return c
}

// requestsFor returns the requests of the claim with other pods. Its list of types remains that of its own pods, so that
// there is room for them later.
func requestsFor(claim *plan.NewClaim, resources []string, pods []*model.Pod) []quantity.Amount {
	var before, now quantity.Vector
	for _, p := range claim.Pods {
		before = before.Add(p.Requests)
	}
	for _, p := range pods {
		now = now.Add(p.Requests)
	}
	requests := slices.Clone(claim.Requests)
	for i := range requests {
		if r := slices.Index(resources, requests[i].Name); r >= 0 {
			requests[i].Value += now.At(quantity.Resource(r)) - before.At(quantity.Resource(r))
		}
	}
	return requests
}

// like identifies pods that the target may exchange for each other.
func like(pods []*model.Pod) map[*model.Shape]int {
	counts := map[*model.Shape]int{}
	for _, p := range pods {
		if p.Reschedulable {
			counts[p.Shape]++
		}
	}
	return counts
}

// matched returns the nodes that are nodes of the target already: of the cheapest type of one of its claims, with no
// pods but those that the claim has too.
func (s *search) matched(nodes []*model.Node, target []plan.NewClaim) map[string]bool {
	matched := map[string]bool{}
	for i := range target {
		claim := &target[i]
		wanted := like(claim.Pods)
		at := slices.IndexFunc(nodes, func(n *model.Node) bool {
			if matched[n.Name] || n.Pool != claim.Pool || n.Price > claim.Price() || n.Labels[model.LabelType] != claim.Options[0].Type {
				return false
			}
			for shape, count := range like(n.Pods) {
				if count > wanted[shape] {
					return false
				}
			}
			return true
		})
		if at >= 0 {
			matched[nodes[at].Name] = true
		}
	}
	return matched
}

// misplaced returns how much of the new node is used by pods that the target has elsewhere: the sum of their larger
// shares of the cpu and memory that the pods of the claim request.
func (s *search) misplaced(step *change, claim *plan.NewClaim) float64 {
	var all quantity.Vector
	for _, p := range claim.Pods {
		all = all.Add(p.Requests)
	}
	wanted, sum := like(claim.Pods), 0.0
	for i := range step.claims {
		for _, p := range step.claims[i].Pods {
			if wanted[p.Shape]--; wanted[p.Shape] < 0 {
				sum += largestPart(p.Requests, all)
			}
		}
	}
	return sum
}

// largestPart returns the larger of the shares of the cpu and of the memory that are requested.
func largestPart(requests, of quantity.Vector) float64 {
	part := 0.0
	for _, r := range []quantity.Resource{quantity.CPU, quantity.Memory} {
		if all := of.At(r); all > 0 {
			part = max(part, float64(requests.At(r))/float64(all))
		}
	}
	return part
}
