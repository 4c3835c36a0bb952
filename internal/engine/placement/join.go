package placement

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// joinBins places batches into open bins: pods with affinity to the content and, in later rounds, all pods that were
// not placed otherwise. A bin may change to a larger one of its types for them.
func (f *fleet) joinBins(batches []*domainBatch, everything bool) {
	for _, batch := range batches {
		if everything || len(batch.pending.rules.hostAffinities) > 0 {
			f.joinOpen(batch)
		}
	}
}

// joinRest places the rest of the batches into open bins of their domains, before returnUnplaced shuts those. Packing
// places pods only into bins of types that are launched for them, but other pods of the plan may have opened bins of
// other types, for example with devices. Otherwise the next plan would place the pods on the nodes of such bins; then
// the topology spread of their group would permit further nodes, and that plan would launch them.
func (f *fleet) joinRest(batches []*domainBatch) {
	for _, batch := range batches {
		if batch.domain != nil && !batch.capped {
			f.joinOpen(batch)
		}
	}
}

func (f *fleet) joinOpen(batch *domainBatch) {
	for _, b := range f.bins {
		if len(batch.left) == 0 || f.budget.over() {
			return
		}
		f.joinBin(batch, b)
	}
}

// joining is the change of an open bin by pods of a batch: how many are added, and the row and types that remain then.
type joining struct {
	count int
	row   label.Row
	kinds bitset.Set
}

func (f *fleet) joinBin(batch *domainBatch, b *bin) {
	with, some := f.joinedBy(batch, b)
	if !some {
		return
	}
	b.row, b.kinds = with.row, with.kinds
	if b.reservation == "" {
		b.lowest = f.poolOf(b).lowestPrice(b.kinds, b.row)
	}
	f.recharge(b)
	b.free = f.widest(b).Sub(b.used)
	f.fillUp(b, batch.pending, with.count)
	b.placed = append(b.placed, placedPods{batch.pending, batch.removeFirst(with.count)})
	f.counters.addHosts(batch.pending.rules, with.count)
}

// joinedBy returns the change of the bin by pods of the batch, for the first row of the batch that fits, and whether
// there is one.
func (f *fleet) joinedBy(batch *domainBatch, b *bin) (joining, bool) {
	f.budget.spend(1)
	if _, no := batch.pending.untolerated(f.poolOf(b).spec.Taints); no {
		return joining{}, false
	}
	if _, no := f.poolOf(b).repels(batch.pending.group.Tolerations); no {
		return joining{}, false
	}
	if limit, _ := f.fit.admission.onHost(batch.pending.rules, &b.tally, false); limit == 0 {
		return joining{}, false
	}
	f.budget.spendRows(batch.rows)
	for _, wish := range batch.rows {
		row := make(label.Row, f.snap.Space.Words())
		if !f.snap.Space.And(row, b.row, wish) {
			continue
		}
		if count, kinds := f.roomIn(batch, b, row); count > 0 {
			return joining{count: count, row: row, kinds: kinds}, true
		}
	}
	return joining{}, false
}

// roomIn returns how many pods of the batch fit into the bin when its row narrows, and the types that remain then.
func (f *fleet) roomIn(batch *domainBatch, b *bin, row label.Row) (int, bitset.Set) {
	free := place{free: f.widest(b).Sub(b.used), tally: b.tally, ports: b.ports, claims: b.claims}
	for count := min(f.fit.place(batch.pending, &free, false).Count, len(batch.left)); count > 0; count /= 2 {
		used := b.used.Add(batch.pending.group.Requests.Scaled(int64(count))).Add(f.fit.sharedVolumes(batch.pending, &b.place))
		kinds := f.kindsFor(f.poolOf(b), b, row, used)
		kinds.AndWith(b.kinds)
		f.poolOf(b).dropTaken(kinds, row, batch.pending.group.HostPorts)
		if f.anyDaemons() && f.daemonsClash(f.poolOf(b), row, kinds, append(b.groups(), batch.pending)...) {
			return 0, nil
		}
		if !f.unsuitable(b, kinds, row) {
			return count, kinds
		}
	}
	return 0, nil
}

// Local repair. Greedy filling ends with bins that hold little. Sets of the worst of them and of the last ones are
// tried as one bin: their content may cost less on one larger node, because each node has a price of its own.

// worst is how many bins of a packing are tried with each other.
const worst = 10

// merge joins bins opened since from while that reduces the cost, and reports whether there were any.
func (l *launcher) merge(pools []*poolState, from int, value []float64) bool {
	known := map[[2]*bin]*bin{}
	for merged := false; ; merged = true {
		if l.budget.over() {
			return merged
		}
		bins := slices.DeleteFunc(slices.Clone(l.fleet.bins[from:]), func(b *bin) bool { return !b.mayJoin(l.fleet.poolOf(b)) })
		sets := slices.DeleteFunc(setsOf(bins, l.worstFirst(bins, value)), func(set []*bin) bool { return l.cannotSave(set, value) })
		set, joined := l.bestSet(pools, sets, known)
		if joined == nil {
			return merged
		}
		l.fleet.exchange(set, joined)
	}
}

// setsOf lists the sets of bins that are tried as one: each pair of the worst, and the first and last of both lists.
func setsOf(opened, worstFirst []*bin) [][]*bin {
	var sets [][]*bin
	worstFirst = worstFirst[:min(worst, len(worstFirst))]
	for i, x := range worstFirst {
		for _, y := range worstFirst[i+1:] {
			sets = append(sets, []*bin{x, y})
		}
	}
	for n := 3; n <= min(worst, len(opened)); n++ {
		sets = append(sets, worstFirst[:n], opened[len(opened)-n:])
	}
	return sets
}

// worstFirst sorts the bins by the price per value of their content, the highest first.
func (l *launcher) worstFirst(bins []*bin, value []float64) []*bin {
	ratio := make(map[*bin]float64, len(bins))
	for _, b := range bins {
		ratio[b] = float64(b.lowest+l.fleet.poolOf(b).nodePrice) / worth(b.used, value)
	}
	list := slices.Clone(bins)
	slices.SortStableFunc(list, func(a, b *bin) int { return cmp.Compare(ratio[b], ratio[a]) })
	return list
}

// mayJoin reports whether the content of the bin may be placed with that of others. Pods that need certain pods on
// their host, share volumes, or use a reservation stay.
func (b *bin) mayJoin(ps *poolState) bool {
	if ps.spotShare != nil || ps.spec.Types.Classes[b.class].ReservationID != "" {
		return false
	}
	return !slices.ContainsFunc(b.placed, func(s placedPods) bool {
		return len(s.pending.rules.hostAffinities) > 0 || len(s.pending.group.Shared) > 0
	})
}

// cannotSave reports whether the value of the content, which no node costs less than, is what the bins cost already.
func (l *launcher) cannotSave(set []*bin, value []float64) bool {
	content := 0.0
	for _, b := range set {
		content += worth(b.used, value)
	}
	return content >= float64(l.costOf(set))
}

// costOf returns what the bins cost, nano-USD per hour.
func (l *launcher) costOf(set []*bin) int64 {
	cost := int64(0)
	for _, b := range set {
		cost += b.lowest + l.fleet.poolOf(b).nodePrice
	}
	return cost
}

// bestSet returns the set with the largest saving when it is one bin of a pool, and that bin; nil when there is none.
// known are pairs as one bin, from earlier calls.
func (l *launcher) bestSet(pools []*poolState, sets [][]*bin, known map[[2]*bin]*bin) (best []*bin, joined *bin) {
	var most int64
	bounded := slices.ContainsFunc(pools, (*poolState).bounded) // then a pair may become possible when others are joined
	for _, set := range sets {
		pair := [2]*bin{set[0], set[1]}
		one, has := known[pair]
		if has = has && len(set) == 2 && !bounded; !has {
			one = l.cheapestAsOne(pools, set)
		}
		if len(set) == 2 {
			known[pair] = one
		}
		if one == nil {
			continue
		}
		if saving := l.costOf(set) - l.costOf([]*bin{one}); saving > most {
			best, joined, most = set, one, saving
		}
	}
	return best, joined
}

// mostMerged is up to how many pools a bin of several may be in any of them; with more, in those that the bins are in.
const mostMerged = 8

// joinWork is the work of trying one pool for a set of bins, as a number of evaluations.
const joinWork = 100

// cheapestAsOne returns the cheapest bin with the content of all, nil when no pool has one.
func (l *launcher) cheapestAsOne(pools []*poolState, set []*bin) *bin {
	var best *bin
	for _, ps := range pools {
		inPool := func(b *bin) bool { return b.pool == ps.index }
		if ps.spotShare != nil || len(pools) > mostMerged && !slices.ContainsFunc(set, inPool) {
			continue
		}
		l.budget.spend(joinWork)
		if one := l.asOne(ps, set); one != nil && (best == nil || l.costOf([]*bin{one}) < l.costOf([]*bin{best})) {
			best = one
		}
	}
	return best
}

// kindFor returns a type of the pool that decides whether the content of the bins may be on special types: one that a bin
// of the pool has, a special one first. Bins of other pools alone get no special types.
func (l *launcher) kindFor(ps *poolState, set []*bin) (kind int, found bool) {
	for _, b := range set {
		if b.pool == ps.index && (!found || ps.special.Has(b.kind)) {
			kind, found = b.kind, true
		}
	}
	if found {
		return kind, true
	}
	plain := ps.spec.Eligible.Clone()
	plain.AndNotWith(ps.special)
	for kind := range plain.All() {
		return kind, true
	}
	return 0, false
}

// asOne returns a bin of the pool with the content of all, nil when no type can hold it.
func (l *launcher) asOne(ps *poolState, set []*bin) *bin {
	kind, found := l.kindFor(ps, set)
	if !found {
		return nil
	}
	f, one := l.fleet, &bin{pool: ps.index, typeOffering: typeOffering{kind: kind}, row: slices.Clone(ps.spec.Start)}
	addDaemons(&one.tally, ps.daemons)
	for _, b := range set {
		if !l.addContent(one, ps, b) {
			return nil
		}
	}
	kinds := f.cut(ps, f.kindsFor(ps, one, one.row, one.used), one.row)
	if kinds.Empty() || f.anyDaemons() && f.daemonsClash(ps, one.row, kinds, one.groups()...) {
		return nil
	}
	for cheapest := range ps.cheapestFirst(kinds, one.row) {
		one.typeOffering = cheapest
		break
	}
	if ps.limited() {
		kinds = f.withinLimits(ps, one, kinds, one.kind)
	}
	one.kinds, one.use = f.withinQuotas(ps, one, kinds)
	if f.unsuitable(one, one.kinds, one.row) || !f.permits(set, one) {
		return nil
	}
	one.lowest = ps.lowestPrice(one.kinds, one.row)
	one.free = f.widest(one).Sub(one.used)
	return one
}

// addContent adds the content of b to a bin of the pool, and reports whether the rules by host, the ports and the labels
// permit it.
func (l *launcher) addContent(one *bin, ps *poolState, b *bin) bool {
	if !l.narrowFor(one.row, ps, b) {
		return false
	}
	one.used = one.used.Add(b.used)
	for _, s := range b.placed {
		if limit, _ := s.pending.rules.limitOnHost(&one.tally); limit < len(s.pods) || s.pending.anyPortTaken(&one.place) {
			return false
		}
		for _, slot := range s.pending.rules.hostTouched {
			one.tally.Add(slot, len(s.pods))
		}
		one.ports = append(one.ports, s.pending.group.HostPorts...)
	}
	one.placed = append(one.placed, b.placed...)
	return true
}

// narrowFor narrows the row of a bin of the pool for the content of b, and reports whether that is possible.
func (l *launcher) narrowFor(row label.Row, ps *poolState, b *bin) bool {
	if b.pool == ps.index {
		return l.snap.Space.And(row, row, b.row)
	}
	if len(ps.reservations.left) > 0 {
		return false // a bin of this pool must not take one
	}
	both := make(label.Row, len(row))
	for _, batch := range l.batchesOf(b) {
		offers := offersThatHold(ps, batch, l.fleet.offersTo(ps, batch.pending, batch.rows))
		if !slices.ContainsFunc(offers, func(o *offer) bool { return l.snap.Space.And(both, row, o.row) }) {
			return false
		}
		copy(row, both)
	}
	return true
}

// permits reports whether the limits permit the one bin instead of the others.
func (f *fleet) permits(set []*bin, one *bin) bool {
	if !f.poolOf(one).bounded() {
		return true
	}
	trial := f.ledger.Clone()
	for _, b := range set {
		trial.Release(b.use)
	}
	return trial.Admit(one.use)
}

// exchange replaces a set of bins by one, also in the limits.
func (f *fleet) exchange(set []*bin, one *bin) {
	for _, b := range set {
		if f.poolOf(b).bounded() {
			f.giveBack(b)
		}
	}
	f.ledger.Charge(one.use)
	at := slices.Index(f.bins, set[0])
	f.bins[at] = one
	f.bins = slices.DeleteFunc(f.bins, func(b *bin) bool { return slices.Contains(set[1:], b) })
}
