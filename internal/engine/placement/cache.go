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

// Cache is what consecutive runs have in common, to reduce their cost: the offers of pools, and memory for the state of
// nodes. It changes no result. The snapshots must be derived from one another (Without, Bound, With): they share the
// label space and the offers of pools. The zero value is empty. A cache that was passed to a run must not be used
// again.
type Cache struct {
	offerings map[*model.PoolSpec]*offeringCache
	types     map[*model.TypeIndex]*typeCache
	slab      []target
	nodes     []*target
	slack     []model.Slack
	sums      nodeSums
}

// offeringCache has cached facts about what a pool offers.
type offeringCache struct {
	*typeCache
	// minimums are the requirements with minValues.
	minimums []minimum
	// offers by the words of a row: groups with the same requirements see the same types.
	offers map[string]*offer
	// rooms by the part of a row that decides which daemons run.
	rooms map[string]*model.Rooms
}

// typeCache has cached facts about types, which all pools with these types share.
type typeCache struct {
	// special types are launched only for pods that request them.
	special bitset.Set
	// bySize are the types, the smallest first.
	bySize []int
	// fronts are the fronts of offers, priceLists those of sets of classes.
	fronts     map[frontKey][]typeOffering
	priceLists map[string][]typeOffering
	// reserved reports that some offering belongs to a reservation, so that availability changes within a run.
	reserved bool
}

func newTypeCache(x *model.TypeIndex) *typeCache {
	g := &typeCache{fronts: map[frontKey][]typeOffering{}, priceLists: map[string][]typeOffering{}}
	if x == nil {
		return g
	}
	g.special, g.bySize = bitset.New(x.Len()), smallestFirst(x)
	for t := range x.Catalog.Types {
		kind := &x.Catalog.Types[t]
		if kind.Special {
			g.special.Add(t)
		}
		for i := range kind.Offerings {
			g.reserved = g.reserved || kind.Offerings[i].ReservationID != ""
		}
	}
	return g
}

// offeringsOf returns the offerings of a pool.
func (c *Cache) offeringsOf(p *model.Pool) *offeringCache {
	known := c.offerings[p.PoolSpec]
	if known != nil {
		return known
	}
	if c.offerings == nil {
		c.offerings, c.types = map[*model.PoolSpec]*offeringCache{}, map[*model.TypeIndex]*typeCache{}
	}
	if c.types[p.Types] == nil {
		c.types[p.Types] = newTypeCache(p.Types)
	}
	known = &offeringCache{typeCache: c.types[p.Types], minimums: minimumsOf(p), offers: map[string]*offer{},
		rooms: map[string]*model.Rooms{}}
	c.offerings[p.PoolSpec] = known
	return known
}

// targets returns memory for the state of n nodes, for a list of them, and for their free capacity.
func (c *Cache) targets(n int) ([]target, []*target, []model.Slack) {
	if c == nil {
		return make([]target, n), make([]*target, 0, n), make([]model.Slack, 0, n)
	}
	if len(c.slab) < n {
		c.slab, c.nodes, c.slack = make([]target, n), make([]*target, 0, n), make([]model.Slack, 0, n)
	}
	return c.slab[:n], c.nodes[:0], c.slack[:0]
}

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
	return ps.cheapestOf(kinds, classes)
}

// cheapestOf lists the types with their cheapest offerings of the classes, cheapest first.
func (ps *poolState) cheapestOf(kinds bitset.Set, classes []int) iter.Seq[typeOffering] {
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
