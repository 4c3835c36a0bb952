package placement

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Offers: the types that a row can launch in a pool, computed once for each row and set of used-up reservations, and
// cached.

// offer is the set of types that a row can launch in a pool.
type offer struct {
	row label.Row
	// types that are compatible, regardless of size and availability.
	types bitset.Set
	// classes of offerings that the row admits. onSale are the types that one of them has available.
	classes   []int
	available bitset.Set
	// rooms are those of the nodes of the row.
	rooms *model.Rooms
	// front are the offerings that no other offering beats in price and size, cheapest first.
	front []typeOffering
	// limited is the front where limits bind, once computed: the offerings that no other one beats without using more of
	// what is limited.
	limited []typeOffering
}

// mostOffers is the maximum number of cached offers of a pool with rows of up to longRow words. Each takes one to two
// KiB. Longer rows are cached accordingly fewer.
const (
	mostOffers = 64 << 10
	longRow    = 128
)

// typeOffering is a type with its cheapest offering.
type typeOffering struct {
	kind  int
	class int
	price int64
}

// offersTo lists the offers of a pool to a group, one for each of the rows that the pool can satisfy.
func (f *fleet) offersTo(ps *poolState, pg *pendingGroup, rows []label.Row) []*offer {
	if ps.full() {
		return nil
	}
	return f.offersBeyondLimit(ps, pg, rows)
}

// offersBeyondLimit is offersTo without the pool's limit on nodes.
func (f *fleet) offersBeyondLimit(ps *poolState, pg *pendingGroup, rows []label.Row) []*offer {
	if !ps.usable() {
		return nil
	}
	if _, no := pg.untolerated(ps.spec.Taints); no {
		return nil
	}
	if _, no := ps.repels(pg.group.Tolerations); no {
		return nil
	}
	var offers []*offer
	asks := requestsSpecial(f.snap, pg.group)
	f.budget.spendRows(rows)
	for _, row := range rows {
		both := make(label.Row, f.snap.Space.Words())
		if f.snap.Space.And(both, ps.spec.Start, row) {
			for _, one := range ps.spec.Decisions(both) {
				offers = append(offers, ps.offer(f.snap.Space, one, asks))
			}
		}
	}
	if !asks && !pg.rules.none() && slices.ContainsFunc(offers, ps.onlySpecial) && f.plainWouldDo(ps, pg) {
		offers = slices.DeleteFunc(offers, ps.onlySpecial)
	}
	return offers
}

// onlySpecial reports whether the offer contains special types alone.
func (ps *poolState) onlySpecial(o *offer) bool {
	return !o.types.Empty() && !slices.ContainsFunc(o.front, func(p typeOffering) bool { return !ps.special.Has(p.kind) })
}

// plainWouldDo reports whether the group itself needs no special types: topology spread is no reason to launch them.
func (f *fleet) plainWouldDo(ps *poolState, pg *pendingGroup) bool {
	for _, row := range pg.rows {
		both := make(label.Row, f.snap.Space.Words())
		if !f.snap.Space.And(both, ps.spec.Start, row) {
			continue
		}
		plain := ps.offer(f.snap.Space, both, false).types.Clone()
		plain.AndNotWith(ps.special)
		if !plain.Empty() {
			return true
		}
	}
	return false
}

// offer returns the offer to a row that lies within the pool's start row. asks reports that the group requests a
// resource that only special types have.
func (ps *poolState) offer(space *label.Space, row label.Row, asks bool) *offer {
	key := rowKey(row, asks, ps.reservations.usedUp)
	if known := ps.offers[key]; known != nil {
		return known
	}
	o := &offer{row: row, types: ps.spec.Eligible.Clone(), rooms: ps.roomsOf(row)}
	for k := label.Key(0); int(k) < space.Len(); k++ {
		if !space.EqualKey(row, ps.spec.Start, k) && !ps.spec.Types.Narrow(o.types, row, k) {
			break
		}
	}
	ps.spareSpecial(o.types, asks)
	o.available, o.classes = ps.offered(row)
	o.available.AndWith(o.types)
	o.front = ps.undominated(o, false)
	if len(ps.offers)*(1+len(row)/longRow) < mostOffers {
		ps.offers[key] = o
	}
	return o
}

// offered returns the available types and classes that the row admits. Offerings of used-up reservations are excluded.
func (ps *poolState) offered(row label.Row) (bitset.Set, []int) { return ps.offeredTo(&bin{}, row) }

// offeredTo is like offered, for a bin: a reservation from which the bin has taken a node is not used up for it.
func (ps *poolState) offeredTo(b *bin, row label.Row) (bitset.Set, []int) {
	set, classes := ps.spec.Types.Offered(row)
	used := func(i int) bool {
		c := &ps.spec.Types.Classes[i]
		return c.ReservationID != b.reservation && !ps.reservations.permits(c)
	}
	if !slices.ContainsFunc(classes, used) {
		return set, classes
	}
	classes = slices.DeleteFunc(classes, used)
	clear(set)
	for _, i := range classes {
		set.OrWith(ps.spec.Types.Classes[i].Types)
	}
	return set, classes
}

// spareSpecial removes the special types unless they are needed: for a requested resource, or because no other type
// satisfies the labels of pod and pool.
func (ps *poolState) spareSpecial(types bitset.Set, asks bool) {
	if asks {
		return
	}
	plain := types.Clone()
	plain.AndNotWith(ps.special)
	if !plain.Empty() {
		types.CopyFrom(plain)
	}
}

// requestsSpecial reports whether the group requests an extended resource.
func requestsSpecial(snap *model.Snapshot, g *model.Group) bool {
	for r := int(quantity.Pods) + 1; r < len(g.Requests); r++ {
		if g.Requests[r] > 0 && !model.IsVolumeResource(snap.Resources[r]) {
			return true
		}
	}
	return false
}

func rowKey(row label.Row, asks bool, usedUp string) string {
	key := make([]byte, 0, 8*len(row)+1)
	for _, w := range row {
		key = binary.LittleEndian.AppendUint64(key, w)
	}
	if asks {
		key = append(key, 1)
	}
	return string(append(key, usedUp...))
}

// undominated lists the offerings worth trying: sorted by price, each is larger in some resource than all cheaper ones.
// Offerings of reservations and commitments are first and exclude only those of the same one, because each may be used up at
// any moment.
// Rows that differ in labels only which no type, offering or daemon has share it. With limits, an offering excludes others
// only if it uses no more of what is limited.
func (ps *poolState) undominated(o *offer, limits bool) []typeOffering {
	key := make([]byte, 0, 8*(len(o.available)+len(o.classes)))
	for _, w := range o.available {
		key = binary.LittleEndian.AppendUint64(key, w)
	}
	for _, i := range o.classes {
		key = binary.AppendUvarint(key, uint64(i))
	}
	if limits && len(ps.counting) > 0 { // which quotas count a node depends on its labels
		for _, w := range o.row {
			key = binary.LittleEndian.AppendUint64(key, w)
		}
	}
	at := frontKey{rooms: o.rooms, available: string(key)}
	if limits {
		at.limited = ps.spec.PoolSpec
	}
	if ps.fronts[at] == nil {
		ps.fronts[at] = ps.frontOf(o, ps.priceList, limits)
	}
	return ps.fronts[at]
}

// frontKey identifies what a front depends on: the rooms, the available types and the classes of offerings, and, with
// limits, the pool and, if quotas count its nodes, the row.
type frontKey struct {
	rooms     *model.Rooms
	available string
	limited   *model.PoolSpec
}

// frontWithin returns the offerings worth trying within the limits of the pool.
func (ps *poolState) frontWithin(o *offer) []typeOffering {
	if !ps.limited() && len(ps.counting) == 0 {
		return o.front
	}
	if o.limited == nil {
		o.limited = ps.undominated(o, true)
	}
	return o.limited
}

// frontOf returns the front of a price list of classes, with or without the limits.
func (ps *poolState) frontOf(o *offer, priceList func([]int) []typeOffering, limits bool) []typeOffering {
	var open []int
	byReservation := map[string][]int{}
	for _, i := range o.classes {
		if id := ps.spec.Types.Classes[i].ReservationID; id != "" {
			byReservation[id] = append(byReservation[id], i)
		} else {
			open = append(open, i)
		}
	}
	var front []typeOffering
	for _, id := range slices.Sorted(maps.Keys(byReservation)) {
		front = append(front, ps.frontOfClasses(o, byReservation[id], priceList, limits)...)
	}
	sortOfferings(front)
	return append(front, ps.frontOfClasses(o, open, priceList, limits)...)
}

func (ps *poolState) frontOfClasses(o *offer, classes []int, priceList func([]int) []typeOffering, limits bool) (front []typeOffering) {
	lists := [][]int{classes}
	if limits {
		lists = ps.byQuotas(o.row, classes)
	}
	beats := func(q, p typeOffering) bool { return o.beats(q, p) && (!limits || ps.beatsInLimits(o, q, p)) }
	for _, p := range o.offeringsOf(lists, priceList) {
		if !o.available.Has(p.kind) || slices.ContainsFunc(front, func(q typeOffering) bool { return beats(q, p) }) {
			continue
		}
		equal := len(front)
		for equal > 0 && front[equal-1].price == p.price {
			equal--
		}
		// Of equal prices the smaller come first, and the larger beat them.
		front = append(append(front[:equal], slices.DeleteFunc(front[equal:], func(q typeOffering) bool { return beats(p, q) })...), p)
	}
	return front
}

// offeringsOf returns the price lists of the lists of classes, as one list.
func (o *offer) offeringsOf(lists [][]int, priceList func([]int) []typeOffering) []typeOffering {
	if len(lists) == 1 {
		return o.priced(lists[0], priceList)
	}
	var all []typeOffering
	for _, list := range lists {
		all = append(all, o.priced(list, priceList)...)
	}
	sortOfferings(all)
	return all
}

// priced returns the price list of the classes. It has one offering of a type, the cheapest, for each room.
func (o *offer) priced(classes []int, priceList func([]int) []typeOffering) []typeOffering {
	if !o.rooms.Differ() {
		return priceList(classes)
	}
	var list []typeOffering
	for len(classes) > 0 {
		room := o.rooms.Of(classes[0])
		var same, others []int
		for _, i := range classes {
			if o.rooms.Of(i) == room {
				same = append(same, i)
			} else {
				others = append(others, i)
			}
		}
		list, classes = append(list, priceList(same)...), others
	}
	sortOfferings(list)
	return list
}

// room returns the room on a node of the offering.
func (o *offer) room(p typeOffering) *model.Room { return o.rooms.Of(p.class) }

// holds reports whether a node of the offering can hold a pod of the group in addition to the daemons.
func (o *offer) holds(g *model.Group, p typeOffering) bool {
	room := o.room(p)
	return g.Requests.Fits(room.Net[p.kind]) && room.PortsFree(p.kind, g.HostPorts)
}

// usedUp reports whether the offering needs a reservation that permits no further node.
func (ps *poolState) usedUp(p typeOffering) bool {
	return !ps.reservations.permits(&ps.spec.Types.Classes[p.class])
}

// beats reports whether an offering at the same or a lower price holds as much as the other.
func (o *offer) beats(q, p typeOffering) bool {
	room, other := o.room(q), o.room(p)
	return covers(room.Net[q.kind], other.Net[p.kind]) && !room.MorePorts(q.kind, other, p.kind)
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
