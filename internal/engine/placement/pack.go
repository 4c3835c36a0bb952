package placement

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement/simplex"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// packCandidate is a batch that may be packed, with the offers of each pool that permit it.
type packCandidate struct {
	batch   *domainBatch
	pending *pendingGroup
	// left are the pods that the packing has not placed.
	left   []*model.Pod
	offers []poolOffers
	// skew is how many of the pods each domain may get, if the packing chooses the domains; else nil.
	skew *skewLimits
	// value is the value of one pod in a bin, at the current resource values. costFactor is the factor by which it proved
	// more expensive than its resources in earlier packings, 1 before the first.
	value, costFactor float64
	// index is its index in the packing's list.
	at int
	// cap is how many of its pods a bin may get at most; packing.go.
	cap int
	// perHost is how many of its pods the rules by hostname permit on an empty node; 0 before it is computed.
	perHost int
}

// opening is the work of opening a bin, as a number of examined candidates.
const opening = 600

// packing is the state of filling pools of one weight from a list of candidates.
type packing struct {
	fleet *fleet
	pools []*poolState
	// offerings are those available to the candidates, for the duals.
	offerings []netOffering
	// candidates, and how many of them have no pods left: those remain in the list until they are many.
	candidates []*packCandidate
	packed     int
	// waiting is how many pods are left. pods is how many there were when the values were computed.
	waiting, pods int
	// value of a unit of each resource, given the available offerings, and nodeValue that of a node itself, which only
	// packings with valuesNodes have; duals.go.
	value       []float64
	nodeValue   float64
	valuesNodes bool
	// rows and prices are the available offerings, for the duals; tableau is the memory for solving them.
	rows    [][]float64
	prices  []float64
	tableau simplex.Tableau
	// least is, per resource, the smallest request: with less free capacity, a bin is full.
	least quantity.Vector
	// cpus and memories are the candidates' requests of cpu and memory. They decide most cases without access to the
	// candidate itself. descending reports that cpus are sorted, which priorities or extended resources may prevent. The
	// memory of a candidate without remaining pods is allPacked.
	cpus, memories []int64
	descending     bool
	// apart are the slots of the first rules that exclude the candidates from hosts.
	apart []int
	// scarcity is the price of what the limits leave, nil if that has none. factor is that of the order; count values every
	// pod alike.
	scarcity *scarcity
	factor   float64
	count    bool
	// refined: bins are filled as well as possible; packing.go.
	refined bool
	// maxCostFactor is the largest costFactor of the candidates: no bin is worth more than its resources times this.
	maxCostFactor float64
	// sorted reports that the order was applied once. evenly sorts again before each bin and opens few bins of a
	// pattern at a time.
	sorted, evenly bool
	// inTurn: see packOrder. siblings are the batches of the spread groups, for inTurn.
	inTurn   bool
	siblings map[*pendingGroup][]*packCandidate
	// unseedable are the candidates that no bin can begin with. shut are the pools, by index, in which that is known of a
	// candidate.
	unseedable map[*packCandidate]bool
	shut       map[*packCandidate][]int
	// examined counts the candidates that were examined.
	examined int
	// ranked are the offerings of an offer, by the least price per value that they could reach.
	ranked map[*offer][]rankedOffering
	// version identifies the state of the spot shares that ranked was computed from: the sum of their versions.
	version int
}

type rankedOffering struct {
	typeOffering
	floor float64
}

// pack fills pools of the fleet from the candidates.
func (f *fleet) pack(pools []*poolState, cands []*packCandidate, offerings []netOffering, order packOrder, limit int) *attempt {
	k := &packing{fleet: f, pools: pools, offerings: offerings, candidates: uncapped(cands), evenly: order.evenly,
		refined: order.refined && refines(cands), valuesNodes: order.valuesNodes, inTurn: order.inTurn,
		factor: order.scarcity, count: order.count, unseedable: map[*packCandidate]bool{}, shut: map[*packCandidate][]int{}}
	k.run(order, limit)
	return &attempt{fleet: f, candidates: cands, value: k.value, examined: k.examined}
}

// run opens bins until no candidate can be placed. The first candidate with remaining pods is the seed of the next
// bin: it is the largest, and smaller ones may fill the rest. It stops when the number of examined candidates exceeds
// the limit.
func (k *packing) run(order packOrder, limit int) {
	if order.compare == nil {
		order.compare = func(a, b *packCandidate) int { return 0 }
	}
	for _, ps := range k.pools {
		k.beginShare(ps)
	}
	if k.inTurn {
		k.beginTurns()
	}
	for k.appraise(); k.examined <= limit && !k.fleet.budget.over(); k.appraise() {
		if !k.sorted || order.evenly {
			k.compact()
			slices.SortStableFunc(k.candidates, order.compare)
			k.sorted = true
			k.index()
		}
		seed := k.seed()
		if seed == nil {
			break
		}
		if k.inTurn {
			seed = k.nextInTurn(seed)
		}
		asked, bins := k.examined, len(k.fleet.bins)
		k.examined += opening
		best, found := k.bestBin(seed)
		goOn := found && k.fleet.commit(k.fleet.poolOf(best), best, k.pace())
		if !goOn {
			best, goOn = k.retrySeed(seed, best, found)
		}
		if !goOn {
			// No bin can begin with the seed; it may still fill bins of others.
			k.unseedable[seed] = true
		} else if best != nil {
			k.placed(best, len(k.fleet.bins)-bins)
		}
		k.fleet.budget.spend(k.examined - asked)
	}
	k.endTurns()
}

// appraise updates the values for the remaining pods: first at the start, then whenever a quarter of them is placed,
// because the rest may request other resources.
func (k *packing) appraise() {
	settled := k.value != nil && 4*k.waiting > 3*k.pods
	if settled && 8*k.packed <= len(k.candidates) {
		return
	}
	if k.compact(); len(k.candidates) == 0 || settled {
		return
	}
	k.pods, k.ranked = k.waiting, map[*offer][]rankedOffering{}
	demand := make(quantity.Vector, len(k.fleet.snap.Resources))
	k.least = make(quantity.Vector, len(demand))
	copy(k.least, k.candidates[0].pending.group.Requests)
	for _, cand := range k.candidates {
		for i, n := range k.least {
			k.least[i] = min(n, cand.pending.group.Requests.At(quantity.Resource(i)))
		}
		demand.AddScaled(cand.pending.group.Requests, int64(len(cand.left)))
	}
	var nodes forcing
	if k.valuesNodes {
		nodes = k.mostForcing()
	}
	k.value, k.nodeValue = k.duals(floats(demand, len(demand)), nodes.count)
	k.maxCostFactor = 0
	whole := 0.0
	for _, cand := range k.candidates {
		cand.value = float64((worth(cand.pending.group.Requests, k.value) + float64(k.nodeValue*nodes.part(cand))) * cand.costFactor)
		k.maxCostFactor = max(k.maxCostFactor, cand.costFactor)
		whole += float64(float64(len(cand.left)) * cand.value)
		if k.count {
			cand.value = 1
		}
	}
	if k.factor > 0 && k.scarcity == nil {
		k.scarcity = &scarcity{whole: float64(k.factor * whole), began: k.fleet.ledger.Clone()}
	}
}

// rank orders the offerings of an offer by the price per value of a node that is full of the most valuable content. No
// bin of the offering can be better than that.
func (k *packing) rank(ps *poolState, o *offer) []rankedOffering {
	if version := k.shareVersion(); version != k.version {
		clear(k.ranked)
		k.version = version
	}
	if known := k.ranked[o]; known != nil {
		return known
	}
	front := ps.frontWithin(o)
	if ps.spotShare != nil {
		front = ps.frontOf(o, ps.openList, ps.bounded())
	}
	list := make([]rankedOffering, len(front))
	for i, p := range front {
		list[i] = rankedOffering{p, k.priceOf(ps, o, p) / ((worth(o.room(p).Net[p.kind], k.value) + k.nodeValue) * k.maxCostFactor)}
		if k.count {
			list[i].floor = 0
		}
	}
	slices.SortStableFunc(list, func(a, b rankedOffering) int { return cmp.Compare(a.floor, b.floor) })
	k.ranked[o] = list
	return list
}

// scratch is reusable memory: bins for the best bin so far and the one being tried, and a row for checks.
type scratch struct {
	bins [3]bin
	row  label.Row
}

// bestBin tries the seed's offerings in all pools and returns the filled bin with the least price per value. In each
// offer it stops at an offering that could not be better even when full, because the offerings are sorted by that bound.
func (k *packing) bestBin(seed *packCandidate) (*bin, bool) {
	s := binSearch{seed: seed, best: &k.fleet.scratch.bins[0], trial: &k.fleet.scratch.bins[1], spare: &k.fleet.scratch.bins[2],
		together: len(seed.pending.rules.hostAffinities) > 0}
	for i := range seed.offers {
		in := &seed.offers[i]
		ps := k.fleet.pools[in.pool]
		if ps.full() || slices.Contains(k.shut[seed], in.pool) {
			continue
		}
		smaller := k.fitsShare(ps, seed)
		for j, o := range in.offers {
			if seed.may(in, j) > 0 {
				k.tryOffer(&s, ps, o, smaller)
			}
		}
	}
	return s.best, s.found
}

// priceOf returns what a node of the offering costs, nano-USD per hour.
func (k *packing) priceOf(ps *poolState, o *offer, p typeOffering) float64 {
	return float64(p.price+ps.nodePrice) + k.scarcity.price(ps, o, p)
}

// binSearch is the best bin found so far, with the given number of the seed's pods if that precedes the price.
type binSearch struct {
	seed            *packCandidate
	best, trial     *bin
	spare           *bin // for refine
	ratio           float64
	count           int
	found, together bool
}

// tryOffer tries the offerings of one offer. smaller excludes spot nodes that are larger than their share.
func (k *packing) tryOffer(s *binSearch, ps *poolState, o *offer, smaller bool) {
	for _, p := range k.rank(ps, o) {
		if s.found && !s.together && p.floor >= s.ratio {
			return
		}
		if smaller && ps.spotShare.Oversized(p.kind, p.class) {
			continue
		}
		if !ps.holdsNode(o, p.typeOffering) || ps.usedUp(p.typeOffering) ||
			!s.seed.pending.group.Requests.Fits(o.room(p.typeOffering).Net[p.kind]) {
			continue
		}
		k.fill(s.trial.restart(ps, p.typeOffering, o, len(k.fleet.counters.totals)), s.seed)
		if !s.begunBySeed(s.trial) {
			continue
		}
		if price := k.priceOf(ps, o, p.typeOffering); k.refined && (!s.found || price/s.trial.worth() < promising*s.ratio) {
			k.refine(s, ps, o, p.typeOffering)
		}
		ratio := k.priceOf(ps, o, p.typeOffering) / s.trial.worth()
		count := s.seed.together(s.trial.planned[0].count)
		if !s.found || count > s.count || count == s.count && ratio < s.ratio {
			s.best, s.trial = s.trial, s.best
			s.ratio, s.count, s.found = ratio, count, true
		}
	}
}

// together returns how many of the seed's pods a bin holds if that precedes the price: pods with affinity to each other
// by hostname cannot use a second bin.
func (cand *packCandidate) together(count int) int {
	if len(cand.pending.rules.hostAffinities) == 0 {
		return 0
	}
	return count
}

// fill packs the seed and then every other candidate that fits, in order, until not even the smallest request fits.
func (k *packing) fill(b *bin, seed *packCandidate) {
	k.fillWith(b, seed, true)
	for i := k.next(b, 0); i < len(k.candidates); i = k.next(b, i+1) {
		if i == seed.at || !k.candidates[i].pending.group.Requests.Fits(b.free) {
			continue
		}
		if k.fillWith(b, k.candidates[i], false); !k.least.Fits(b.free) {
			return
		}
	}
}

// fillWith adds as many of a candidate's pods as fit. Only a seed may be the first of its kind on a host.
func (k *packing) fillWith(b *bin, cand *packCandidate, seed bool) {
	count := k.fleet.fit.copies(cand.pending, &b.place, min(cand.cap, len(cand.left)), seed)
	if count == 0 || !b.room.PortsFree(b.kind, cand.pending.group.HostPorts) {
		return
	}
	row, at := k.joined(b, cand)
	if at < 0 {
		return
	}
	in := cand.in(b.pool)
	count = min(count, cand.may(in, at))
	if len(k.fleet.poolOf(b).minimums) > 0 && !k.fleet.opts.RelaxMinValues {
		count = k.whileDiverse(b, cand, row, count)
	}
	if count == 0 {
		return
	}
	copy(b.row, row)
	k.fleet.fillUp(b, cand.pending, count)
	added := podCount{candidate: cand, count: count}
	if cand.skew != nil {
		added.domain = in.domains[at]
	}
	b.planned = append(b.planned, added)
}

// joined returns the bin's row narrowed to what the candidate also accepts, for the first offer that leaves the
// offering possible, and the index of that offer; -1 if there is none.
func (k *packing) joined(b *bin, cand *packCandidate) (label.Row, int) {
	space, types := k.fleet.snap.Space, k.fleet.poolOf(b).spec.Types
	in := cand.in(b.pool)
	for i, o := range in.offers {
		if !o.types.Has(b.kind) || !slices.Contains(o.classes, b.class) || cand.may(in, i) == 0 {
			continue
		}
		if space.Contains(o.row, b.row) {
			return b.row, i
		}
		k.fleet.scratch.row = append(k.fleet.scratch.row[:0], b.row...)
		if space.And(k.fleet.scratch.row, b.row, o.row) && space.Compatible(k.fleet.scratch.row, types.Rows[b.kind]) {
			return k.fleet.scratch.row, i
		}
	}
	return nil, -1
}

// whileDiverse lowers the count until the types that can hold the bin satisfy the pool's minValues.
func (k *packing) whileDiverse(b *bin, cand *packCandidate, row label.Row, count int) int {
	ps, row := k.fleet.poolOf(b), slices.Clone(row)
	k.fleet.pinReservation(ps, b.class, row)
	ports := slices.Concat(b.ports, cand.pending.group.HostPorts)
	for ; count > 0; count /= 2 {
		used := b.used.Add(cand.pending.group.Requests.Scaled(int64(count))).Add(k.fleet.fit.sharedVolumes(cand.pending, &b.place))
		narrow := ps.narrowedToRoom(b, row, used, ports)
		if !ps.lacking(b, k.fleet.kindsFor(ps, b, narrow, used), narrow) {
			return count
		}
	}
	return 0
}

// worth returns the value of the resources in used.
func worth(used quantity.Vector, value []float64) float64 {
	var sum float64
	for i, n := range used {
		if i < len(value) {
			sum += float64(float64(n) * value[i])
		}
	}
	return sum
}

// take removes n pods from the candidate and returns them.
func (cand *packCandidate) take(n int) []*model.Pod {
	pods := cand.left[:n:n]
	cand.left = cand.left[n:]
	return pods
}
