package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/placement/tally"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Several packings. Greedy filling depends on the order of the pods, and no order is best for all workloads. If the
// work is affordable, the pools of a weight are packed in several orders, each from the same state, and the cheapest result is used.
// Work is counted in examined candidates, not in seconds, so that every machine computes the same plan.

// packOrder sorts candidates for a packing; the zero value keeps the order of the groups.
type packOrder struct {
	compare func(a, b *packCandidate) int
	// evenly: sort again before each bin, and open few bins of a pattern at a time.
	evenly bool
	// learn from the previous packing which pods are expensive.
	learn bool
	// inTurn: one bin at a time, in the order in which the pods were assigned to domains; spread.go.
	inTurn bool
	// scarcity is the price of using all that the limits leave, as a multiple of the value of all pods. count values every
	// pod alike: limits.go.
	scarcity float64
	count    bool
	// refined: fill the bins of few pods as well as possible; packing.go.
	refined bool
	// valuesNodes: the nodes that rules by hostname force have a value of their own; duals.go.
	valuesNodes bool
	// forced: the order differs from others only where rules by hostname force nodes.
	forced bool
}

// packOrders are tried after the first two: by how many nodes a group forces, by the value of a pod, by memory; and then by
// value again, with a higher value for pods that proved expensive.
var packOrders = []packOrder{
	{compare: byForced, evenly: true, forced: true}, {compare: byWorth}, {compare: byMemory},
	{compare: byWorth, learn: true}, {compare: byWorth, learn: true}, {compare: byWorth, learn: true},
	{refined: true}, {compare: byWorth, refined: true}, {compare: byMemory, refined: true},
}

// orders returns the orders that are tried. The first takes the groups as they come; large workloads allow no more. It values
// the nodes that are forced in purchases. In what-ifs it does not: that left repacked fleets with up to a third more nodes, for
// the same price or up to 1.3% more (cluster-500 seed 2). The second order is the other one of these two.
func (l *launcher) orders() []packOrder {
	bought := l.opts.Provisioning
	return slices.Concat([]packOrder{{valuesNodes: bought}, {valuesNodes: !bought, forced: true}}, packOrders)
}

// byForced puts candidates first that force the most nodes: pods of which a node may have only a limited number.
func byForced(a, b *packCandidate) int {
	return cmp.Or(cmp.Compare(b.pending.group.Priority, a.pending.group.Priority), cmp.Compare(b.forced(), a.forced()),
		cmp.Compare(b.value, a.value))
}

// forced returns how many nodes the rules by hostname force for the candidate's pods, 0 when they force none.
func (cand *packCandidate) forced() int {
	if cand.perHost == 0 {
		if cand.perHost, _ = cand.pending.rules.limitOnHost(&tally.Tally{}); cand.perHost <= 0 {
			cand.perHost = math.MaxInt32
		}
	}
	if cand.perHost >= len(cand.left) {
		return 0
	}
	return (len(cand.left) + cand.perHost - 1) / cand.perHost
}

func byWorth(a, b *packCandidate) int {
	return cmp.Or(cmp.Compare(b.pending.group.Priority, a.pending.group.Priority), cmp.Compare(b.value, a.value))
}

func byMemory(a, b *packCandidate) int {
	return cmp.Or(cmp.Compare(b.pending.group.Priority, a.pending.group.Priority),
		cmp.Compare(b.pending.group.Requests.At(quantity.Memory), a.pending.group.Requests.At(quantity.Memory)),
		cmp.Compare(b.pending.group.Requests.At(quantity.CPU), a.pending.group.Requests.At(quantity.CPU)))
}

// effort is how many candidates all packings of the pools of a weight together may examine beyond the first packing. Few
// pods may use several times as much: they are packed in milliseconds, and a bad order costs a larger part of their
// price.
const (
	effort      = 90_000
	fewPods     = 1_500
	effortOfFew = 3 * effort
)

func effortFor(cands []*packCandidate) int {
	pods := 0
	for _, cand := range cands {
		pods += len(cand.left)
	}
	if pods <= fewPods {
		return effortOfFew
	}
	return effort
}

// packWithin packs the pools as if they had no limits, and reports whether the limits permit the result. So a limit that
// is not reached has no effect. A spot share depends on the types that limits leave to a bin: it is packed within them.
func (l *launcher) packWithin(pools []*poolState, cands []*packCandidate) bool {
	if !slices.ContainsFunc(pools, (*poolState).bounded) {
		l.take(l.bestOf(pools, cands))
		return true
	}
	if slices.ContainsFunc(pools, (*poolState).shared) || exceeded(pools, cands) {
		return false
	}
	from := len(l.fleet.bins)
	unlimited := l.on(l.fleet.withoutLimits(pools))
	best := unlimited.bestOf(unlimited.fleet.same(pools), cands)
	if best.fleet = l.fleet.within(pools, best.fleet, from); best.fleet == nil {
		return false
	}
	l.take(best)
	return true
}

// packBest packs the pools within their limits.
func (l *launcher) packBest(pools []*poolState, cands []*packCandidate) {
	best := l.bestOf(pools, cands)
	l.take(best)
	rest := slices.DeleteFunc(best.candidates, func(cand *packCandidate) bool { return len(cand.left) == 0 })
	if best.merged && len(rest) > 0 {
		l.packBest(pools, rest) // joined bins have left more of the limits
	}
}

// take takes over the result of a packing.
func (l *launcher) take(a *attempt) {
	l.fleet.adopt(a.fleet)
	for _, cand := range a.candidates {
		cand.batch.left = cand.left
		if cand.skew != nil {
			l.assigner.settle(cand.pending, cand.skew)
		}
	}
}

// bestOf returns the best packing of the pools.
func (l *launcher) bestOf(pools []*poolState, cands []*packCandidate) *attempt {
	c := &comparison{launcher: l, pools: pools, from: len(l.fleet.bins), offerings: l.fleet.offeringsFor(cands),
		mergesEach: l.opts.Provisioning && refines(cands)}
	limit := l.budget.spare(effortFor(cands) * max(1, l.opts.Effort))
	forced := slices.ContainsFunc(cands, func(cand *packCandidate) bool { return cand.forced() > 1 })
	orders := l.orders()
	c.try(orders[0], cands, math.MaxInt)
	for _, order := range orders[1:] {
		if c.spent > limit || l.budget.over() {
			break
		}
		if order.forced && !forced || order.refined && !c.mergesEach {
			continue
		}
		if order.learn {
			c.last.learn(c.from)
		}
		c.try(order, c.last.candidates, limit-c.spent)
	}
	inTurn := slices.ContainsFunc(pools, (*poolState).scarce) && slices.ContainsFunc(c.last.candidates, cutShort)
	if inTurn {
		c.best = nil
		c.try(packOrder{inTurn: true}, c.last.candidates, math.MaxInt)
	}
	short := slices.ContainsFunc(pools, (*poolState).bounded) && slices.ContainsFunc(c.best.candidates, hasPods)
	for i, order := range scarceOrders {
		if !short || l.budget.over() || i > 0 && c.spent > limit {
			break
		}
		order.inTurn = inTurn
		c.try(order, c.last.candidates, math.MaxInt)
	}
	c.best.merged = l.on(c.best.fleet).merge(c.best.fleet.same(pools), c.from, c.last.value) || c.best.merged
	return c.best
}

// comparison packs candidates in several orders, each into a clone of the fleet, and keeps the best result.
type comparison struct {
	launcher  *launcher
	pools     []*poolState
	from      int
	offerings []netOffering
	// mergesEach: there is time to join the bins of each packing before it is compared.
	mergesEach bool
	// last is the last packing as it was packed, from which the next one learns. spent is how many candidates all of them
	// examined.
	last, best *attempt
	spent      int
}

func (c *comparison) try(order packOrder, cands []*packCandidate, limit int) {
	fleet := c.launcher.fleet.clone(c.pools...)
	c.last = fleet.pack(fleet.same(c.pools), untouched(cands), c.offerings, order, limit)
	c.spent += c.last.examined
	a := c.last
	if c.mergesEach {
		own := *c.last
		own.fleet = fleet.clone(fleet.same(c.pools)...)
		own.merged = c.launcher.on(own.fleet).merge(own.fleet.same(c.pools), c.from, own.value)
		a = &own
	}
	if c.best == nil || a.score(c.from).less(c.best.score(c.from)) {
		c.best = a
	}
}

func hasPods(cand *packCandidate) bool { return len(cand.left) > 0 }

// attempt is the result of packing candidates into pools of a fleet.
type attempt struct {
	fleet      *fleet
	candidates []*packCandidate
	// value is that of a unit of each resource, as last computed.
	value []float64
	// examined is the number of examined candidates.
	examined int
	// merged: bins of the packing were joined.
	merged bool
}

// untouched returns copies of the candidates with all pods that their batches have left.
func untouched(cands []*packCandidate) []*packCandidate {
	slab, list := make([]packCandidate, len(cands)), make([]*packCandidate, len(cands))
	for i, cand := range cands {
		slab[i] = *cand
		slab[i].left = cand.batch.left
		slab[i].skew = cand.batch.skew.clone()
		list[i] = &slab[i]
	}
	return list
}

// learn raises the value of pods that ended in bins with a high price for their content: the next packing places them
// earlier, where they fit well, instead of leaving them for the end.
func (a *attempt) learn(from int) {
	base := map[*pendingGroup]float64{} // the value of a pod by its resources alone
	for _, cand := range a.candidates {
		if _, known := base[cand.pending]; !known {
			base[cand.pending] = cand.value / cand.costFactor
		}
	}
	cost, value := map[*pendingGroup]float64{}, map[*pendingGroup]float64{}
	for _, b := range a.fleet.bins[from:] {
		var sum float64
		for _, placed := range b.placed {
			sum += float64(float64(len(placed.pods)) * base[placed.pending])
		}
		price := float64(b.lowest + a.fleet.poolOf(b).nodePrice)
		for _, placed := range b.placed {
			part := float64(float64(len(placed.pods)) * base[placed.pending])
			cost[placed.pending] += float64(price * part / sum)
			value[placed.pending] += part
		}
	}
	for _, cand := range a.candidates {
		if value[cand.pending] > 0 {
			cand.costFactor = float64(cand.costFactor * math.Sqrt(cost[cand.pending]/value[cand.pending]))
		}
	}
}

// score rates a packing of candidates: first by how many pods of each rank it left, those of the highest rank first, then
// by its cost.
type score struct {
	left []int
	cost int64
}

func (a score) less(b score) bool {
	return cmp.Or(slices.Compare(a.left, b.left), cmp.Compare(a.cost, b.cost)) < 0
}

// score rates the bins opened since from.
func (a *attempt) score(from int) score {
	var ranks []int32
	for _, cand := range a.candidates {
		if !slices.Contains(ranks, cand.pending.rank) {
			ranks = append(ranks, cand.pending.rank)
		}
	}
	slices.SortFunc(ranks, func(a, b int32) int { return cmp.Compare(b, a) })
	sc := score{left: make([]int, len(ranks)), cost: a.fleet.cost(from)}
	for _, cand := range a.candidates {
		sc.left[slices.Index(ranks, cand.pending.rank)] += len(cand.left)
	}
	return sc
}
