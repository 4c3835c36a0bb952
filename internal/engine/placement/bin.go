package placement

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// commit opens the bin as often as its groups can fill it in the same way, within the limits and the pace. It reports
// whether it was opened at all.
func (r *run) commit(m *market, b *bin, at pace) bool {
	r.pinReservation(m, b)
	kinds := r.kindsFor(m, b, b.row, b.used)
	if m.limited() {
		kinds = r.withinLimits(m, kinds, b.kind)
	}
	kinds = r.cut(m, kinds, b.row)
	if kinds.Empty() || !r.opts.RelaxMinValues && !m.diverse(kinds).OK() || r.crewed() && r.clashes(m, b.row, kinds, b.planned()...) {
		return false
	}
	largest := m.largest(kinds)
	row := slices.Clone(b.row)
	b.lowest = m.lowestPrice(kinds, row)
	b.holds, b.charged = m.pool.Types.Classes[b.class].ReservationID, largest
	done := false
	repeat := b.repeats()
	switch at {
	case someAtOnce:
		repeat = max(1, repeat/5)
	case oneByOne:
		repeat = 1
	}
	for ; repeat > 0 && m.nodes != 0; repeat-- {
		if _, ok := m.within(largest); !ok || !r.takeReservation(m, b) {
			break
		}
		c := r.copyOf(b, row, kinds)
		if m.share != nil && !r.spread(m, c, b.price, done) {
			break
		}
		r.seat(b, c)
		m.charge(c.charged)
		r.bins = append(r.bins, c)
		done = true
	}
	return done
}

// copyOf returns an independent copy of the trial bin, without its pods.
func (r *run) copyOf(b *bin, row label.Row, kinds bitset.Set) *bin {
	c := &bin{purchase: b.purchase, market: b.market, row: row, kinds: kinds, lowest: b.lowest, used: b.used.Clone(),
		holds: b.holds, charged: b.charged}
	c.free, c.tally, c.ports, c.claims = b.free.Clone(), b.tally.clone(), b.ports, b.claims
	return c
}

// seat moves the pods of the trial bin to its copy.
func (r *run) seat(b, c *bin) {
	c.shares = make([]share, len(b.parts))
	for i, p := range b.parts {
		c.shares[i] = share{p.task, p.take(p.count)}
		r.counters.addHosts(p.rules, p.count)
	}
}

// repeats returns how often the groups of the bin can fill it in the same way. With affinity by hostname or shared
// volumes, every bin is different.
func (b *bin) repeats() int {
	n := len(b.parts[0].left) / b.parts[0].count
	for _, p := range b.parts {
		if len(p.rules.hostAffinities) > 0 || len(p.group.Shared) > 0 {
			return 1
		}
		n = min(n, len(p.left)/p.count)
	}
	return n
}

// pinReservation pins a bin with a reservation to that reservation. Any other bin must not take a reservation that
// other bins need.
func (r *run) pinReservation(m *market, b *bin) {
	c := &m.pool.Types.Classes[b.class]
	if c.ReservationID != "" {
		c.Pin(r.snap.Space, b.row)
		return
	}
	if len(m.reservations) == 0 {
		return
	}
	space := r.snap.Space
	key, _ := space.Lookup(model.LabelCapacityType)
	from, to := space.Span(key)
	_, classes := m.pool.Types.Offered(b.row)
	open := func(capacityType string) bool {
		return slices.ContainsFunc(classes, func(i int) bool {
			return m.pool.Types.Classes[i].CapacityType == capacityType && m.pool.Types.Classes[i].ReservationID == ""
		})
	}
	for _, i := range classes {
		if c := &m.pool.Types.Classes[i]; c.ReservationID != "" && !open(c.CapacityType) {
			bitset.Set(b.row[from:to]).Remove(space.Atom(key, c.CapacityType))
		}
	}
}

// takeReservation uses one node of the bin's reservation, if it has one. It returns false when the reservation is used
// up.
func (r *run) takeReservation(m *market, b *bin) bool {
	if b.holds == "" {
		return true
	}
	if m.reservations[b.holds] <= 0 {
		return false
	}
	if m.reservations[b.holds]--; m.reservations[b.holds] == 0 {
		for _, other := range r.pools {
			other.offers = map[string]*offer{}
		}
	}
	return true
}

// refill recomputes the content of the bin after it lost pods.
func (r *run) refill(b *bin) {
	b.free = r.widest(b)
	b.used = make(quantity.Vector, len(b.free))
	b.tally, b.ports, b.claims = tally{}, nil, nil
	b.tally.board(b.market.crew)
	for _, s := range b.shares {
		r.fillUp(b, s.task, len(s.pods))
	}
}

// fillUp subtracts the usage of n pods of the task from the bin, including shared volumes.
func (r *run) fillUp(b *bin, t *task, n int) {
	before := len(b.claims)
	r.put(t, &b.place, n)
	b.used.AddScaled(t.group.Requests[:min(len(t.group.Requests), len(b.used))], int64(n))
	for _, v := range t.group.Shared {
		if slices.Contains(b.claims[before:], v.Claim) {
			if i := slices.Index(r.snap.Resources, model.VolumeResource(v.Driver)); i >= 0 && i < len(b.used) {
				b.used[i]++
			}
		}
	}
}

// giveBack returns to limits and reservations what an unneeded bin took from them.
func (r *run) giveBack(b *bin) {
	r.givenBack, r.returned = true, true
	b.market.refund(b.charged)
	if b.market.nodes != model.NoLimit {
		b.market.nodes++
	}
	if b.holds != "" {
		b.market.reservations[b.holds]++
		for _, m := range r.pools {
			m.offers = map[string]*offer{}
		}
	}
}

// refund returns a charged capacity to the limits.
func (m *market) refund(total quantity.Vector) {
	for r, left := range m.remaining {
		if left != model.NoLimit {
			m.remaining[r] = left + total.At(quantity.Resource(r))
		}
	}
}

// largest returns, per resource, the most that one of the types has: the amount that a limit counts.
func (m *market) largest(kinds bitset.Set) quantity.Vector {
	var most quantity.Vector
	for t := range kinds.All() {
		most = most.Raise(m.pool.Types.Total[t])
	}
	return most
}

// recharge returns to the limits what a bin took for types that it can no longer have.
func (r *run) recharge(b *bin) {
	if !b.market.limited() {
		return
	}
	if largest := b.market.largest(b.kinds); !largest.Equal(b.charged) {
		b.market.refund(b.charged.Sub(largest))
		b.charged, r.givenBack, r.returned = largest, true, true
	}
}

// kindsFor returns the types that can hold the content of the bin, given its row.
func (r *run) kindsFor(m *market, b *bin, row label.Row, used quantity.Vector) bitset.Set {
	set := m.pool.Types.Compatible(row)
	set.AndWith(m.pool.Eligible)
	if !m.special.Has(b.kind) {
		set.AndNotWith(m.special)
	}
	m.pool.WithAtLeast(set, used)
	onSale, _ := m.offeredTo(b, row)
	set.AndWith(onSale)
	m.dropTaken(set, b.ports)
	return set
}

// dropTaken removes the types on which a daemon uses one of the host ports.
func (m *market) dropTaken(set bitset.Set, ports []model.HostPort) {
	if m.pool.DaemonPorts == nil || len(ports) == 0 {
		return
	}
	for t := range set.Clone().All() {
		if !m.pool.PortsFree(t, ports) {
			set.Remove(t)
		}
	}
}

// cut keeps the cheapest types when there are more than a claim may list.
func (r *run) cut(m *market, kinds bitset.Set, row label.Row) bitset.Set {
	if kinds.Count() <= plan.MaxTypes {
		return kinds
	}
	for _, p := range m.priced(kinds, row)[plan.MaxTypes:] {
		kinds.Remove(p.kind)
	}
	return kinds
}

// priced lists the types with their cheapest offerings that the row admits, cheapest first.
func (m *market) priced(kinds bitset.Set, row label.Row) []purchase {
	return slices.AppendSeq(make([]purchase, 0, kinds.Count()), m.cheapestFirst(kinds, row))
}

// cheapestFirst iterates over the result of priced.
func (m *market) cheapestFirst(kinds bitset.Set, row label.Row) iter.Seq[purchase] {
	_, classes := m.offered(row)
	if len(classes) == 0 {
		_, classes = m.pool.Types.Offered(row)
	}
	return func(yield func(purchase) bool) {
		for _, p := range m.priceList(classes) {
			if kinds.Has(p.kind) && !yield(p) {
				return
			}
		}
	}
}

// priceList returns every type available in one of the classes, cheapest first. It is computed once for each set of
// classes.
func (m *market) priceList(classes []int) []purchase {
	key := make([]byte, 0, 2*len(classes))
	for _, c := range classes {
		key = binary.AppendUvarint(key, uint64(c))
	}
	if known := m.priceLists[string(key)]; known != nil {
		return known
	}
	x := m.pool.Types
	list := make([]purchase, 0, x.Len())
	for t := range x.Len() {
		if class := x.Cheapest(t, classes); class >= 0 {
			list = append(list, purchase{kind: t, class: class, price: x.Classes[class].Price[t]})
		}
	}
	sortPurchases(list)
	m.priceLists[string(key)] = list
	return list
}

// withinLimits keeps the types that are no larger than the chosen one. If these do not satisfy minValues, it keeps all
// types that fit the limits.
func (r *run) withinLimits(m *market, kinds bitset.Set, chosen int) bitset.Set {
	small := kinds.Clone()
	m.dropLarger(small, m.pool.Types.Total[chosen])
	if m.diverse(small).OK() {
		return small
	}
	small.CopyFrom(kinds)
	for t := range kinds.All() {
		if _, ok := m.within(m.pool.Types.Total[t]); !ok {
			small.Remove(t)
		}
	}
	return small
}

// dropLarger keeps the types that are, in the limited resources, no larger than the chosen one: the limit counts the
// largest type of the list.
func (m *market) dropLarger(set bitset.Set, chosen quantity.Vector) {
	for t := range set.Clone().All() {
		total := m.pool.Types.Total[t]
		for r, left := range m.remaining {
			if left != model.NoLimit && total.At(quantity.Resource(r)) > chosen.At(quantity.Resource(r)) {
				set.Remove(t)
			}
		}
	}
}

// joinBins places lots into open bins: pods with affinity to the content and, in later rounds, all pods that were not
// placed otherwise. A bin may change to a larger one of its types for them.
func (r *run) joinBins(lots []*lot, round int) {
	for _, l := range lots {
		if round == 0 && !r.joinFirst && len(l.rules.hostAffinities) == 0 {
			continue
		}
		r.joinOpen(l)
	}
}

// joinRest places the rest of the lots into open bins of their domains, before takeBack shuts those. Packing places
// pods only into bins of types that are launched for them, but other pods of the plan may have opened bins of other
// types, for example with devices. Otherwise the next plan would place the pods on the nodes of such bins; then the
// topology spread of their group would permit further nodes, and that plan would launch them.
func (r *run) joinRest(lots []*lot) {
	for _, l := range lots {
		if l.to != nil && !l.capped {
			r.joinOpen(l)
		}
	}
}

func (r *run) joinOpen(l *lot) {
	for _, b := range r.bins {
		if len(l.left) == 0 || r.over() {
			return
		}
		r.joinBin(l, b)
	}
}

// joining is the change of an open bin by pods of a lot: how many are added, and the row and types that remain then.
type joining struct {
	count int
	row   label.Row
	kinds bitset.Set
}

func (r *run) joinBin(l *lot, b *bin) {
	with, some := r.joinedBy(l, b)
	if !some {
		return
	}
	b.row, b.kinds = with.row, with.kinds
	if b.holds == "" {
		b.lowest = b.market.lowestPrice(b.kinds, b.row)
	}
	r.recharge(b)
	b.free = r.widest(b).Sub(b.used)
	r.fillUp(b, l.task, with.count)
	b.shares = append(b.shares, share{l.task, l.take(with.count)})
	r.counters.addHosts(l.rules, with.count)
}

// joinedBy returns the change of the bin by pods of the lot, for the first row of the lot that fits, and whether there
// is one.
func (r *run) joinedBy(l *lot, b *bin) (joining, bool) {
	r.worked(1)
	if _, no := r.untolerated(l.task, b.market.pool.Taints); no {
		return joining{}, false
	}
	if limit, _ := r.onHost(l.task, &b.tally, false); limit == 0 {
		return joining{}, false
	}
	for _, wish := range l.rows {
		row := make(label.Row, r.snap.Space.Words())
		if !r.snap.Space.And(row, b.row, wish) {
			continue
		}
		if count, kinds := r.roomIn(l, b, row); count > 0 {
			return joining{count: count, row: row, kinds: kinds}, true
		}
	}
	return joining{}, false
}

// widest returns, per resource, the most that some type of the bin has.
func (r *run) widest(b *bin) quantity.Vector {
	var most quantity.Vector
	for t := range b.kinds.All() {
		most = most.Raise(b.market.pool.Net[t])
	}
	return most
}

// roomIn returns how many pods of the lot fit into the bin when its row narrows, and the types that remain then.
func (r *run) roomIn(l *lot, b *bin, row label.Row) (int, bitset.Set) {
	free := place{free: r.widest(b).Sub(b.used), tally: b.tally, ports: b.ports, claims: b.claims}
	for count := min(r.fitsPlace(l.task, &free, false).Count, len(l.left)); count > 0; count /= 2 {
		used := b.used.Add(l.group.Requests.Scaled(int64(count))).Add(r.sharedVolumes(l.task, &b.place))
		kinds := r.kindsFor(b.market, b, row, used)
		kinds.AndWith(b.kinds)
		b.market.dropTaken(kinds, l.group.HostPorts)
		if r.crewed() && r.clashes(b.market, row, kinds, append(b.tasks(), l.task)...) {
			return 0, nil
		}
		if !kinds.Empty() && (r.opts.RelaxMinValues || b.market.diverse(kinds).OK()) {
			return count, kinds
		}
	}
	return 0, nil
}
