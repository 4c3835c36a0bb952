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

// Offers: the types that a row can launch in a pool, computed once for each row and cached.

// offer is the set of types that a row can launch in a pool.
type offer struct {
	row label.Row
	// types that are compatible, regardless of size and availability.
	types bitset.Set
	// classes of offerings that the row admits. onSale are the types that one of them has available.
	classes []int
	onSale  bitset.Set
	// front are the purchases that no other purchase beats in price and size, cheapest first.
	front []purchase
}

// mostOffers is the maximum number of cached offers of a pool. Each takes one to two KiB.
const mostOffers = 64 << 10

// purchase is a type with its cheapest offering.
type purchase struct {
	kind  int
	class int
	price int64
}

// offersTo lists the offers of a pool to a task, one for each of the rows that the pool can satisfy.
func (r *run) offersTo(m *market, t *task, rows []label.Row) []*offer {
	if !m.open() {
		return nil
	}
	if _, no := r.untolerated(t, m.pool.Taints); no {
		return nil
	}
	var offers []*offer
	asks := asksSpecial(r.snap, t.group)
	for _, row := range rows {
		both := make(label.Row, r.snap.Space.Words())
		if r.snap.Space.And(both, m.pool.Start, row) {
			offers = append(offers, m.offer(r.snap.Space, both, asks))
		}
	}
	if !asks && !t.rules.none() && slices.ContainsFunc(offers, m.onlySpecial) && r.plainWouldDo(m, t) {
		offers = slices.DeleteFunc(offers, m.onlySpecial)
	}
	return offers
}

// onlySpecial reports whether the offer contains special types alone.
func (m *market) onlySpecial(o *offer) bool {
	return !o.types.Empty() && !slices.ContainsFunc(o.front, func(p purchase) bool { return !m.special.Has(p.kind) })
}

// plainWouldDo reports whether the task itself needs no special types: topology spread is no reason to launch them.
func (r *run) plainWouldDo(m *market, t *task) bool {
	for _, row := range t.rows {
		both := make(label.Row, r.snap.Space.Words())
		if !r.snap.Space.And(both, m.pool.Start, row) {
			continue
		}
		plain := m.offer(r.snap.Space, both, false).types.Clone()
		plain.AndNotWith(m.special)
		if !plain.Empty() {
			return true
		}
	}
	return false
}

// offer returns the offer to a row that lies within the pool's start row. asks reports that the group requests a
// resource that only special types have.
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
	o.onSale, o.classes = m.offered(row)
	o.onSale.AndWith(o.types)
	o.front = m.front(o)
	if len(m.offers) < mostOffers {
		m.offers[key] = o
	}
	return o
}

// offered returns the available types and classes that the row admits. Offerings of used-up reservations are excluded.
func (m *market) offered(row label.Row) (bitset.Set, []int) { return m.offeredTo(&bin{}, row) }

// offeredTo is like offered, for a bin: a reservation from which the bin has taken a node is not used up for it.
func (m *market) offeredTo(b *bin, row label.Row) (bitset.Set, []int) {
	set, classes := m.pool.Types.Offered(row)
	used := func(i int) bool {
		id := m.pool.Types.Classes[i].ReservationID
		return id != "" && id != b.holds && m.reservations[id] <= 0
	}
	if !slices.ContainsFunc(classes, used) {
		return set, classes
	}
	classes = slices.DeleteFunc(classes, used)
	clear(set)
	for _, i := range classes {
		set.OrWith(m.pool.Types.Classes[i].Types)
	}
	return set, classes
}

// spareSpecial removes the special types unless they are needed: for a requested resource, or because no other type
// satisfies the labels of pod and pool.
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

// asksSpecial reports whether the group requests an extended resource.
func asksSpecial(snap *model.Snapshot, g *model.Group) bool {
	for r := int(quantity.Pods) + 1; r < len(g.Requests); r++ {
		if g.Requests[r] > 0 && !model.IsVolumeResource(snap.Resources[r]) {
			return true
		}
	}
	return false
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
// Reserved purchases are first and exclude no others, because a reservation may be used up at any moment.
func (m *market) front(o *offer) []purchase { return m.frontOf(o, m.priceList) }

// frontOf returns the front of a price list of classes.
func (m *market) frontOf(o *offer, priceList func([]int) []purchase) []purchase {
	reserved := func(i int) bool { return m.pool.Types.Classes[i].ReservationID != "" }
	var front []purchase
	for _, drop := range []func(int) bool{func(i int) bool { return !reserved(i) }, reserved} {
		classes := o.classes
		if slices.ContainsFunc(classes, drop) {
			classes = slices.DeleteFunc(slices.Clone(classes), drop)
		}
		from := len(front)
		for _, p := range priceList(classes) {
			if o.onSale.Has(p.kind) && !slices.ContainsFunc(front[from:], func(q purchase) bool { return m.beats(q, p) }) {
				front = append(front, p)
			}
		}
	}
	return front
}

// usedUp reports whether the purchase needs a reservation that permits no further node.
func (m *market) usedUp(p purchase) bool {
	id := m.pool.Types.Classes[p.class].ReservationID
	return id != "" && m.reservations[id] <= 0
}

func sortPurchases(list []purchase) {
	slices.SortFunc(list, func(a, b purchase) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.kind, b.kind))
	})
}

// beats reports whether a purchase at the same or a lower price dominates the other: it holds as much, and uses no more
// of what the pool limits.
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
