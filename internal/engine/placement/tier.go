package placement

import (
	"cmp"
	"math"
	"slices"
)

// Pools of equal weight. The configuration prefers none of them, so the price decides. An order of pools determines
// which batches go to which pool, and in which sequence: all to one pool first and the rest to the others, for each
// pool in turn, or each batch to its cheapest pool. Each order is tried with a simple packing, and the cheapest one is
// then packed thoroughly. Orders of equal cost are decided by the pools' names, the last first. If there is too much to
// try, each batch goes to its cheapest pool: then there are enough pods to fill the nodes of each.

// poolOrder is a step of an order of pools: the batches that one pool is packed from.
type poolOrder struct {
	pool    *poolState
	batches []*domainBatch
}

// mostFirst is how many pools of a tier are tried as the first one, by the cost of all pods there.
const mostFirst = 4

// tiers groups the pools by weight.
func (l *launcher) tiers() [][]*poolState {
	var list [][]*poolState
	for from, ps := range l.fleet.pools {
		if from == 0 || ps.spec.Weight != l.fleet.pools[from-1].spec.Weight {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], ps)
	}
	return list
}

// poolOrders determines how the batches with remaining pods are distributed over pools of one weight.
func (l *launcher) poolOrders(tier []*poolState, batches []*domainBatch) []poolOrder {
	plain := straight(tier, batches)
	tier = slices.DeleteFunc(slices.Clone(tier), func(ps *poolState) bool { return !ps.open() })
	batches = slices.DeleteFunc(slices.Clone(batches), func(batch *domainBatch) bool { return len(batch.left) == 0 })
	if len(tier) < 2 || len(batches) == 0 {
		return plain
	}
	rates := l.rates(tier, batches)
	orders := [][]poolOrder{straight(tier, batches)}
	for _, first := range rates.cheapest() {
		if first != tier[0] {
			rest := slices.DeleteFunc(slices.Clone(tier), func(ps *poolState) bool { return ps == first })
			orders = append(orders, straight(append([]*poolState{first}, rest...), batches))
		}
	}
	apart := rates.apart()
	if len(apart) > len(tier)+1 { // more than one pool is the cheapest of some batch
		orders = append(orders, apart)
	}
	if len(orders) == 1 {
		return plain
	}
	return l.cheapestOrder(tier, batches, orders, apart)
}

func straight(pools []*poolState, batches []*domainBatch) []poolOrder {
	steps := make([]poolOrder, len(pools))
	for i, ps := range pools {
		steps[i] = poolOrder{ps, batches}
	}
	return steps
}

// cheapestOrder tries the orders, each on a clone of the fleet, and returns the one that leaves the fewest pods at the
// least cost. It returns apart if that would be too much work.
func (l *launcher) cheapestOrder(tier []*poolState, batches []*domainBatch, orders [][]poolOrder, apart []poolOrder) []poolOrder {
	limit := l.budget.spare(effort * max(1, l.opts.Effort))
	best, bestScore := apart, score{left: math.MaxInt}
	for _, steps := range orders {
		var s score
		if s, limit = l.tryOrder(tier, batches, steps, limit); limit < 0 || l.budget.over() {
			return apart
		}
		if s.less(bestScore) {
			best, bestScore = steps, s
		}
	}
	return best
}

// tryOrder packs copies of the batches in an order, and returns how that rates and what is left of the limit of work.
func (l *launcher) tryOrder(tier []*poolState, batches []*domainBatch, steps []poolOrder, limit int) (score, int) {
	try := l.on(l.fleet.clone(tier...))
	copies := map[*domainBatch]*domainBatch{}
	for _, batch := range batches {
		own := *batch
		copies[batch] = &own
	}
	for _, step := range steps {
		own := make([]*domainBatch, len(step.batches))
		for i, batch := range step.batches {
			own[i] = copies[batch]
		}
		ps := try.fleet.pools[step.pool.index]
		cands := try.candidates(ps, own)
		if len(cands) == 0 || limit < 0 {
			continue
		}
		limit -= try.fleet.pack(ps, cands, offeringsFor(cands), packOrders[0], limit).examined
		for _, cand := range cands {
			cand.batch.left = cand.left
		}
	}
	s := score{cost: try.fleet.cost(len(l.fleet.bins))}
	for _, own := range copies {
		s.left += len(own.left)
	}
	return s, limit
}

// rates are the least cost of a pod of each batch in each pool, nano-USD per hour, on full nodes; unavailable where no
// node holds it.
type rates struct {
	tier    []*poolState
	batches []*domainBatch
	rate    [][]int64
}

const unavailable = math.MaxInt64

func (l *launcher) rates(tier []*poolState, batches []*domainBatch) *rates {
	s := &rates{tier: tier, batches: batches}
	for _, batch := range batches {
		of := make([]int64, len(tier))
		for i, ps := range tier {
			of[i] = l.rate(ps, batch)
		}
		s.rate = append(s.rate, of)
	}
	return s
}

func (l *launcher) rate(ps *poolState, batch *domainBatch) int64 {
	least := int64(unavailable)
	most, _ := batch.pending.rules.limitOnHost(&tally{})
	for _, o := range l.fleet.offersTo(ps, batch.pending, batch.rows) {
		for _, b := range o.front {
			if !o.holds(batch.pending.group, b) {
				continue
			}
			copies := int64(math.MaxInt32)
			for i, n := range batch.pending.group.Requests {
				if n > 0 {
					copies = min(copies, o.room(b).Net[b.kind][i]/n)
				}
			}
			if most > 0 {
				copies = min(copies, int64(most))
			}
			least = min(least, (b.price+ps.nodePrice)/max(1, copies))
		}
	}
	return least
}

// cheapest returns the pools with the least cost for all batches, at most mostFirst. A batch that does not fit in a
// pool counts there with its highest cost elsewhere.
func (s *rates) cheapest() []*poolState {
	sums := map[*poolState]int64{}
	for i, batch := range s.batches {
		dearest := int64(0)
		for _, rate := range s.rate[i] {
			if rate != unavailable {
				dearest = max(dearest, rate)
			}
		}
		for k, ps := range s.tier {
			sums[ps] = addTimes(sums[ps], min(dearest, s.rate[i][k]), int64(len(batch.left)))
		}
	}
	list := slices.Clone(s.tier)
	slices.SortStableFunc(list, func(a, b *poolState) int { return cmp.Compare(sums[a], sums[b]) })
	return list[:min(mostFirst, len(list))]
}

// addTimes returns sum plus n times the rate, none of them negative, at most unavailable: money is exact, and an overflow
// counts as not available.
func addTimes(sum, rate, n int64) int64 {
	if n > 0 && rate > (unavailable-sum)/n {
		return unavailable
	}
	return sum + rate*n
}

// apart sends every batch to its cheapest pool, and then the pods that were not placed to all pools.
func (s *rates) apart() []poolOrder {
	var steps []poolOrder
	for k, ps := range s.tier {
		var own []*domainBatch
		for i, batch := range s.batches {
			if s.rate[i][k] != unavailable && slices.Index(s.rate[i], slices.Min(s.rate[i])) == k {
				own = append(own, batch)
			}
		}
		if len(own) > 0 {
			steps = append(steps, poolOrder{ps, own})
		}
	}
	return append(steps, straight(s.tier, s.batches)...)
}
