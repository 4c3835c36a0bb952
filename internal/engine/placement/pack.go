package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// buy opens new bins, pool by pool in order of weight. What a pool cannot take, for its limits or for want of types,
// goes on to the next.
func (r *run) buy() {
	r.names = map[string]bool{}
	for _, p := range r.snap.Pools {
		r.pools = append(r.pools, newMarket(p))
	}
	for _, m := range r.pools {
		if prospects := r.prospects(m); len(prospects) > 0 {
			r.pack(m, prospects)
		}
	}
}

// prospect is a group that may come to a market, with the alternatives under which it may.
type prospect struct {
	*work
	offers []*offer
}

// prospects lists the groups that still have pods and that some type on sale holds.
func (r *run) prospects(m *market) []*prospect {
	if m.pool.Blocked != nil || !m.pool.Valid || m.pool.Types == nil || m.nodes == 0 {
		return nil
	}
	var list []*prospect
	for _, w := range r.work {
		if len(w.left) == 0 {
			continue
		}
		if p := r.prospect(m, w); p != nil {
			list = append(list, p)
		}
	}
	return list
}

func (r *run) prospect(m *market, w *work) *prospect {
	if _, no := model.Untolerated(m.pool.Taints, w.group.Tolerations); no {
		return nil
	}
	p := &prospect{work: w}
	asks := asksSpecial(w.group)
	for _, row := range w.group.Rows {
		both := make(label.Row, r.snap.Space.Words())
		if !r.snap.Space.And(both, m.pool.Start, row) {
			continue
		}
		o := m.offer(r.snap.Space, both, asks)
		if slices.ContainsFunc(o.front, func(b purchase) bool { return w.group.Requests.Fits(m.pool.Net[b.kind]) }) {
			p.offers = append(p.offers, o)
		}
	}
	if len(p.offers) == 0 {
		return nil
	}
	return p
}

// asksSpecial reports whether the group requests an extended resource.
func asksSpecial(g *model.Group) bool {
	for r := int(quantity.Pods) + 1; r < len(g.Requests); r++ {
		if g.Requests[r] > 0 {
			return true
		}
	}
	return false
}

// pack opens bins until no prospect can be helped. The first prospect with pods left is the seed of the next bin: it is
// the largest, and everything smaller may fill up what it leaves.
func (r *run) pack(m *market, prospects []*prospect) {
	value := r.duals(m, prospects)
	for _, seed := range prospects {
		for len(seed.left) > 0 && m.nodes != 0 {
			best, found := r.bestBin(m, seed, prospects, value)
			if !found {
				break
			}
			if !r.commit(m, best) {
				break
			}
		}
	}
}

// bin is a node to be, as far as it is filled.
type bin struct {
	purchase
	row   label.Row
	free  quantity.Vector
	parts []part
	// used by the pods.
	used quantity.Vector
}

// part is how many pods of a prospect a bin holds.
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
	found := false
	for _, o := range seed.offers {
		for _, p := range o.front {
			if _, ok := m.within(m.pool.Types.Total[p.kind]); !ok || !seed.group.Requests.Fits(m.pool.Net[p.kind]) {
				continue
			}
			r.fill(m, trial.restart(m, p, o), seed, prospects)
			ratio := float64(p.price+r.opts.nodePrice()) / worth(trial.used, value)
			if !found || ratio < bestRatio {
				best, trial = trial, best
				bestRatio, found = ratio, true
			}
		}
	}
	return best, found
}

// restart empties the bin and makes it a node of the purchase.
func (b *bin) restart(m *market, p purchase, o *offer) *bin {
	b.purchase = p
	b.row = append(b.row[:0], o.row...)
	b.free = append(b.free[:0], m.pool.Net[p.kind]...)
	b.used = append(b.used[:0], b.free...)
	clear(b.used)
	b.parts = b.parts[:0]
	return b
}

// fill packs the seed and then whoever else fits, in order.
func (r *run) fill(m *market, b *bin, seed *prospect, prospects []*prospect) {
	r.fillWith(m, b, seed)
	for _, other := range prospects {
		if other != seed && len(other.left) > 0 {
			r.fillWith(m, b, other)
		}
	}
}

// fillWith adds as many of a prospect's pods as fit.
func (r *run) fillWith(m *market, b *bin, p *prospect) {
	count := min(r.capped(p.group.Requests.Times(b.free)), len(p.left))
	if count == 0 || !r.join(m, b, p) {
		return
	}
	// What fits has no request beyond what the node has, so that the trimmed vector is all of it.
	requests := p.group.Requests[:min(len(p.group.Requests), len(b.free))]
	b.free.AddScaled(requests, -int64(count))
	b.used.AddScaled(requests, int64(count))
	b.parts = append(b.parts, part{p, count})
}

// join narrows the bin's row to what the prospect accepts too, under the first alternative that leaves the purchase
// possible.
func (r *run) join(m *market, b *bin, p *prospect) bool {
	space, types := r.snap.Space, m.pool.Types
	for _, o := range p.offers {
		if !o.types.Has(b.kind) || !slices.Contains(o.classes, b.class) {
			continue
		}
		if space.Contains(o.row, b.row) {
			return true
		}
		r.scratch.row = append(r.scratch.row[:0], b.row...)
		if space.And(r.scratch.row, b.row, o.row) && space.Compatible(r.scratch.row, types.Rows[b.kind]) {
			copy(b.row, r.scratch.row)
			return true
		}
	}
	return false
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
