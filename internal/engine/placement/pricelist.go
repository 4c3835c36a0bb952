package placement

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// priced lists the types with their cheapest offerings that the row admits, cheapest first.
func (ps *poolState) priced(kinds bitset.Set, row label.Row) []typeOffering {
	return slices.AppendSeq(make([]typeOffering, 0, kinds.Count()), ps.cheapestFirst(kinds, row))
}

// cheapestFirst iterates over the result of priced.
func (ps *poolState) cheapestFirst(kinds bitset.Set, row label.Row) iter.Seq[typeOffering] {
	_, classes := ps.offered(row)
	if len(classes) == 0 {
		_, classes = ps.spec.Types.Offered(row)
	}
	return func(yield func(typeOffering) bool) {
		for _, p := range ps.priceList(classes) {
			if kinds.Has(p.kind) && !yield(p) {
				return
			}
		}
	}
}

// priceList returns every type available in one of the classes, cheapest first. It is computed once for each set of
// classes.
func (ps *poolState) priceList(classes []int) []typeOffering {
	key := make([]byte, 0, 2*len(classes))
	for _, c := range classes {
		key = binary.AppendUvarint(key, uint64(c))
	}
	if known := ps.priceLists[string(key)]; known != nil {
		return known
	}
	x := ps.spec.Types
	list := make([]typeOffering, 0, x.Len())
	for t := range x.Len() {
		if class := x.Cheapest(t, classes); class >= 0 {
			list = append(list, typeOffering{kind: t, class: class, price: x.Classes[class].Price[t]})
		}
	}
	sortOfferings(list)
	ps.priceLists[string(key)] = list
	return list
}

// lowestPrice returns the price of the cheapest node that a bin of the row and the types may become.
func (ps *poolState) lowestPrice(kinds bitset.Set, row label.Row) int64 {
	_, classes := ps.offered(row)
	for _, p := range ps.priceList(classes) {
		if kinds.Has(p.kind) {
			return p.price
		}
	}
	return 0
}

func sortOfferings(list []typeOffering) {
	slices.SortFunc(list, typeOffering.compare)
}

// compare orders offerings by price.
func (p typeOffering) compare(q typeOffering) int {
	if p.price != q.price {
		return cmp.Compare(p.price, q.price) // nearly always
	}
	return cmp.Or(cmp.Compare(p.kind, q.kind), cmp.Compare(p.class, q.class))
}
