package placement

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// buy opens new bins, pool by pool in order of weight, among equals by price. What a pool cannot take, for its limits or
// for want of types, goes on to the next.
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

// prospect is a lot that may come to a market, with the alternatives under which it may.
type prospect struct {
	*lot
	offers []*offer
	// unit is what one pod is worth in a bin, at the values of the moment; dear is how much dearer than its resources
	// it proved to be in earlier packings, 1 before the first.
	unit, dear float64
	// at is its index in the packing's list.
	at int
	// perHost is how many of its pods the rules by hostname let onto an empty node; 0 before it was asked for.
	perHost int
}

// prospects lists the lots that still have pods and that some type on sale holds: those that force nodes first, because
// whatever else there is can fill those up.
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

// holds reports whether a node of the type has room for a pod of the group beside the daemons.
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

// opening a bin costs about as much as looking at so many prospects.
const opening = 600

// packing is one market being filled from a list of prospects.
type packing struct {
	*market
	// prospects, and how many of them have no pods left: those stay in the list until they are many.
	prospects []*prospect
	packed    int
	// waiting is how many pods are left, pods how many there were when the values were found.
	waiting, pods int
	// value of a unit of each resource, given what can be bought.
	value []float64
	// rows and prices are what can be bought, for the duals, and tableau is where those are found.
	rows    [][]float64
	prices  []float64
	tableau tableau
	// least is, resource by resource, the smallest request: with less free, a bin is full.
	least quantity.Vector
	// cpus and memories are the prospects' requests of cpu and memory, which decide most cases without a look at the
	// prospect itself; cpus are descending unless priorities or extended resources stand before them. The memory of who
	// has no pods left is allPacked.
	cpus, memories []int64
	descending     bool
	// apart are the slots of the first rules that keep the prospects off hosts.
	apart []int
	// dearest of the prospects: no bin is worth more than its resources times this.
	dearest float64
	// sorted by the order, once; evenly sorts again before each bin and opens few bins of a pattern at a time.
	sorted, evenly bool
	// inTurn: see packOrder. siblings are the lots of the tasks that are spread then.
	inTurn   bool
	siblings map[*task][]*prospect
	// barren are the prospects that no bin can begin with.
	barren map[*prospect]bool
	// asked counts the prospects that were looked at.
	asked int
	// ranked are the purchases of an offer, by the least price per value that they could ever reach.
	ranked map[*offer][]rankedPurchase
	// looked is the look at the shares of spot capacity that the ranked purchases go by.
	looked int
}

type rankedPurchase struct {
	purchase
	floor float64
}

// pack opens bins until no prospect can be helped. The first prospect with pods left is the seed of the next bin: it is
// the largest, and everything smaller may fill up what it leaves. It returns how many prospects were looked at,
// and gives up when they are more than the limit.
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
			// No bin can begin with it; it may still fill up others'.
			k.barren[seed] = true
		} else if best != nil {
			k.took(best, len(r.bins)-bins)
		}
		r.worked(k.asked - asked)
	}
	k.tookTurns()
	return k.asked
}

// appraise brings the values up to date with what is left to be packed: at first, and whenever a quarter of it is gone,
// because what is left may want other resources than what there was.
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

// rank orders the purchases of an offer by the price per value of a node that is full of what is worth most: no bin of
// the purchase can be better than that.
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

// bin is a node to be, as far as it is filled.
type bin struct {
	place
	purchase
	market *market
	row    label.Row
	// parts are what it may be filled with; once it is committed, shares say who came.
	parts []part
	// used by the pods; kinds that can hold them, once the bin is committed.
	used  quantity.Vector
	kinds bitset.Set
	// lowest is the price of the cheapest node that it may become.
	lowest int64
	// holds is the reservation of which the bin took one node, charged what it took from the limits of its pool.
	holds   string
	charged quantity.Vector
}

// part is how many pods of a lot a bin could hold.
type part struct {
	*prospect
	count int
}

// scratch is memory that is used again and again: to fill a bin, the best so far and the one being tried; to ask what a
// node of a row answers; to look up who is like a bin.
type scratch struct {
	bins   [2]bin
	row    label.Row
	domain domain
	key    []byte
}

// bestBin tries the seed's purchases and returns the filled bin with the least price per value. A purchase that could
// not be better when it is full need not be tried, nor any behind it.
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

// worth is what the parts of the bin are worth.
func (b *bin) worth() float64 {
	var sum float64
	for _, p := range b.parts {
		sum += float64(float64(p.count) * p.unit)
	}
	return sum
}

// together is how many of the seed's pods a bin holds, where that comes before the price: pods that want to be on one
// host have no second bin to go to.
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

// fill packs the seed and then whoever else fits, in order, until not even the least of all requests fits.
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

// add puts pods of the prospect into the bin.
func (r *run) add(b *bin, p *prospect, count int) {
	r.fillUp(b, p.task, count)
	b.parts = append(b.parts, part{p, count})
}

// joined is the bin's row narrowed to what the prospect accepts too, under the first alternative that leaves the
// purchase possible.
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

// whileDiverse lowers the count until the types that hold the bin satisfy the pool's minValues.
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

// worth is the value of what a bin holds.
func worth(used quantity.Vector, value []float64) float64 {
	var sum float64
	for i, n := range used {
		if i < len(value) {
			sum += float64(float64(n) * value[i])
		}
	}
	return sum
}
