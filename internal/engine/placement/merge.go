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
func (l *launcher) merge(ps *poolState, from int, value []float64) {
	if ps.limited() || len(ps.counting) > 0 || ps.nodes != model.NoLimit || ps.spotShare != nil {
		// Limits and shares were charged for both bins, and other pods were refused for them.
		return
	}
	for {
		a, b, joined := l.bestPair(ps, l.worstBins(ps, from, value))
		if joined == nil {
			return
		}
		*a = *joined
		l.fleet.bins = slices.DeleteFunc(l.fleet.bins, func(c *bin) bool { return c == b })
	}
}

// worstBins returns the bins with the highest price per value of their content, among those that may be joined.
func (l *launcher) worstBins(ps *poolState, from int, value []float64) []*bin {
	type priced struct {
		bin   *bin
		ratio float64
	}
	var list []priced
	for _, b := range l.fleet.bins[from:] {
		if b.pool == ps.index && b.mayJoin(ps) {
			list = append(list, priced{b, float64(b.lowest+ps.nodePrice) / worth(b.used, value)})
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
func (b *bin) mayJoin(ps *poolState) bool {
	if ps.spec.Types.Classes[b.class].ReservationID != "" {
		return false
	}
	return !slices.ContainsFunc(b.placed, func(s placedPods) bool {
		pg := s.pending
		return !pg.rules.onAnyHost() || len(pg.rules.hostTouched) > 0 || len(pg.group.HostPorts) > 0 || len(pg.group.Shared) > 0
	})
}

// bestPair returns the two bins with the largest saving when joined, nil when there are none.
func (l *launcher) bestPair(ps *poolState, bins []*bin) (a, b, joined *bin) {
	var most int64
	for i, x := range bins {
		for _, y := range bins[i+1:] {
			apart := x.lowest + y.lowest + ps.nodePrice
			if one := l.asOne(ps, x, y); one != nil && apart-one.price > most {
				a, b, joined, most = x, y, one, apart-one.price
			}
		}
	}
	return a, b, joined
}

// asOne returns a bin with the content of both, nil when no type can hold it.
func (l *launcher) asOne(ps *poolState, x, y *bin) *bin {
	row := make(label.Row, len(x.row))
	if !l.snap.Space.And(row, x.row, y.row) {
		return nil
	}
	one := *x
	one.row, one.used = row, x.used.Add(y.used)
	one.kinds = l.fleet.cut(ps, l.fleet.kindsFor(ps, &one, row, one.used), row)
	if one.kinds.Empty() || !l.opts.RelaxMinValues && !ps.diverse(one.kinds).OK() {
		return nil
	}
	one.placed = slices.Concat(x.placed, y.placed)
	if l.fleet.anyDaemons() && l.fleet.daemonsClash(ps, row, one.kinds, one.groups()...) {
		return nil
	}
	for cheapest := range ps.cheapestFirst(one.kinds, row) {
		one.typeOffering = cheapest
		break
	}
	one.lowest = one.price
	one.free = ps.possibleRooms(row).Least(one.kind).Sub(one.used)
	return &one
}
