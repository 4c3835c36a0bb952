package placement

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Local repair. Greedy filling ends with bins that hold little. The worst of them are tried in pairs: the content of
// two may cost less on one larger node, because each node has a price of its own.

// worst is how many bins of a packing are tried with each other.
const worst = 10

// merge joins pairs of bins opened since from while that reduces the cost.
func (r *run) merge(m *market, from int) {
	if m.limited() || m.nodes != model.NoLimit || m.share != nil {
		// Limits and shares were charged for both bins, and other pods were refused for them.
		return
	}
	for {
		a, b, joined := r.bestPair(m, r.worstBins(m, from))
		if joined == nil {
			return
		}
		*a = *joined
		r.bins = slices.DeleteFunc(r.bins, func(c *bin) bool { return c == b })
	}
}

// worstBins returns the bins with the highest price per value of their content, among those that may be joined.
func (r *run) worstBins(m *market, from int) []*bin {
	type priced struct {
		*bin
		ratio float64
	}
	var list []priced
	for _, b := range r.bins[from:] {
		if b.market == m && b.mayJoin() {
			list = append(list, priced{b, float64(b.lowest+m.nodePrice) / worth(b.used, m.value)})
		}
	}
	slices.SortStableFunc(list, func(a, b priced) int { return cmp.Compare(b.ratio, a.ratio) })
	bins := make([]*bin, 0, worst)
	for _, p := range list[:min(worst, len(list))] {
		bins = append(bins, p.bin)
	}
	return bins
}

// mayJoin reports whether only resources and labels restrict the other content of the bin.
func (b *bin) mayJoin() bool {
	if b.market.pool.Types.Classes[b.class].ReservationID != "" {
		return false
	}
	return !slices.ContainsFunc(b.shares, func(s share) bool {
		t := s.task
		return !t.rules.onAnyHost() || len(t.rules.hostTouched) > 0 || len(t.group.HostPorts) > 0 || len(t.group.Shared) > 0
	})
}

// bestPair returns the two bins with the largest saving when joined, nil when there are none.
func (r *run) bestPair(m *market, bins []*bin) (a, b, joined *bin) {
	var most int64
	for i, x := range bins {
		for _, y := range bins[i+1:] {
			apart := x.lowest + y.lowest + m.nodePrice
			if one := r.asOne(m, x, y); one != nil && apart-one.price > most {
				a, b, joined, most = x, y, one, apart-one.price
			}
		}
	}
	return a, b, joined
}

// asOne returns a bin with the content of both, nil when no type can hold it.
func (r *run) asOne(m *market, x, y *bin) *bin {
	row := make(label.Row, len(x.row))
	if !r.snap.Space.And(row, x.row, y.row) {
		return nil
	}
	one := *x
	one.row, one.used = row, x.used.Add(y.used)
	one.kinds = r.cut(m, r.kindsFor(m, &one, row, one.used), row)
	if one.kinds.Empty() || !r.opts.RelaxMinValues && !m.diverse(one.kinds).OK() {
		return nil
	}
	one.shares = slices.Concat(x.shares, y.shares)
	if r.crewed() && r.clashes(m, row, one.kinds, one.tasks()...) {
		return nil
	}
	for cheapest := range m.cheapestFirst(one.kinds, row) {
		one.purchase = cheapest
		break
	}
	one.lowest = one.price
	one.free = m.pool.Net[one.kind].Clone().Sub(one.used)
	return &one
}
