package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// buy opens new bins, pool by pool in order of weight. What a pool cannot take, for its limits or for want of types,
// goes on to the next.
func (r *run) buy(lots []*lot) {
	for _, m := range r.pools {
		if prospects := r.prospects(m, lots); len(prospects) > 0 {
			r.pack(m, prospects)
		}
	}
}

// prospect is a lot that may come to a market, with the alternatives under which it may.
type prospect struct {
	*lot
	offers []*offer
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

func (r *run) prospect(m *market, l *lot) *prospect {
	p := &prospect{lot: l}
	for _, o := range r.offersTo(m, l.task, l.rows) {
		if slices.ContainsFunc(o.front, func(b purchase) bool { return l.group.Requests.Fits(m.pool.Net[b.kind]) }) {
			p.offers = append(p.offers, o)
		}
	}
	if len(p.offers) == 0 {
		return nil
	}
	return p
}

// pack opens bins until no prospect can be helped. The first prospect with pods left is the seed of the next bin: it is
// the largest, and everything smaller may fill up what it leaves.
func (r *run) pack(m *market, prospects []*prospect) {
	value := r.duals(m, prospects)
	for _, seed := range prospects {
		for len(seed.left) > 0 && m.nodes != 0 {
			best, found := r.bestBin(m, seed, prospects, value)
			if !found || !r.commit(m, best) {
				break
			}
		}
	}
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
}

// part is how many pods of a lot a bin could hold.
type part struct {
	*prospect
	count int
}

// scratch is memory that filling a bin uses again and again: the best bin so far and the one being tried.
type scratch struct {
	bins [2]bin
	row  label.Row
}

// bestBin tries the seed's purchases and returns the filled bin with the least price per value.
func (r *run) bestBin(m *market, seed *prospect, prospects []*prospect, value []float64) (*bin, bool) {
	best, trial := &r.scratch.bins[0], &r.scratch.bins[1]
	var bestRatio float64
	bestCount, found := 0, false
	for _, o := range seed.offers {
		for _, p := range o.front {
			if _, ok := m.within(m.pool.Types.Total[p.kind]); !ok || !seed.group.Requests.Fits(m.pool.Net[p.kind]) {
				continue
			}
			r.fill(m, trial.restart(m, p, o), seed, prospects)
			if len(trial.parts) == 0 || trial.parts[0].prospect != seed {
				continue
			}
			ratio := float64(p.price+r.opts.nodePrice()) / worth(trial.used, value)
			count := seed.together(trial.parts[0].count)
			if !found || count > bestCount || count == bestCount && ratio < bestRatio {
				best, trial = trial, best
				bestRatio, bestCount, found = ratio, count, true
			}
		}
	}
	return best, found
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
func (b *bin) restart(m *market, p purchase, o *offer) *bin {
	b.purchase, b.market = p, m
	b.row = append(b.row[:0], o.row...)
	b.free = append(b.free[:0], m.pool.Net[p.kind]...)
	b.used = append(b.used[:0], b.free...)
	clear(b.used)
	b.parts, b.tally, b.ports, b.claims = b.parts[:0], b.tally[:0], nil, nil
	return b
}

// fill packs the seed and then whoever else fits, in order.
func (r *run) fill(m *market, b *bin, seed *prospect, prospects []*prospect) {
	r.fillWith(m, b, seed, true)
	for _, other := range prospects {
		if other != seed && len(other.left) > 0 {
			r.fillWith(m, b, other, false)
		}
	}
}

// fillWith adds as many of a prospect's pods as fit. Only a seed may be the first of its kind on a host.
func (r *run) fillWith(m *market, b *bin, p *prospect, seed bool) {
	fit := r.fitsPlace(p.task, &b.place, seed)
	count := min(fit.Count, len(p.left))
	if count == 0 {
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
	r.put(p.task, &b.place, count)
	b.used.AddScaled(p.group.Requests[:min(len(p.group.Requests), len(b.used))], int64(count))
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
	for ; count > 0; count /= 2 {
		used := b.used.Add(p.group.Requests.Scaled(int64(count)))
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
