package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement/tally"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// commit opens the bin as often as its groups can fill it in the same way, within the limits and the pace. It reports
// whether it was opened at all.
func (f *fleet) commit(ps *poolState, b *bin, at pace) bool {
	f.pinReservation(ps, b.class, b.row)
	b.row = append(b.row[:0], ps.narrowedToRoom(b, b.row, b.used, b.ports)...)
	kinds := f.kindsFor(ps, b, b.row, b.used)
	if ps.limited() {
		ps.becomeSmaller(b, kinds)
		kinds = f.withinLimits(ps, b, kinds, b.kind)
	}
	kinds, use := f.withinQuotas(ps, b, f.cut(ps, kinds, b.row))
	if f.unsuitable(b, kinds, b.row) || f.anyDaemons() && f.daemonsClash(ps, b.row, kinds, b.plannedGroups()...) {
		return false
	}
	row := slices.Clone(b.row)
	b.lowest = ps.lowestPrice(kinds, row)
	b.reservation, b.use = ps.spec.Types.Classes[b.class].ReservationID, use
	done := false
	repeat := b.repeats()
	switch at {
	case someAtOnce:
		repeat = max(1, repeat/5)
	case oneByOne:
		repeat = 1
	}
	for ; repeat > 0 && b.withinSkew() && f.ledger.Admit(use) && f.takeReservation(b); repeat-- {
		c := f.copyOf(b, row, kinds)
		if ps.spotShare != nil && !f.narrowToSlot(ps, c, b.price, done) {
			break
		}
		f.placePods(b, c)
		f.ledger.Charge(c.use)
		f.bins = append(f.bins, c)
		done = true
	}
	return done
}

// copyOf returns an independent copy of the trial bin, without its pods.
func (f *fleet) copyOf(b *bin, row label.Row, kinds bitset.Set) *bin {
	c := &bin{typeOffering: b.typeOffering, pool: b.pool, row: row, kinds: kinds, lowest: b.lowest, used: b.used.Clone(),
		reservation: b.reservation, use: b.use}
	c.free, c.tally, c.ports, c.claims = b.free.Clone(), b.tally.Clone(), b.ports, b.claims
	return c
}

// placePods moves the pods of the trial bin to its copy.
func (f *fleet) placePods(b, c *bin) {
	c.placed = make([]placedPods, len(b.planned))
	for i, p := range b.planned {
		c.placed[i] = placedPods{p.candidate.pending, p.candidate.take(p.count)}
		if p.candidate.skew != nil {
			p.candidate.skew.record(p.domain, c.placed[i].pods)
		}
		f.counters.addHosts(p.candidate.pending.rules, p.count)
	}
}

// withinSkew reports whether the domain of the bin may get what the bin may be filled with.
func (b *bin) withinSkew() bool {
	return !slices.ContainsFunc(b.planned, func(p podCount) bool {
		return p.candidate.skew != nil && p.candidate.skew.may[p.domain] < p.count
	})
}

// repeats returns how often the groups of the bin can fill it in the same way. With affinity by hostname or shared
// volumes, every bin is different.
func (b *bin) repeats() int {
	n := len(b.planned[0].candidate.batch.left) / b.planned[0].count
	for _, p := range b.planned {
		if len(p.candidate.pending.rules.hostAffinities) > 0 || len(p.candidate.pending.group.Shared) > 0 {
			return 1
		}
		n = min(n, len(p.candidate.left)/p.count)
	}
	return n
}

// pinReservation pins the row of a bin with a reservation to that reservation. Any other bin must not take a
// reservation that other bins need.
func (f *fleet) pinReservation(ps *poolState, class int, row label.Row) {
	c := &ps.spec.Types.Classes[class]
	space := f.snap.Space
	switch {
	case c.Units > 0:
		c.PinKey(space, row, model.LabelCapacityType, model.FieldCommitment)
		ps.keepZones(row)
		return
	case c.ReservationID != "":
		c.Pin(space, row)
		return
	case len(ps.reservations.left) == 0:
		return
	}
	if k, known := space.Lookup(model.FieldCommitment); known {
		space.SetOnly(row, k, space.Absent(k))
	}
	key, _ := space.Lookup(model.LabelCapacityType)
	from, to := space.Span(key)
	_, classes := ps.spec.Types.Offered(row)
	open := func(capacityType string) bool {
		return slices.ContainsFunc(classes, func(i int) bool {
			return ps.spec.Types.Classes[i].CapacityType == capacityType && ps.spec.Types.Classes[i].ReservationID == ""
		})
	}
	for _, i := range classes {
		if c := &ps.spec.Types.Classes[i]; c.ReservationID != "" && !open(c.CapacityType) {
			bitset.Set(row[from:to]).Remove(space.Atom(key, c.CapacityType))
		}
	}
}

// keepZones narrows the row to the zones in which it admits offerings.
func (ps *poolState) keepZones(row label.Row) {
	space := ps.snap.Space
	key, _ := space.Lookup(model.LabelZone)
	zones := bitset.New(space.Atoms(key))
	_, classes := ps.spec.Types.Offered(row)
	for _, i := range classes {
		zones.Add(space.Atom(key, ps.spec.Types.Classes[i].Zone))
	}
	from, to := space.Span(key)
	bitset.Set(row[from:to]).AndWith(zones)
}

// takeReservation uses one node of the bin's reservation, if it has one. It returns false when the reservation is used
// up.
func (f *fleet) takeReservation(b *bin) bool {
	if b.reservation == "" {
		return true
	}
	c := &f.poolOf(b).spec.Types.Classes[b.class]
	if !f.reservations.permits(c) {
		return false
	}
	f.reservations.add(b.reservation, -max(1, c.Units))
	return true
}

// refill recomputes the content of the bin after it lost pods.
func (f *fleet) refill(b *bin) {
	b.free = f.widest(b)
	b.used = make(quantity.Vector, len(b.free))
	b.tally, b.ports, b.claims = tally.Tally{}, nil, nil
	addDaemons(&b.tally, f.poolOf(b).daemons)
	for _, s := range b.placed {
		f.fillUp(b, s.pending, len(s.pods))
	}
}

// fillUp subtracts the usage of n pods of the group from the bin, including shared volumes.
func (f *fleet) fillUp(b *bin, pg *pendingGroup, n int) {
	before := len(b.claims)
	f.fit.put(pg, &b.place, n)
	b.used.AddScaled(pg.group.Requests[:min(len(pg.group.Requests), len(b.used))], int64(n))
	for _, v := range pg.group.Shared {
		if slices.Contains(b.claims[before:], v.Claim) {
			if i := slices.Index(f.snap.Resources, model.VolumeResource(v.Driver)); i >= 0 && i < len(b.used) {
				b.used[i]++
			}
		}
	}
}

// giveBack returns to limits and reservations what an unneeded bin took from them.
func (f *fleet) giveBack(b *bin) {
	f.releases.note()
	f.ledger.Release(b.use)
	if b.reservation != "" {
		f.reservations.add(b.reservation, max(1, f.poolOf(b).spec.Types.Classes[b.class].Units))
	}
}

// recharge returns to the limits what a bin took for types that it can no longer have.
func (f *fleet) recharge(b *bin) {
	ps := f.poolOf(b)
	if !ps.limited() {
		return
	}
	total, price := ps.spec.Types.Largest(b.row, b.kinds, ps.limitsPrice)
	if price == b.use.Price && total.Equal(b.use.Total) {
		return
	}
	f.ledger.Release(b.use)
	b.use.Total, b.use.Price = total, price
	f.ledger.Charge(b.use)
	f.releases.note()
}

// kindsFor returns the types that can hold the content of the bin, given its row.
func (f *fleet) kindsFor(ps *poolState, b *bin, row label.Row, used quantity.Vector) bitset.Set {
	set := ps.spec.Types.Compatible(row)
	set.AndWith(ps.spec.Eligible)
	if !ps.special.Has(b.kind) {
		set.AndNotWith(ps.special)
	}
	ps.possibleRooms(row).WithAtLeast(set, used)
	onSale, _ := ps.offeredTo(b, row)
	set.AndWith(onSale)
	ps.dropTaken(set, row, b.ports)
	return set
}

// cut keeps the cheapest types when there are more than a claim may list.
func (f *fleet) cut(ps *poolState, kinds bitset.Set, row label.Row) bitset.Set {
	if kinds.Count() <= plan.MaxTypes {
		return kinds
	}
	for _, p := range ps.priced(kinds, row)[plan.MaxTypes:] {
		kinds.Remove(p.kind)
	}
	return kinds
}

// withinLimits keeps the types that are no larger than the chosen one. If these do not satisfy minValues, it keeps all
// types that fit the limits.
func (f *fleet) withinLimits(ps *poolState, b *bin, kinds bitset.Set, chosen int) bitset.Set {
	small := kinds.Clone()
	ps.dropLarger(small, ps.spec.Types.Total[chosen])
	if !ps.lacking(b, small, b.row) {
		return small
	}
	small.CopyFrom(kinds)
	for t := range kinds.All() {
		if !f.ledger.Admit(model.Use{Accounts: ps.own, Total: ps.spec.Types.Total[t]}) {
			small.Remove(t)
		}
	}
	return small
}

// becomeSmaller changes the type of a bin to the smallest of the same price in the same class of offerings that takes no
// more of any limit.
func (ps *poolState) becomeSmaller(b *bin, kinds bitset.Set) {
	kinds = kinds.Clone()
	ps.dropLarger(kinds, ps.spec.Types.Total[b.kind])
	class := &ps.spec.Types.Classes[b.class]
	for _, t := range ps.bySize {
		if kinds.Has(t) && class.Types.Has(t) && class.Price[t] == b.price {
			b.kind = t
			return
		}
	}
}

// widest returns, per resource, the most that some type of the bin has.
func (f *fleet) widest(b *bin) quantity.Vector {
	var most quantity.Vector
	rooms := f.poolOf(b).possibleRooms(b.row)
	for t := range b.kinds.All() {
		most = most.Raise(rooms.Least(t))
	}
	return most
}

// bin is a future node with its content so far.
type bin struct {
	place
	typeOffering
	// pool is the index of its pool.
	pool int
	row  label.Row
	// room is that of the offering, while the bin is filled.
	room *model.Room
	// planned are the pods that it may be filled with. Once it is committed, placed are the pods in it.
	planned []podCount
	// used by the pods; kinds that can hold them, once the bin is committed.
	used  quantity.Vector
	kinds bitset.Set
	// lowest is the price of the cheapest node that it may become.
	lowest int64
	// reservation is the reservation that the bin took one node from. use is what it is charged for: its pool and the
	// quotas that may count it.
	reservation string
	use         model.Use
}

// worth returns the value of the bin's parts.
func (b *bin) worth() float64 {
	var sum float64
	for _, p := range b.planned {
		sum += float64(float64(p.count) * p.candidate.value)
	}
	return sum
}

// restart empties the bin and makes it a node of the offering.
func (b *bin) restart(ps *poolState, p typeOffering, o *offer, slots int) *bin {
	b.typeOffering, b.pool = p, ps.index
	b.row = append(b.row[:0], o.row...)
	b.room = o.room(p)
	b.free = append(b.free[:0], b.room.Net[p.kind]...)
	b.used = append(b.used[:0], b.free...)
	clear(b.used)
	b.planned, b.ports, b.claims = b.planned[:0], nil, nil
	b.reservation, b.use = "", model.Use{}
	b.tally.Restart(slots)
	addDaemons(&b.tally, ps.daemons)
	return b
}

// narrowedToRoom returns the row, narrowed to offerings whose daemons leave room for the content of the bin. A bin is
// filled as a node of one offering; its claim may allow others.
func (ps *poolState) narrowedToRoom(b *bin, row label.Row, used quantity.Vector, ports []model.HostPort) label.Row {
	return ps.roomsOf(row).Narrow(row, b.kind, b.class, func(room *model.Room) bool {
		return used.Fits(room.Net[b.kind]) && room.PortsFree(b.kind, ports)
	})
}

// podCount is how many pods of a candidate a bin could hold, and the domain in the candidate's skew, if it has one.
type podCount struct {
	candidate *packCandidate
	count     int
	domain    int
}

// daemonsClash reports whether pods of the groups and a daemon cannot share a node of the row and one of the types. The
// fewer labels are open, the more daemons are certain to run on the node.
func (f *fleet) daemonsClash(ps *poolState, row label.Row, kinds bitset.Set, groups ...*pendingGroup) bool {
	if kinds.Empty() {
		return false
	}
	daemons := f.counters.comingTo(ps.spec.Types.Hull(row, kinds), ps.spec.Taints)
	return slices.ContainsFunc(groups, func(pg *pendingGroup) bool { return daemonsExclude(pg, daemons) })
}

// plannedGroups returns the groups that the bin may be filled with.
func (b *bin) plannedGroups() []*pendingGroup {
	groups := make([]*pendingGroup, 0, len(b.planned))
	for _, p := range b.planned {
		groups = append(groups, p.candidate.batch.pending)
	}
	return groups
}

// shrink changes a bin that lost pods to the smaller types that hold the rest, and returns the difference to the
// limits.
func (f *fleet) shrink(b *bin) {
	ps := f.poolOf(b)
	if ps.spotShare != nil || b.reservation != "" {
		return
	}
	kinds := f.kindsFor(ps, b, b.row, b.used)
	cheapest, found := typeOffering{}, false
	for p := range ps.cheapestFirst(kinds, b.row) {
		if ps.holdsInstead(b, p) {
			cheapest, found = p, true
			break
		}
	}
	if !found {
		return
	}
	if ps.limited() {
		kinds = f.withinLimits(ps, b, kinds, cheapest.kind)
	}
	ps.keepCounted(kinds, b.row, b.use.Accounts)
	kinds = f.cut(ps, kinds, b.row)
	if f.unsuitable(b, kinds, b.row) || f.anyDaemons() && f.daemonsClash(ps, b.row, kinds, b.groups()...) {
		return
	}
	b.typeOffering, b.kinds, b.lowest = cheapest, kinds, ps.lowestPrice(kinds, b.row)
	b.free = f.widest(b).Sub(b.used)
	f.recharge(b)
}

// anyDaemons reports whether there are daemons that matter.
func (f *fleet) anyDaemons() bool { return len(f.counters.daemons) > 0 }
