package placement

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// market is a pool as a place to buy bins: what is left of its limits, and what was found out about its types.
type market struct {
	pool *model.Pool
	// special types are bought only for who asks for them.
	special bitset.Set
	// remaining of each limited resource, model.NoLimit elsewhere; nodes likewise.
	remaining []int64
	nodes     int64
	// offers by the words of a row: groups with the same requirements see the same types.
	offers map[string]*offer
}

// offer is what a row may buy in a market.
type offer struct {
	row label.Row
	// types that are compatible, whatever their size and whether they are for sale.
	types bitset.Set
	// classes of offerings that the row admits; onSale are the types that one of them has available.
	classes []int
	onSale  bitset.Set
	// front are the purchases that no other purchase beats in price and size, cheapest first.
	front []purchase
}

// purchase is a type at its cheapest offering.
type purchase struct {
	kind  int
	class int
	price int64
}

func newMarket(p *model.Pool) *market {
	m := &market{pool: p, offers: map[string]*offer{}, nodes: model.NoLimit}
	if p.NodeLimit != model.NoLimit {
		m.nodes = max(0, p.NodeLimit-int64(p.Nodes))
	}
	m.remaining = slices.Clone(p.Limit)
	for r, limit := range m.remaining {
		if limit != model.NoLimit {
			m.remaining[r] = max(0, limit-p.Used.At(quantity.Resource(r)))
		}
	}
	if p.Types == nil {
		return m
	}
	m.special = bitset.New(p.Types.Len())
	for t := range p.Types.Catalogue.Types {
		if p.Types.Catalogue.Types[t].Special {
			m.special.Add(t)
		}
	}
	return m
}

// limited reports whether the pool limits what its nodes have.
func (m *market) limited() bool {
	return slices.ContainsFunc(m.remaining, func(n int64) bool { return n != model.NoLimit })
}

// within reports whether a node with that capacity stays within the limits, and which is in the way.
func (m *market) within(total quantity.Vector) (quantity.Resource, bool) {
	for r, left := range m.remaining {
		if left != model.NoLimit && total.At(quantity.Resource(r)) > left {
			return quantity.Resource(r), false
		}
	}
	return 0, true
}

// charge takes a node's capacity from what is left.
func (m *market) charge(total quantity.Vector) {
	for r, left := range m.remaining {
		if left != model.NoLimit {
			m.remaining[r] = max(0, left-total.At(quantity.Resource(r)))
		}
	}
	if m.nodes != model.NoLimit {
		m.nodes--
	}
}

// offer returns what a row that lies within the pool's start row may buy. asks says that the group requests a resource
// that only special types have.
func (m *market) offer(space *label.Space, row label.Row, asks bool) *offer {
	key := rowKey(row, asks)
	if known := m.offers[key]; known != nil {
		return known
	}
	o := &offer{row: row, types: m.pool.Eligible.Clone()}
	for k := label.Key(0); int(k) < space.Len(); k++ {
		if !space.EqualKey(row, m.pool.Start, k) && !m.pool.Types.Narrow(o.types, row, k) {
			break
		}
	}
	m.spareSpecial(o.types, asks)
	o.onSale, o.classes = m.pool.Types.Offered(row)
	o.onSale.AndWith(o.types)
	o.front = m.front(o)
	m.offers[key] = o
	return o
}

// spareSpecial drops the special types unless they were asked for: by a resource, or because nothing else satisfies
// the labels that pod and pool name.
func (m *market) spareSpecial(types bitset.Set, asks bool) {
	if asks {
		return
	}
	plain := types.Clone()
	plain.AndNotWith(m.special)
	if !plain.Empty() {
		types.CopyFrom(plain)
	}
}

func rowKey(row label.Row, asks bool) string {
	key := make([]byte, 0, 8*len(row)+1)
	for _, w := range row {
		key = binary.LittleEndian.AppendUint64(key, w)
	}
	if asks {
		key = append(key, 1)
	}
	return string(key)
}

// front lists the purchases worth trying: sorted by price, each is larger in some resource than all cheaper ones.
func (m *market) front(o *offer) []purchase {
	all := make([]purchase, 0, o.onSale.Count())
	for t := range o.onSale.All() {
		class := m.pool.Types.Cheapest(t, o.classes)
		all = append(all, purchase{kind: t, class: class, price: m.pool.Types.Classes[class].Price[t]})
	}
	slices.SortFunc(all, func(a, b purchase) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.kind, b.kind))
	})
	front := all[:0]
	for _, p := range all {
		if !slices.ContainsFunc(front, func(q purchase) bool { return m.beats(q, p) }) {
			front = append(front, p)
		}
	}
	return front
}

// beats reports whether a purchase that is no dearer makes the other pointless: it holds as much, and takes no more of
// what the pool limits.
func (m *market) beats(q, p purchase) bool {
	if !covers(m.pool.Net[q.kind], m.pool.Net[p.kind]) {
		return false
	}
	for r, left := range m.remaining {
		total := m.pool.Types.Total
		if left != model.NoLimit && total[q.kind].At(quantity.Resource(r)) > total[p.kind].At(quantity.Resource(r)) {
			return false
		}
	}
	return true
}

// covers reports whether a has at least as much of everything as b.
func covers(a, b quantity.Vector) bool {
	for r := range max(len(a), len(b)) {
		if a.At(quantity.Resource(r)) < b.At(quantity.Resource(r)) {
			return false
		}
	}
	return true
}
