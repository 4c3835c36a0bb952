package disruption

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
)

// The search for a cheaper fleet.
//
//  1. Estimate the value of room. All pods that may move are packed once onto new nodes, as if their nodes did not
//     exist; least squares over the new nodes give the cost of a unit of cpu and of memory in a fleet without waste.
//  2. Select the nodes to remove: those that cost most beyond the value of their whole capacity, per eviction cost
//     of their pods. Removing them saves the most for the least disruption, and the nodes that are kept are the best
//     room for their pods. The number is found by trials: the pods of the first n nodes of that order are placed on
//     the others and on new nodes, for several n, and the n with the highest saving is selected. Where moves have a
//     price, the last of them must save at least a part of the mean (see pick), so that small savings do not cause
//     many moves. In a small fleet, the selection is then improved node by node. Budgets do not limit it.
//  3. Remove them in batches of neighbors in that order. The pods of a batch are packed onto the room of nodes that
//     are kept and onto new nodes, m to n. No pod is moved to a node that is itself selected for removal. The
//     outcome is split into independent changes; each must pay by itself, and is a command of its own. Where budgets
//     do not allow all of the nodes at once, begin with a step that pays by itself (steps.go).
//  4. Evaluate every other node alone: can it be removed, or replaced by a cheaper one?
//
// Each what-if starts from the state after the previous changes, and nodes that pods were moved to are kept. So the
// commands may be carried out in any order, concurrently, or in part. A change that does not pay because the room is
// on nodes that do not exist yet is found by the next run. kube-scheduler may bind the moved pods in another way than
// planned, so that one of them finds no room: provisioning then launches a node for it.
//
// Cost: one packing of all pods that may move, one for each n that is tried, one of each batch, and one what-if for
// each node that is kept. In a small fleet, a few sweeps of one packing for each node.

// batchSize is how many nodes are packed together. A larger batch finds a better fit for its last node; a smaller one
// makes commands that depend on less.
const batchSize = 24

// search is one run of the consolidation.
type search struct {
	*projection
	guard *guard.Guard
	// waste holds the nodes that are selected for removal and not evaluated yet.
	waste map[string]bool
	keep  func(*model.Node, plan.Verdict)
	found []plan.Command
}

// newSearch returns a search that starts from the given state.
func newSearch(w *projection, g *guard.Guard, keep func(*model.Node, plan.Verdict)) *search {
	return &search{projection: w, guard: g, waste: map[string]bool{}, keep: keep}
}

// consolidate proposes the commands that make the fleet cheaper. nodes are those that may be removed. keep is called
// for each node that is kept, with the reason.
func (w *projection) consolidate(g *guard.Guard, nodes []*model.Node, keep func(*model.Node, plan.Verdict)) []plan.Command {
	s := newSearch(w, g, keep)
	s.search(nodes)
	return s.found
}

// search finds the changes to begin.
func (s *search) search(nodes []*model.Node) {
	nodes = s.payable(nodes)
	few := len(nodes) <= fewNodes
	if !few {
		nodes = s.affordable(nodes)
	}
	if !slices.ContainsFunc(nodes, s.maySpend) {
		s.affordable(nodes) // records why they are kept
		return
	}
	wasted, rest := s.assess(nodes)
	for _, n := range wasted {
		s.waste[n.Name] = true
	}
	if few && !s.admitted(wasted) {
		wasted = s.walk(wasted)
		for _, n := range wasted {
			delete(s.waste, n.Name)
		}
		rest, wasted = append(wasted, rest...), nil
	}
	for len(wasted) > 0 && !s.spent() {
		var batch []*model.Node
		batch, wasted = s.nextBatch(wasted)
		rest = append(rest, s.batch(s.free(batch))...)
	}
	for _, n := range wasted {
		delete(s.waste, n.Name)
		s.keep(n, plan.Verdict{Code: plan.NotReached, Node: n.Name})
	}
	s.singles(rest)
}

// spent reports whether the work budget is used up.
func (s *search) spent() bool { return s.opts.WorkBudget > 0 && s.work > s.opts.WorkBudget }

// payable returns the nodes that some saving could justify moving. The others are excluded so that they do not
// spoil the trials, which evaluate many nodes together.
func (s *search) payable(nodes []*model.Node) []*model.Node {
	return slices.DeleteFunc(nodes, func(n *model.Node) bool {
		hopeless := s.economics(n).spread(n) >= float64(plan.Unpayable)
		if hopeless {
			s.keep(n, plan.Verdict{Code: plan.SavingTooSmall, Node: n.Name, Need: plan.Unpayable})
		}
		return hopeless
	})
}

// admitted reports whether the budgets allow all of the nodes to be removed at once.
func (s *search) admitted(nodes []*model.Node) bool {
	taken := map[string]int64{}
	for _, n := range nodes {
		if taken[n.Pool]++; !s.maySpend(n) || taken[n.Pool] > s.guard.Allowance(n.Pool, plan.Underutilized).Remaining() {
			return false
		}
	}
	return true
}

// nextBatch returns the nodes of the next batch: as many of each pool as its budget allows at once. Nodes of pools
// whose budget allows none are dropped.
func (s *search) nextBatch(nodes []*model.Node) (batch, later []*model.Node) {
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

// affordable returns the nodes whose pool's budget still allows a removal.
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

// free returns the nodes that no earlier change moves pods to.
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

// gain is the expected gain of removing a node.
type gain struct {
	node *model.Node
	// ratio is the cost of the node beyond the value of its capacity, per eviction cost of its pods.
	ratio float64
}

// roomWorth is the value of room on nodes that are kept, relative to new room: there is more of it than needed, but
// room that is used up must be launched.
const roomWorth = 0.8

// trials is the number of parts into which the order of nodes is divided to find where to stop.
const trials = 4

// assess divides the nodes into those to remove, highest saving per disruption first, and the rest in the same order.
func (s *search) assess(nodes []*model.Node) (going, rest []*model.Node) {
	order := s.byGain(nodes)
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
	if len(order) > improvedNodes {
		return order[:best.n], order[best.n:]
	}
	return s.improve(order, order[:best.n])
}

// improvedNodes is the number of nodes up to which the selection is improved node by node: each sweep over them costs as
// many what-ifs of the selection as there are nodes.
const improvedNodes = 24

// fewNodes is the number of nodes up to which steps towards a target are computed (steps.go). Each step costs a packing of
// all pods of the selected nodes. Budgets of larger fleets allow several nodes at once, which the search packs together.
const fewNodes = 48

// improve adds nodes to the selection and drops nodes from it, one by one, as long as that saves more. Of two selections
// that save the same, the smaller is better.
func (s *search) improve(order, going []*model.Node) (selected, rest []*model.Node) {
	in := map[*model.Node]bool{}
	for _, n := range going {
		in[n] = true
	}
	split := func() (selected, rest []*model.Node) {
		for _, n := range order {
			if in[n] {
				selected = append(selected, n)
			} else {
				rest = append(rest, n)
			}
		}
		return selected, rest
	}
	value := func() float64 {
		set, _ := split()
		if len(set) == 0 {
			return 0
		}
		t := s.tryFirst(set, len(set))
		return t.saving - t.spread
	}
	best := value()
	// Until one is changed, the result of each node stays the same: a sweep ends at the last one that was changed.
	for i, last := 0, 0; i-last < len(order) && !(i%len(order) == 0 && s.spent()); i++ {
		n := order[i%len(order)]
		in[n] = !in[n]
		if v := value(); v > best || v == best && !in[n] {
			best, last = v, i
		} else {
			in[n] = !in[n]
		}
	}
	return split()
}

// trial is the effect of removing the first n nodes of the order.
type trial struct {
	n int
	// saving, and the price of moving over the payback time, in nano-USD per hour; moved is the eviction cost, in
	// thousandths.
	saving, spread, moved float64
}

// lastPart is the part of the mean gain that the last moves must bring if moving has a price.
const lastPart = 0.25

// pick returns the best of the trials: the saving counts, less the amount that the moves would have to bring.
func pick(tried map[int]trial) trial {
	list := slices.SortedFunc(maps.Values(tried), func(a, b trial) int { return a.n - b.n })
	mean, priced := 0.0, false
	for _, t := range list {
		if t.moved > 0 && t.saving > t.spread {
			mean, priced = t.saving/t.moved, priced || t.spread > 0 // of the largest trial that pays at all
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

// tryFirst evaluates the removal of the first n nodes.
func (s *search) tryFirst(order []*model.Node, n int) trial {
	o := s.without(order[:n], s.unsettled)
	stuck := map[*model.Node]bool{}
	for _, h := range o.unplaced {
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
	for _, c := range slices.Concat(o.claims, o.room) {
		t.saving -= float64(c.Price() + s.nodePrice(c.Pool))
	}
	return t
}

// byGain orders the nodes by the gain of removing them.
func (s *search) byGain(nodes []*model.Node) []*model.Node {
	units := s.unitWorth(nodes)
	list := make([]gain, len(nodes))
	for i, n := range nodes {
		capacity := 0.0
		for r, worth := range units {
			capacity += float64(worth * float64(n.Usable.At(quantity.Resource(r))))
		}
		list[i] = gain{n, (float64(s.cost(n)) - float64(roomWorth*capacity)) / float64(1000+evictionCost(n))}
	}
	slices.SortFunc(list, func(a, b gain) int {
		return cmp.Or(cmp.Compare(b.ratio, a.ratio), strings.Compare(a.node.Name, b.node.Name))
	})
	order := make([]*model.Node, len(list))
	for i, p := range list {
		order[i] = p.node
	}
	return order
}

// unitWorth returns the cost of a unit of cpu and memory in a fleet without waste, nano-USD per hour: least squares
// over the new nodes onto which all pods of the nodes would be packed. Products that are added are rounded first,
// float64(x*y): some processors would otherwise fuse the two operations and get another result.
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

// closed reports whether no pod may be moved to the node: it is selected for removal, or has not settled.
func (s *search) closed(n *model.Node) bool { return s.waste[n.Name] || s.unsettled(n) }

// attempts is how often a batch is evaluated again without the nodes that prevented it.
const attempts = 8

// batch packs the pods of the nodes anew, and returns the nodes that must be kept for the sake of the others.
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
		o := s.withoutRelaunch(nodes, s.closed)
		if len(o.unplaced) > 0 {
			drop(nodesOf(o.unplaced))
			continue
		}
		var good []*change
		var bad []*model.Node
		for _, c := range s.changes(o) {
			if v := s.decide(c); v.OK() {
				good = append(good, c)
			} else {
				bad = append(bad, s.leastWasteful(c)...)
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

// leastWasteful returns the nodes to keep of a change that does not pay: the half that wastes least.
func (s *search) leastWasteful(c *change) []*model.Node {
	nodes := slices.Clone(c.nodes)
	slices.SortFunc(nodes, func(a, b *model.Node) int {
		return cmp.Or(cmp.Compare(s.cost(a)*1000/(1000+evictionCost(a)), s.cost(b)*1000/(1000+evictionCost(b))), strings.Compare(a.Name, b.Name))
	})
	return nodes[:(len(nodes)+1)/2]
}

func nodesOf(unplaced []unplacedPod) []*model.Node {
	var nodes []*model.Node
	for _, h := range unplaced {
		if !slices.Contains(nodes, h.node) {
			nodes = append(nodes, h.node)
		}
	}
	return nodes
}

// accept converts the changes to commands and applies them to the state. The nodes of a command that is too large to
// store are evaluated individually after the others.
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
		if v := s.guard.Admit(command); !v.OK() { // for example the budgets of two pools at once
			for _, n := range c.nodes {
				s.keep(n, v)
			}
			continue
		}
		s.found = append(s.found, command)
		s.apply(c)
	}
	if len(large) > 0 {
		s.singles(large)
	}
}

// singles evaluates every node alone.
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
		o := s.withoutRelaunch(now, s.closed)
		if len(o.unplaced) > 0 {
			s.keep(n, unplacedVerdict(n, o))
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

// unsettled reports whether no pod may be moved to the node: it is not initialized, or pods were bound or removed
// within its pool's consolidateAfter, or pods that were moved to it have not been bound yet.
func (w *projection) unsettled(n *model.Node) bool {
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

func (w *projection) isYoung(n *model.Node) bool {
	if n.Stage != model.Initialized || !n.Ready || reserve.Expecting(w.snap, n) {
		return true
	}
	pool := w.snap.Pool(n.Pool)
	return n.Ours() && pool != nil && pool.ConsolidateAfter >= 0 && guard.QuietFrom(n, pool).After(w.snap.Now)
}
