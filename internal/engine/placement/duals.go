package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// duals prices the resources that the candidates request together: value[r] is the value of a unit of resource r, in
// nano-USD per hour, when the cheapest mix of nodes is launched for all of it. The values solve
//
//	maximize    sum over r of value[r] * demand[r]
//	subject to  for every offering, sum over r of value[r] * net[r] <= price
//
// which is the dual of launching fractions of nodes. So the value of a bin's content is at most its price, and the best
// bin is the one whose value is closest to it.
func (k *packing) duals(demand []float64) []float64 {
	if k.rows == nil {
		k.rows, k.prices = make([][]float64, len(k.offerings)), make([]float64, len(k.offerings))
		for i, b := range k.offerings {
			k.rows[i], k.prices[i] = floats(b.net, len(demand)), float64(b.price)
		}
	}
	value := k.tableau.maximize(demand, k.rows, k.prices)
	for i := range value {
		// A resource in abundance has no value for the whole, but of two bins the fuller one is better.
		if value[i] == 0 && demand[i] > 0 {
			value[i] = 1e-9 / demand[i]
		}
	}
	return value
}

// netOffering is an offering with the room for pods on its node. Its price includes that of the node.
type netOffering struct {
	typeOffering
	net quantity.Vector
}

// offeringsFor lists the offerings available to any of the candidates. It omits those that are no larger and no cheaper
// than another one: their constraint follows from the other's.
func (f *fleet) offeringsFor(cands []*packCandidate) []netOffering {
	offers, seen := map[*offer]bool{}, map[typeOffering][]*model.Room{}
	var all []netOffering
	for _, cand := range cands {
		for _, in := range cand.offers {
			for _, o := range in.offers {
				if offers[o] {
					continue
				}
				offers[o] = true
				for _, b := range o.front {
					room := o.room(b)
					if b.price += f.pools[in.pool].nodePrice; !slices.Contains(seen[b], room) {
						seen[b] = append(seen[b], room)
						all = append(all, netOffering{b, room.Net[b.kind]})
					}
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b netOffering) int { return a.compare(b.typeOffering) })
	undominated := make([]netOffering, 0, len(all))
	for _, p := range all {
		if !slices.ContainsFunc(undominated, func(q netOffering) bool { return covers(q.net, p.net) }) {
			undominated = append(undominated, p)
		}
	}
	return undominated
}

func floats(v quantity.Vector, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(v.At(quantity.Resource(i)))
	}
	return out
}

// maximize solves max c.x subject to rows.x <= limit, x >= 0, all limits >= 0, by the simplex method on the condensed
// tableau with Bland's rule, which cannot cycle. There are few variables (resources) and few rows (offerings). Every
// product is rounded before it is added (by explicit conversions), so that all processors compute the same bits.
func (t *tableau) maximize(c []float64, rows [][]float64, limit []float64) []float64 {
	t.begin(c, rows, limit)
	for range 50 * (len(c) + 1) {
		column, found := t.entering()
		if !found {
			break
		}
		row, bounded := t.leaving(column)
		if !bounded {
			break
		}
		t.pivot(row, column)
	}
	return t.solution(len(c))
}

// tableau holds cell[i][j] for basic variable i and non-basic j. The last column is the right-hand side, the last row
// the objective. It is reusable: the memory of its cells is kept.
type tableau struct {
	cell         [][]float64
	basic, other []int
	scale        []float64
	slab         []float64
}

func (t *tableau) begin(c []float64, rows [][]float64, limit []float64) {
	n := len(c)
	t.cell, t.basic, t.other, t.scale = t.cell[:0], t.basic[:0], t.other[:0], make([]float64, n)
	if size := (n + 1) * (len(rows) + 1); len(t.slab) < size {
		t.slab = make([]float64, size)
	}
	line := func(i int) []float64 { return t.slab[i*(n+1) : (i+1)*(n+1)] }
	// Resources differ by nine orders of magnitude (millicores, bytes): scale each column to a largest entry of one.
	for j := range n {
		for _, row := range rows {
			t.scale[j] = max(t.scale[j], row[j])
		}
		if t.scale[j] == 0 {
			t.scale[j] = 1
		}
		t.other = append(t.other, j)
	}
	for i, row := range rows {
		cells := line(i)
		for j := range n {
			cells[j] = max(0, row[j]) / t.scale[j]
		}
		cells[n] = limit[i]
		t.cell = append(t.cell, cells)
		t.basic = append(t.basic, n+i)
	}
	objective := line(len(rows))
	clear(objective)
	var top float64
	for j := range n {
		objective[j] = -c[j] / t.scale[j]
		top = max(top, -objective[j])
	}
	for j := range n {
		objective[j] /= max(top, 1e-300)
	}
	t.cell = append(t.cell, objective)
}

const tiny = 1e-12

func (t *tableau) entering() (int, bool) {
	objective := t.cell[len(t.cell)-1]
	best, found := 0, false
	for j := range t.other {
		if objective[j] < -tiny && (!found || t.other[j] < t.other[best]) {
			best, found = j, true
		}
	}
	return best, found
}

func (t *tableau) leaving(column int) (int, bool) {
	n := len(t.other)
	best, found := 0, false
	var bestRatio float64
	for i := range t.basic {
		if t.cell[i][column] <= tiny {
			continue
		}
		ratio := t.cell[i][n] / t.cell[i][column]
		if !found || ratio < bestRatio || ratio == bestRatio && t.basic[i] < t.basic[best] {
			best, bestRatio, found = i, ratio, true
		}
	}
	return best, found
}

func (t *tableau) pivot(row, column int) {
	p := t.cell[row][column]
	for j := range t.cell[row] {
		if j != column {
			t.cell[row][j] /= p
		}
	}
	for i := range t.cell {
		if i == row {
			continue
		}
		f := t.cell[i][column]
		for j := range t.cell[i] {
			if j != column {
				t.cell[i][j] -= float64(f * t.cell[row][j])
			}
		}
		t.cell[i][column] = -f / p
	}
	t.cell[row][column] = 1 / p
	t.basic[row], t.other[column] = t.other[column], t.basic[row]
}

func (t *tableau) solution(n int) []float64 {
	x := make([]float64, n)
	for i, v := range t.basic {
		if v < n {
			x[v] = t.cell[i][len(t.other)] / t.scale[v]
		}
	}
	return x
}
