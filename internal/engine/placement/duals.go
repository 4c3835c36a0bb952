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
	value := k.tableau.Maximize(demand, k.rows, k.prices)
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
