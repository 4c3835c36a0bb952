package disruption

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// The search for a cheaper fleet.
//
//  1. What is a pod worth? All pods that may move are packed once onto new nodes, as if their nodes were not there. What
//     a new node costs is divided among its pods by size; the mean over the pods of a shape is what the shape is worth:
//     what it would cost in a fleet without waste.
//  2. Which nodes are waste? A node costs more than its pods are worth, or not. Those where the difference, over the
//     payback time, exceeds the price of moving the pods should go: the most saving per disruption first.
//  3. They go in batches of neighbours in that order. The pods of a batch are packed onto the room of nodes that stay and
//     onto new nodes, m to n. Nobody is sent to a node that should go itself. The outcome falls apart into changes
//     that have nothing to do with each other; each must pay by itself, and is a command of its own.
//  4. Every other node is asked alone: can it go, or be replaced by something cheaper?
//
// Whatever one change decided, the next is asked of the world after it, and nodes that were promised pods stay. So the
// commands may be carried out in any order, at the same time, or in part. What does not pay this time because the room is
// on nodes that are still to come is found by the next run.
//
// Cost: one packing of all pods that may move, one of each batch, and one what-if for each node that stays.

// batchSize is how many nodes are packed anew together. More find a better fit for the last node of a batch; fewer make
// commands that depend on less.
const batchSize = 12

// search is one run of the consolidation.
type search struct {
	*world
	guard *plan.Guard
	// waste are the nodes that should go and have not been asked yet.
	waste map[string]bool
	keep  func(*model.Node, plan.Verdict)
	found []plan.Command
}

// consolidate proposes the commands that make the fleet cheaper. The nodes are those that may leave; keep is told of
// everyone that stays and why.
func (w *world) consolidate(guard *plan.Guard, nodes []*model.Node, keep func(*model.Node, plan.Verdict)) []plan.Command {
	s := &search{world: w, guard: guard, waste: map[string]bool{}, keep: keep}
	nodes = s.affordable(nodes)
	if len(nodes) == 0 {
		return nil
	}
	wasted, rest := s.assess(nodes)
	for _, n := range wasted {
		s.waste[n.Name] = true
	}
	for len(wasted) > 0 {
		n := min(batchSize, len(wasted))
		batch := s.affordable(s.free(wasted[:n]))
		wasted = wasted[n:]
		rest = append(rest, s.batch(batch)...)
	}
	s.singles(rest)
	return s.found
}

// affordable are the nodes whose pool's budget still allows one to leave.
func (s *search) affordable(nodes []*model.Node) []*model.Node {
	var list []*model.Node
	left := map[string]int64{}
	for _, n := range nodes {
		if _, known := left[n.Pool]; !known {
			a := s.guard.Allowance(n.Pool, plan.Underutilized)
			left[n.Pool] = a.Remaining()
			if !a.Verdict.OK() {
				left[n.Pool] = 0
			}
		}
		if left[n.Pool] > 0 {
			list = append(list, n)
			continue
		}
		delete(s.waste, n.Name)
		s.keep(n, s.budget(n))
	}
	return list
}

func (s *search) budget(n *model.Node) plan.Verdict {
	a := s.guard.Allowance(n.Pool, plan.Underutilized)
	if !a.Verdict.OK() {
		return a.Verdict
	}
	return plan.Verdict{Code: plan.BudgetExhausted, Node: n.Name, Have: a.Allowed}
}

// free are the nodes that no earlier change sends pods to.
func (s *search) free(nodes []*model.Node) []*model.Node {
	var list []*model.Node
	for _, n := range nodes {
		if s.taken[n.Name] {
			delete(s.waste, n.Name)
			s.keep(n, plan.Verdict{Code: plan.NodeNominated, Node: n.Name})
			continue
		}
		list = append(list, s.snap.Node(n.Name))
	}
	return list
}

// prospect is what a node wastes.
type prospect struct {
	node *model.Node
	// waste in nano-USD per hour, gain what it is over the payback time beyond the price of moving, nano-USD.
	waste int64
	gain  float64
	ratio float64
}

// assess divides the nodes into those that cost more than what is on them is worth, most saving per disruption first, and
// the rest, dearest first.
func (s *search) assess(nodes []*model.Node) (wasted, rest []*model.Node) {
	worth := s.worthOfShapes(nodes)
	list := make([]prospect, len(nodes))
	for i, n := range nodes {
		p := prospect{node: n, waste: s.cost(n)}
		for _, pod := range n.Pods {
			if pod.Reschedulable {
				p.waste -= worth[pod.Shape]
			}
		}
		e := s.economics(n)
		moving := float64(e.priceOfMoving(n))
		p.gain = float64(p.waste)*e.Payback.Hours() - moving
		p.ratio = float64(p.waste) / float64(1000+evictionCost(n))
		list[i] = p
	}
	slices.SortFunc(list, func(a, b prospect) int {
		return cmp.Or(cmp.Compare(b.ratio, a.ratio), strings.Compare(a.node.Name, b.node.Name))
	})
	for _, p := range list {
		if p.gain > 0 {
			wasted = append(wasted, p.node)
		} else {
			rest = append(rest, p.node)
		}
	}
	return wasted, rest
}

// worthOfShapes packs all pods of the nodes anew and tells what a pod of each shape costs then, nano-USD per hour.
func (s *search) worthOfShapes(nodes []*model.Node) map[*model.Shape]int64 {
	gone := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		gone[n.Name] = true
	}
	// Room on nodes that stay anyway is free, and says nothing about worth.
	o := s.without(nodes, func(*model.Node) bool { return true })
	type tally struct {
		sum  float64
		pods int
	}
	tallies := map[*model.Shape]tally{}
	for i := range o.claims {
		c := &o.claims[i]
		pool := s.snap.Pool(c.Pool)
		t, _ := pool.Types.Lookup(c.Options[0].Type)
		var total float64
		sizes := make([]float64, len(c.Pods))
		for j, p := range c.Pods {
			sizes[j] = sizeOf(p, pool.Net[t])
			total += sizes[j]
		}
		cost := float64(c.Price() + s.nodePrice(c.Pool))
		for j, p := range c.Pods {
			sum := tallies[p.Shape]
			tallies[p.Shape] = tally{sum.sum + cost*sizes[j]/total, sum.pods + 1}
		}
	}
	worth := make(map[*model.Shape]int64, len(tallies))
	for shape, sum := range tallies {
		worth[shape] = int64(sum.sum / float64(sum.pods))
	}
	return worth
}

// sizeOf is the mean of the parts of a node that a pod takes, over the resources of the node that it asks for.
func sizeOf(p *model.Pod, of []int64) float64 {
	var sum float64
	for r, n := range p.Requests {
		if n > 0 && r < len(of) && of[r] > 0 {
			sum += float64(n) / float64(of[r])
		}
	}
	return max(sum, 1e-9)
}

// closed reports whether nobody may be sent to the node: it should go itself, or has not settled.
func (s *search) closed(n *model.Node) bool { return s.waste[n.Name] || s.unsettled(n) }

// attempts is how often a batch is asked again without the nodes that held it up.
const attempts = 8

// batch packs the nodes' pods anew, and returns the nodes that stay because of the others.
func (s *search) batch(nodes []*model.Node) []*model.Node {
	var rest []*model.Node
	drop := func(bad []*model.Node) {
		for _, n := range bad {
			delete(s.waste, n.Name)
		}
		rest = append(rest, bad...)
		nodes = slices.DeleteFunc(nodes, func(n *model.Node) bool { return slices.Contains(bad, n) })
	}
	for try := 0; len(nodes) > 0; try++ {
		if try == attempts {
			drop(slices.Clone(nodes))
			break
		}
		o := s.without(nodes, s.closed)
		if len(o.homeless) > 0 {
			drop(nodesOf(o.homeless))
			continue
		}
		var good []*change
		var bad []*model.Node
		for _, c := range s.changes(o) {
			if v := s.decide(c); v.OK() {
				good = append(good, c)
			} else {
				bad = append(bad, s.spoiler(c)...)
			}
		}
		if len(bad) > 0 {
			drop(bad)
			continue
		}
		s.accept(good)
		break
	}
	return rest
}

// spoiler are the nodes of a change that does not pay which should stay: the half that wastes least.
func (s *search) spoiler(c *change) []*model.Node {
	nodes := slices.Clone(c.nodes)
	slices.SortFunc(nodes, func(a, b *model.Node) int {
		return cmp.Or(cmp.Compare(s.cost(a)*1000/(1000+evictionCost(a)), s.cost(b)*1000/(1000+evictionCost(b))), strings.Compare(a.Name, b.Name))
	})
	return nodes[:(len(nodes)+1)/2]
}

func nodesOf(homeless []stranded) []*model.Node {
	var nodes []*model.Node
	for _, h := range homeless {
		if !slices.Contains(nodes, h.node) {
			nodes = append(nodes, h.node)
		}
	}
	return nodes
}

// accept makes commands of the changes and applies them to the world.
func (s *search) accept(changes []*change) {
	for _, c := range changes {
		for _, n := range c.nodes {
			delete(s.waste, n.Name)
		}
		command := s.command(c, plan.Underutilized)
		if v := s.guard.Admit(command); !v.OK() { // the budgets of two pools at once, say
			for _, n := range c.nodes {
				s.keep(n, v)
			}
			continue
		}
		s.found = append(s.found, command)
		s.apply(c)
	}
}

// singles asks about every node alone.
func (s *search) singles(nodes []*model.Node) {
	for _, n := range nodes {
		now := s.free(s.affordable([]*model.Node{n}))
		if len(now) == 0 {
			continue
		}
		o := s.without(now, func(other *model.Node) bool { return s.closed(other) })
		if len(o.homeless) > 0 {
			h := o.homeless[0]
			s.keep(n, plan.Verdict{Code: plan.PodsHomeless, Node: n.Name, Have: int64(len(o.homeless)), Holder: &plan.Holder{Pod: h.pod.Key()}})
			continue
		}
		c := s.changes(o)[0]
		if v := s.decide(c); !v.OK() {
			s.keep(n, v)
			continue
		}
		s.accept([]*change{c})
	}
}

// unsettled reports whether the node is not to be counted on: it is not initialised, or pods came or went within its
// pool's consolidateAfter (core specification 3.6).
func (w *world) unsettled(n *model.Node) bool {
	if n.Stage != model.Initialized || !n.Ready {
		return true
	}
	pool := w.snap.Pool(n.Pool)
	return n.Ours() && pool != nil && pool.ConsolidateAfter >= 0 && plan.QuietFrom(n, pool).After(w.snap.Now)
}
