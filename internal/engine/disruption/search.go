package disruption

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// The search for a cheaper fleet.
//
//  1. What is room worth? All pods that may move are packed once onto new nodes, as if their nodes were not there; least
//     squares over the new nodes tell what a unit of cpu and of memory costs in a fleet without waste.
//  2. Which nodes should go? Those that cost most beyond what their whole capacity is worth, by the eviction cost of
//     their pods: their going frees the most money for the least disruption, and what stays is the best room there is
//     for their pods. How many is found by trying: the pods of the first n nodes of that order are placed on the others
//     and on new nodes, for several n, and the n that brings most is taken. Where moves have a price, the last of them
//     must bring at least a part of what the mean one brings (see pick): the last cents are not worth a storm.
//  3. They go in batches of neighbours in that order. The pods of a batch are packed onto the room of nodes that stay and
//     onto new nodes, m to n. Nobody is sent to a node that should go itself. The outcome falls apart into changes
//     that have nothing to do with each other; each must pay by itself, and is a command of its own.
//  4. Every other node is asked alone: can it go, or be replaced by something cheaper?
//  5. All that was found is rehearsed together, with kube-scheduler's rule in place of the plan's seats (rehearse.go): who is
//     left over is bought a node beforehand where that pays, else the change is not made.
//
// Whatever one change decided, the next is asked of the world after it, and nodes that were promised pods stay. So the
// commands may be carried out in any order, at the same time, or in part. What does not pay this time because the room is
// on nodes that are still to come is found by the next run.
//
// Cost: one packing of all pods that may move, one for each n that is tried, one of each batch, and one what-if for
// each node that stays; and three or more rehearsals, each pods that move times sizes of nodes.

// batchSize is how many nodes are packed anew together. More find a better fit for the last node of a batch; fewer make
// commands that depend on less.
const batchSize = 24

// search is one run of the consolidation.
type search struct {
	*world
	guard *plan.Guard
	// waste are the nodes that should go and have not been asked yet.
	waste map[string]bool
	keep  func(*model.Node, plan.Verdict)
	found []*finding
	// start is the world before the search changed it.
	start struct {
		snap   *model.Snapshot
		bought []plan.NewClaim
	}
}

// newSearch begins in the world as it is.
func newSearch(w *world, guard *plan.Guard, keep func(*model.Node, plan.Verdict)) *search {
	s := &search{world: w, guard: guard, waste: map[string]bool{}, keep: keep}
	s.start.snap, s.start.bought = w.snap, w.bought
	return s
}

// consolidate proposes the commands that make the fleet cheaper. The nodes are those that may leave; keep is told of
// everyone that stays and why.
func (w *world) consolidate(guard *plan.Guard, nodes []*model.Node, keep func(*model.Node, plan.Verdict)) []plan.Command {
	s := newSearch(w, guard, keep)
	nodes = s.worthAsking(s.affordable(nodes))
	if len(nodes) == 0 {
		return nil
	}
	wasted, rest := s.assess(nodes)
	for _, n := range wasted {
		s.waste[n.Name] = true
	}
	for len(wasted) > 0 && !s.spent() {
		var batch []*model.Node
		batch, wasted = s.handful(wasted)
		rest = append(rest, s.batch(s.free(batch))...)
	}
	for _, n := range wasted {
		delete(s.waste, n.Name)
		s.keep(n, plan.Verdict{Code: plan.NotReached, Node: n.Name})
	}
	s.singles(rest)
	s.cover()
	return s.commands()
}

// spent reports whether the work budget is.
func (s *search) spent() bool { return s.opts.WorkBudget > 0 && s.work > s.opts.WorkBudget }

// commands are what was found.
func (s *search) commands() []plan.Command {
	commands := make([]plan.Command, len(s.found))
	for i, f := range s.found {
		commands[i] = f.command
	}
	return commands
}

// worthAsking are the nodes that some saving could be worth moving. The others must not spoil the trials, which ask about
// many at once.
func (s *search) worthAsking(nodes []*model.Node) []*model.Node {
	return slices.DeleteFunc(nodes, func(n *model.Node) bool {
		hopeless := s.economics(n).spread(n) >= float64(plan.Unpayable)
		if hopeless {
			s.keep(n, plan.Verdict{Code: plan.SavingTooSmall, Node: n.Name, Need: plan.Unpayable})
		}
		return hopeless
	})
}

// handful takes the nodes of the next batch: as many of each pool as its budget lets go at once. Nodes of pools that let
// none go are left out for good.
func (s *search) handful(nodes []*model.Node) (batch, later []*model.Node) {
	taken := map[string]int64{}
	for _, n := range s.affordable(nodes) {
		if len(batch) < batchSize && taken[n.Pool] < s.guard.Allowance(n.Pool, plan.Underutilized).Remaining() {
			taken[n.Pool]++
			batch = append(batch, n)
			continue
		}
		later = append(later, n)
	}
	return batch, later
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
		s.keep(n, exhausted(n, s.guard.Allowance(n.Pool, plan.Underutilized)))
	}
	return list
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

// prospect is what a node would bring if it went.
type prospect struct {
	node *model.Node
	// ratio is what the node costs beyond what its capacity is worth, per eviction cost of its pods.
	ratio float64
}

// roomWorth is what room on nodes that stay is worth in comparison with new room: there is more of it than needed, but
// what is used up has to be bought.
const roomWorth = 0.8

// trials is into how many parts the order of nodes is divided to find where to stop.
const trials = 4

// assess divides the nodes into those that should go, most saving per disruption first, and the rest in the same order.
func (s *search) assess(nodes []*model.Node) (going, rest []*model.Node) {
	order := s.prospects(nodes)
	tried := map[int]trial{}
	try := func(n int) {
		if _, done := tried[n]; n > 0 && n <= len(order) && !done && !s.spent() {
			tried[n] = s.tryFirst(order, n)
		}
	}
	for i := 1; i <= trials; i++ {
		try((len(order)*i + trials - 1) / trials)
	}
	best := pick(tried)
	for step := len(order) / (2 * trials); step > 0 && step >= len(order)/(8*trials) && best.n > 0; step /= 2 {
		try(best.n - step)
		try(best.n + step)
		best = pick(tried)
	}
	return order[:best.n], order[best.n:]
}

// trial is what it would bring if the first n nodes of the order went.
type trial struct {
	n int
	// saving, and the price of moving over the payback time, in nano-USD per hour; moved is the eviction cost, in thousandths.
	saving, spread, moved float64
}

// lastPart is which part of what the mean move brings the last ones must bring, where moving has a price.
const lastPart = 0.25

// pick returns the best of the trials: the saving counts, less what the moves would have to bring.
func pick(tried map[int]trial) trial {
	list := slices.SortedFunc(maps.Values(tried), func(a, b trial) int { return a.n - b.n })
	mean, priced := 0.0, false
	for _, t := range list {
		if t.moved > 0 && t.saving > t.spread {
			mean, priced = t.saving/t.moved, priced || t.spread > 0 // of the largest that pays at all
		}
	}
	if !priced {
		mean = 0
	}
	var best trial
	value := 0.0
	for _, t := range list {
		if v := t.saving - max(t.spread, float64(lastPart*mean*t.moved)); v > value {
			best, value = t, v
		}
	}
	return best
}

// tryFirst asks what it would bring if the first n nodes went.
func (s *search) tryFirst(order []*model.Node, n int) trial {
	o := s.without(order[:n], s.unsettled)
	stuck := map[*model.Node]bool{}
	for _, h := range o.homeless {
		stuck[h.node] = true
	}
	t := trial{n: n}
	for _, node := range order[:n] {
		if !stuck[node] {
			t.saving += float64(s.cost(node))
			t.spread += s.economics(node).spread(node)
			t.moved += float64(evictionCost(node))
		}
	}
	for i := range o.claims {
		t.saving -= float64(o.claims[i].Price() + s.nodePrice(o.claims[i].Pool))
	}
	return t
}

// prospects orders the nodes by what their going would bring.
func (s *search) prospects(nodes []*model.Node) []*model.Node {
	units := s.unitWorth(nodes)
	list := make([]prospect, len(nodes))
	for i, n := range nodes {
		capacity := 0.0
		for r, worth := range units {
			capacity += float64(worth * float64(n.Usable.At(quantity.Resource(r))))
		}
		list[i] = prospect{n, (float64(s.cost(n)) - float64(roomWorth*capacity)) / float64(1000+evictionCost(n))}
	}
	slices.SortFunc(list, func(a, b prospect) int {
		return cmp.Or(cmp.Compare(b.ratio, a.ratio), strings.Compare(a.node.Name, b.node.Name))
	})
	order := make([]*model.Node, len(list))
	for i, p := range list {
		order[i] = p.node
	}
	return order
}

// unitWorth is what a unit of cpu and memory costs in a fleet without waste, nano-USD per hour: least squares over the new
// nodes that all pods of the nodes would be packed onto. Products that are added are rounded first, float64(x*y): some
// machines would otherwise fuse the two, and decide otherwise.
func (s *search) unitWorth(nodes []*model.Node) []float64 {
	o := s.without(nodes, func(*model.Node) bool { return true })
	var cc, cm, mm, cp, mp float64
	for i := range o.claims {
		c := &o.claims[i]
		var cpu, memory float64
		for _, p := range c.Pods {
			cpu += float64(p.Requests.At(quantity.CPU))
			memory += float64(p.Requests.At(quantity.Memory))
		}
		price := float64(c.Price() + s.nodePrice(c.Pool))
		cc, cm, mm = cc+float64(cpu*cpu), cm+float64(cpu*memory), mm+float64(memory*memory)
		cp, mp = cp+float64(cpu*price), mp+float64(memory*price)
	}
	worth := make([]float64, max(int(quantity.CPU), int(quantity.Memory))+1)
	det := float64(cc*mm) - float64(cm*cm)
	if det > 1e-9*cc*mm {
		worth[quantity.CPU], worth[quantity.Memory] = (float64(cp*mm)-float64(mp*cm))/det, (float64(mp*cc)-float64(cp*cm))/det
	}
	if worth[quantity.CPU] < 0 || worth[quantity.Memory] < 0 || det <= 1e-9*cc*mm {
		if worth[quantity.CPU] < 0 || cc == 0 {
			worth[quantity.CPU], worth[quantity.Memory] = 0, mp/max(mm, 1)
		} else {
			worth[quantity.CPU], worth[quantity.Memory] = cp/max(cc, 1), 0
		}
	}
	return worth
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
		free, tied := s.untie(good)
		s.accept(free)
		rest = append(rest, s.again(tied)...)
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

// accept makes commands of the changes and applies them to the world. The nodes of one that is too large to be stored are
// asked about alone, when the others are done.
func (s *search) accept(changes []*change) {
	var large []*model.Node
	for _, c := range changes {
		for _, n := range c.nodes {
			delete(s.waste, n.Name)
		}
		command := s.command(c, plan.Underutilized)
		if oversized(&command) {
			if len(c.nodes) > 1 {
				large = append(large, c.nodes...)
			} else {
				s.keep(c.nodes[0], plan.Verdict{Code: plan.NoSaving, Node: c.nodes[0].Name})
			}
			continue
		}
		if v := s.guard.Admit(command); !v.OK() { // the budgets of two pools at once, say
			for _, n := range c.nodes {
				s.keep(n, v)
			}
			continue
		}
		s.found = append(s.found, &finding{c, command})
		s.apply(c)
	}
	if len(large) > 0 {
		s.singles(large)
	}
}

// singles asks about every node alone.
func (s *search) singles(nodes []*model.Node) {
	for _, n := range nodes {
		if s.spent() {
			s.keep(n, plan.Verdict{Code: plan.NotReached, Node: n.Name})
			continue
		}
		now := s.free(s.affordable([]*model.Node{n}))
		if len(now) == 0 {
			continue
		}
		o := s.without(now, s.closed)
		if len(o.homeless) > 0 {
			s.keep(n, homelessVerdict(n, o))
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
// pool's consolidateAfter (core specification 3.6), or pods that were sent to it have not come yet.
func (w *world) unsettled(n *model.Node) bool {
	if w.young == nil {
		w.young = map[string]bool{}
		for _, n := range w.began.Nodes {
			if w.isYoung(n) {
				w.young[n.Name] = true
			}
		}
	}
	return len(w.young) > 0 && w.young[n.Name]
}

func (w *world) isYoung(n *model.Node) bool {
	if n.Stage != model.Initialized || !n.Ready || plan.Expecting(w.snap, n) {
		return true
	}
	pool := w.snap.Pool(n.Pool)
	return n.Ours() && pool != nil && pool.ConsolidateAfter >= 0 && plan.QuietFrom(n, pool).After(w.snap.Now)
}
