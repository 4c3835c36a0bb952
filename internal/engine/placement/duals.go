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
//
// Rules by hostname may force a number of nodes. Then a node itself is a resource too, of which each offering has one, and
// the pods of which a node may hold only so many share its value. Without it, pods that could fill the small nodes that
// are forced would fill large nodes instead.
func (k *packing) duals(demand []float64, nodes float64) (value []float64, nodeValue float64) {
	n := len(demand)
	if k.rows == nil {
		k.rows, k.prices = make([][]float64, len(k.offerings)), make([]float64, len(k.offerings))
		for i, b := range k.offerings {
			k.rows[i], k.prices[i] = append(floats(b.net, n), 1), float64(b.price)
		}
	}
	if nodes > 1 {
		both := k.tableau.Maximize(append(demand[:n:n], nodes), k.rows, k.prices)
		value, nodeValue = both[:n], both[n]
	}
	if nodeValue == 0 {
		value = k.tableau.Maximize(demand, k.rows, k.prices)
	}
	for i := range value {
		// A resource in abundance has no value for the whole, but of two bins the fuller one is better.
		if value[i] == 0 && demand[i] > 0 {
			value[i] = 1e-9 / demand[i]
		}
	}
	return value, nodeValue
}

// forcing are the candidates that force the most nodes, and how many: those that exclude each other from a node by the
// rule of the slot, or one that is limited on each node.
type forcing struct {
	slot  int
	alone *packCandidate
	count float64
}

func (k *packing) mostForcing() forcing {
	var best forcing
	slots := map[int]float64{}
	for _, cand := range k.candidates {
		if cand.pending.rules.hostApartSelf {
			slot := cand.pending.rules.firstApart()
			if slots[slot] += float64(len(cand.left)); slots[slot] > best.count {
				best = forcing{slot: slot, count: slots[slot]}
			}
		} else if nodes := float64(cand.forced()); nodes > best.count {
			best = forcing{alone: cand, count: nodes}
		}
	}
	return best
}

// part returns the part of a node's value that a pod of the candidate has.
func (f forcing) part(cand *packCandidate) float64 {
	switch {
	case f.alone != nil && cand == f.alone:
		return 1 / float64(cand.perHost)
	case f.alone == nil && f.count > 0 && cand.pending.rules.hostApartSelf && cand.pending.rules.firstApart() == f.slot:
		return 1
	}
	return 0
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
