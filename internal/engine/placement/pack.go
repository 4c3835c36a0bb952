package placement

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// buy opens new bins, pool by pool in order of weight, among equals by price. Pods that a pool cannot take, because of
// its limits or types, go to the next pool.
func (r *run) buy(lots []*lot) {
	for _, tier := range r.tiers() {
		for _, g := range r.route(tier, lots) {
			from := len(r.bins)
			if prospects := r.prospects(g.market, g.lots); len(prospects) > 0 {
				r.packBest(g.market, prospects)
			}
			r.noteRanks(g.market, lots, from)
		}
	}
}

// prospect is a lot that may be packed in a pool, with the offers that permit it.
type prospect struct {
	*lot
	offers []*offer
	// unit is the value of one pod in a bin, at the current resource values. dear is the factor by which it proved more
	// expensive than its resources in earlier packings, 1 before the first.
	unit, dear float64
	// at is its index in the packing's list.
	at int
	// perHost is how many of its pods the rules by hostname permit on an empty node; 0 before it is computed.
	perHost int
}

// prospects lists the lots that still have pods and that some available type can hold.
func (r *run) prospects(m *market, lots []*lot) []*prospect {
	var list []*prospect
	for _, l := range lots {
		if len(l.left) == 0 {
			continue
		}
		if p := r.prospect(m, l); p != nil {
			list = append(list, p)
		}
	}
	return list
}

// holds reports whether a node of the type can hold a pod of the group in addition to the daemons.
func (m *market) holds(g *model.Group, kind int) bool {
	return g.Requests.Fits(m.pool.Net[kind]) && m.pool.PortsFree(kind, g.HostPorts)
}

func (r *run) prospect(m *market, l *lot) *prospect {
	if shuns(l.task, m.crew) {
		return nil
	}
	p := &prospect{lot: l, dear: 1}
	for _, o := range r.offersTo(m, l.task, l.rows) {
		if slices.ContainsFunc(o.front, func(b purchase) bool { return m.holds(l.group, b.kind) }) {
			p.offers = append(p.offers, o)
		}
	}
	if len(p.offers) == 0 {
		return nil
	}
	return p
}

// opening is the work of opening a bin, as a number of examined prospects.
const opening = 600

// packing is the state of filling one market from a list of prospects.
type packing struct {
	*market
	// prospects, and how many of them have no pods left: those remain in the list until they are many.
	prospects []*prospect
	packed    int
	// waiting is how many pods are left. pods is how many there were when the values were computed.
	waiting, pods int
	// value of a unit of each resource, given the available purchases.
	value []float64
	// rows and prices are the available purchases, for the duals; tableau is the memory for solving them.
	rows    [][]float64
	prices  []float64
	tableau tableau
	// least is, per resource, the smallest request: with less free capacity, a bin is full.
	least quantity.Vector
	// cpus and memories are the prospects' requests of cpu and memory. They decide most cases without access to the
	// prospect itself. descending reports that cpus are sorted, which priorities or extended resources may prevent. The
	// memory of a prospect without remaining pods is allPacked.
	cpus, memories []int64
	descending     bool
	// apart are the slots of the first rules that exclude the prospects from hosts.
	apart []int
	// dearest is the largest dear of the prospects: no bin is worth more than its resources times this.
	dearest float64
	// sorted reports that the order was applied once. evenly sorts again before each bin and opens few bins of a
	// pattern at a time.
	sorted, evenly bool
	// inTurn: see packOrder. siblings are the lots of the spread tasks, for inTurn.
	inTurn   bool
	siblings map[*task][]*prospect
	// barren are the prospects that no bin can begin with.
	barren map[*prospect]bool
	// asked counts the examined prospects.
	asked int
	// ranked are the purchases of an offer, by the least price per value that they could reach.
	ranked map[*offer][]rankedPurchase
	// looked identifies the state of the spot shares that ranked was computed from.
	looked int
}

type rankedPurchase struct {
	purchase
	floor float64
}

// pack opens bins until no prospect can be placed. The first prospect with remaining pods is the seed of the next bin:
// it is the largest, and smaller ones may fill the rest. It returns the number of examined prospects, and stops when
// that exceeds the limit.
func (r *run) pack(m *market, prospects []*prospect, order packOrder, limit int) int {
	k := &packing{market: m, prospects: slices.Clone(prospects), evenly: order.evenly, inTurn: order.inTurn, barren: map[*prospect]bool{}}
	if order.compare == nil {
		order.compare = func(a, b *prospect) int { return 0 }
	}
	m.share.begin(k.prospects)
	if k.inTurn {
		k.takeTurns()
	}
	for r.appraise(k); m.nodes != 0 && k.asked <= limit && !r.over(); r.appraise(k) {
		if !k.sorted || order.evenly {
			k.compact()
			slices.SortStableFunc(k.prospects, order.compare)
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
		asked, bins := k.asked, len(r.bins)
		k.asked += opening
		best, found := r.bestBin(k, seed)
		goOn := found && r.commit(m, best, k.pace())
		if !goOn {
			best, goOn = r.shareOut(k, seed, found)
		}
		if !goOn {
			// No bin can begin with the seed; it may still fill bins of others.
			k.barren[seed] = true
		} else if best != nil {
			k.took(best, len(r.bins)-bins)
		}
		r.worked(k.asked - asked)
	}
	k.tookTurns()
	return k.asked
}

// appraise updates the values for the remaining pods: first at the start, then whenever a quarter of them is placed,
// because the rest may request other resources.
func (r *run) appraise(k *packing) {
	settled := k.value != nil && 4*k.waiting > 3*k.pods
	if settled && 8*k.packed <= len(k.prospects) {
		return
	}
	if k.compact(); len(k.prospects) == 0 || settled {
		return
	}
	k.pods, k.ranked = k.waiting, map[*offer][]rankedPurchase{}
	demand := make(quantity.Vector, len(r.snap.Resources))
	k.least = make(quantity.Vector, len(demand))
	copy(k.least, k.prospects[0].group.Requests)
	for _, p := range k.prospects {
		for i, n := range k.least {
			k.least[i] = min(n, p.group.Requests.At(quantity.Resource(i)))
		}
		demand.AddScaled(p.group.Requests, int64(len(p.left)))
	}
	k.value = k.duals(floats(demand, len(demand)))
	k.dearest, k.market.value = 0, k.value
	for _, p := range k.prospects {
		p.unit = float64(worth(p.group.Requests, k.value) * p.dear)
		k.dearest = max(k.dearest, p.dear)
	}
}

// rank orders the purchases of an offer by the price per value of a node that is full of the most valuable content. No
// bin of the purchase can be better than that.
func (r *run) rank(k *packing, o *offer) []rankedPurchase {
	if k.share != nil && k.looked != k.share.looked {
		clear(k.ranked)
		k.looked = k.share.looked
	}
	if known := k.ranked[o]; known != nil {
		return known
	}
	front := o.front
	if k.share != nil {
		front = k.frontOf(o, k.openList)
	}
	list := make([]rankedPurchase, len(front))
	for i, p := range front {
		list[i] = rankedPurchase{p, float64(p.price+k.nodePrice) / (worth(k.pool.Net[p.kind], k.value) * k.dearest)}
	}
	slices.SortStableFunc(list, func(a, b rankedPurchase) int { return cmp.Compare(a.floor, b.floor) })
	k.ranked[o] = list
	return list
}

// bin is a future node with its content so far.
type bin struct {
	place
	purchase
	market *market
	row    label.Row
	// parts are the pods that it may be filled with. Once it is committed, shares are the pods placed in it.
	parts []part
	// used by the pods; kinds that can hold them, once the bin is committed.
	used  quantity.Vector
	kinds bitset.Set
	// lowest is the price of the cheapest node that it may become.
	lowest int64
	// holds is the reservation that the bin took one node from. charged is what it took from the limits of its pool.
	holds   string
	charged quantity.Vector
}

// part is how many pods of a prospect a bin could hold.
type part struct {
	*prospect
	count int
}

// scratch is reusable memory: bins for the best bin so far and the one being tried, row and domain for checks of nodes,
// key for look-ups of similar bins.
type scratch struct {
	bins   [2]bin
	row    label.Row
	domain domain
	key    []byte
}

// bestBin tries the seed's purchases and returns the filled bin with the least price per value. It stops at a purchase
// that could not be better even when full, because the purchases are sorted by that bound.
func (r *run) bestBin(k *packing, seed *prospect) (*bin, bool) {
	best, trial := &r.scratch.bins[0], &r.scratch.bins[1]
	var bestRatio float64
	bestCount, found := 0, false
	together, smaller := len(seed.rules.hostAffinities) > 0, r.fitsShare(k, seed)
	for _, o := range seed.offers {
		for _, p := range r.rank(k, o) {
			if found && !together && p.floor >= bestRatio {
				break
			}
			if smaller && k.share.oversized(k.market, p.purchase) {
				continue
			}
			if _, ok := k.within(k.pool.Types.Total[p.kind]); !ok || k.usedUp(p.purchase) || !seed.group.Requests.Fits(k.pool.Net[p.kind]) {
				continue
			}
			r.fill(k, trial.restart(k.market, p.purchase, o, len(r.counters.totals)), seed)
			if len(trial.parts) == 0 || trial.parts[0].prospect != seed {
				continue
			}
			ratio := float64(p.price+k.nodePrice) / trial.worth()
			count := seed.together(trial.parts[0].count)
			if !found || count > bestCount || count == bestCount && ratio < bestRatio {
				best, trial = trial, best
				bestRatio, bestCount, found = ratio, count, true
			}
		}
	}
	return best, found
}

// worth returns the value of the bin's parts.
func (b *bin) worth() float64 {
	var sum float64
	for _, p := range b.parts {
		sum += float64(float64(p.count) * p.unit)
	}
	return sum
}

// together returns how many of the seed's pods a bin holds if that precedes the price: pods with affinity to each other
// by hostname cannot use a second bin.
func (p *prospect) together(count int) int {
	if len(p.rules.hostAffinities) == 0 {
		return 0
	}
	return count
}

// restart empties the bin and makes it a node of the purchase.
func (b *bin) restart(m *market, p purchase, o *offer, slots int) *bin {
	b.purchase, b.market = p, m
	b.row = append(b.row[:0], o.row...)
	b.free = append(b.free[:0], m.pool.Net[p.kind]...)
	b.used = append(b.used[:0], b.free...)
	clear(b.used)
	b.parts, b.ports, b.claims = b.parts[:0], nil, nil
	b.holds, b.charged = "", nil
	b.tally.restart(slots)
	b.tally.board(m.crew)
	return b
}

// fill packs the seed and then every other prospect that fits, in order, until not even the smallest request fits.
func (r *run) fill(k *packing, b *bin, seed *prospect) {
	r.fillWith(k.market, b, seed, true)
	for i := k.next(b, 0); i < len(k.prospects); i = k.next(b, i+1) {
		if i == seed.at || !k.prospects[i].group.Requests.Fits(b.free) {
			continue
		}
		if r.fillWith(k.market, b, k.prospects[i], false); !k.least.Fits(b.free) {
			return
		}
	}
}

// fillWith adds as many of a prospect's pods as fit. Only a seed may be the first of its kind on a host.
func (r *run) fillWith(m *market, b *bin, p *prospect, seed bool) {
	count := r.copies(p.task, &b.place, len(p.left), seed)
	if count == 0 || !m.pool.PortsFree(b.kind, p.group.HostPorts) {
		return
	}
	row, ok := r.joined(m, b, p)
	if !ok {
		return
	}
	if len(m.minimums) > 0 && !r.opts.RelaxMinValues {
		count = r.whileDiverse(m, b, p, row, count)
	}
	if count == 0 {
		return
	}
	copy(b.row, row)
	r.add(b, p, count)
}

// add adds pods of the prospect to the bin.
func (r *run) add(b *bin, p *prospect, count int) {
	r.fillUp(b, p.task, count)
	b.parts = append(b.parts, part{p, count})
}

// joined returns the bin's row narrowed to what the prospect also accepts, for the first offer that leaves the purchase
// possible.
func (r *run) joined(m *market, b *bin, p *prospect) (label.Row, bool) {
	space, types := r.snap.Space, m.pool.Types
	for _, o := range p.offers {
		if !o.types.Has(b.kind) || !slices.Contains(o.classes, b.class) {
			continue
		}
		if space.Contains(o.row, b.row) {
			return b.row, true
		}
		r.scratch.row = append(r.scratch.row[:0], b.row...)
		if space.And(r.scratch.row, b.row, o.row) && space.Compatible(r.scratch.row, types.Rows[b.kind]) {
			return r.scratch.row, true
		}
	}
	return nil, false
}

// whileDiverse lowers the count until the types that can hold the bin satisfy the pool's minValues.
func (r *run) whileDiverse(m *market, b *bin, p *prospect, row label.Row, count int) int {
	if c := &m.pool.Types.Classes[b.class]; c.ReservationID != "" {
		row = slices.Clone(row)
		c.Pin(r.snap.Space, row)
	}
	for ; count > 0; count /= 2 {
		used := b.used.Add(p.group.Requests.Scaled(int64(count))).Add(r.sharedVolumes(p.task, &b.place))
		if m.diverse(r.kindsFor(m, b, row, used)).OK() {
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
