package placement

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
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

// priceList returns every type available in one of the classes, cheapest first; of types of equal price, such as
// machines that are paid for already, the smallest first. It is computed once for each set of classes.
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
	for _, t := range ps.bySize {
		if class := x.Cheapest(t, classes); class >= 0 {
			list = append(list, typeOffering{kind: t, class: class, price: x.Classes[class].Price[t]})
		}
	}
	slices.SortStableFunc(list, func(p, q typeOffering) int { return cmp.Compare(p.price, q.price) })
	ps.priceLists[string(key)] = list
	return list
}

// smallestFirst returns the numbers of the types by their size, then by their names.
func smallestFirst(x *model.TypeIndex) []int {
	order := make([]int, x.Len())
	for t := range order {
		order[t] = t
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(compareSize(x.Total[a], x.Total[b]), cmp.Compare(a, b)) })
	return order
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
