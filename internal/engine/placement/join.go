package placement

import (
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

// joinRest places the rest of the batches into open bins of their domains, before takeBack shuts those. Packing places
// pods only into bins of types that are launched for them, but other pods of the plan may have opened bins of other
// types, for example with devices. Otherwise the next plan would place the pods on the nodes of such bins; then the
// topology spread of their group would permit further nodes, and that plan would launch them.
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
	b.placed = append(b.placed, placedPods{batch.pending, batch.take(with.count)})
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
