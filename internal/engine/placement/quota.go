package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Limits beyond those of one pool. An account is what a limit leaves: each pool has one, and each CapacityQuota has one
// that all pools share. A node is charged to each quota whose labels it may get: a bin may become several types in
// several zones. If the quotas have no room for all of these, the bin is narrowed to the offering that it was chosen
// for. The front of an offer has offerings of each combination of quotas, so that a more expensive one outside a quota
// that is used up can be chosen. Without quotas, all of this costs nothing.

// account is what a limit leaves.
type account struct {
	// remaining of each limited resource, model.NoLimit for others; nodes likewise.
	remaining []int64
	nodes     int64
}

func newAccount(limit []int64, used quantity.Vector, nodeLimit int64, nodes int) account {
	a := account{nodes: model.NoLimit, remaining: slices.Clone(limit)}
	if nodeLimit != model.NoLimit {
		a.nodes = max(0, nodeLimit-int64(nodes))
	}
	for r, most := range a.remaining {
		if most != model.NoLimit {
			a.remaining[r] = max(0, most-used.At(quantity.Resource(r)))
		}
	}
	return a
}

// within reports whether a node with that capacity is within the limits, and returns the first exceeded resource.
func (a *account) within(total quantity.Vector) (quantity.Resource, bool) {
	for r, left := range a.remaining {
		if left != model.NoLimit && total.At(quantity.Resource(r)) > left {
			return quantity.Resource(r), false
		}
	}
	return 0, true
}

// refund returns the charged capacity of so many nodes to the limits.
func (a *account) refund(total quantity.Vector, nodes int64) {
	for r, left := range a.remaining {
		if left != model.NoLimit {
			a.remaining[r] = left + total.At(quantity.Resource(r))
		}
	}
	if a.nodes != model.NoLimit {
		a.nodes += nodes
	}
}

func (a *account) clone() account {
	return account{remaining: slices.Clone(a.remaining), nodes: a.nodes}
}

// charge subtracts a node's capacity from the limits.
func (a *account) charge(total quantity.Vector) {
	for r, left := range a.remaining {
		if left != model.NoLimit {
			a.remaining[r] = max(0, left-total.At(quantity.Resource(r)))
		}
	}
	if a.nodes != model.NoLimit {
		a.nodes--
	}
}

// quotas are the accounts of the quotas, in the order of the snapshot.
type quotas []account

func newQuotas(snap *model.Snapshot) quotas {
	var list quotas
	for _, q := range snap.Quotas {
		list = append(list, newAccount(q.Limit, q.Used, q.NodeLimit, q.Nodes))
	}
	return list
}

func (q quotas) clone() quotas {
	c := slices.Clone(q)
	for i := range c {
		c[i] = c[i].clone()
	}
	return c
}

// admit reports whether each of the quotas has room for a node with that capacity.
func (q quotas) admit(which []int, total quantity.Vector) bool {
	return !slices.ContainsFunc(which, func(i int) bool {
		_, within := q[i].within(total)
		return !within || q[i].nodes == 0
	})
}

func (q quotas) charge(which []int, total quantity.Vector) {
	for _, i := range which {
		q[i].charge(total)
	}
}

func (q quotas) refund(which []int, total quantity.Vector, nodes int64) {
	for _, i := range which {
		q[i].refund(total, nodes)
	}
}

// quotaRules are the quotas that may count nodes of a pool, and what they and its own limits limit.
type quotaRules struct {
	snap *model.Snapshot
	// counting are the indexes of the quotas.
	counting []int
	// scarceList are the limited resources, without the price. usd is the number of the price, negative if it is not limited.
	scarceList []quantity.Resource
	usd        int
	// known caches the quotas of offerings.
	known map[offeringOf][]int
}

// offeringOf is an offering on nodes of the row of an offer.
type offeringOf struct {
	offer       *offer
	kind, class int
}

func newQuotaRules(snap *model.Snapshot, p *model.Pool) quotaRules {
	q := quotaRules{snap: snap, usd: -1}
	limited := [][]int64{p.Limit}
	for i, quota := range snap.Quotas {
		if p.Types != nil && quota.Counts(snap.Space, p.Start) {
			q.counting, limited = append(q.counting, i), append(limited, quota.Limit)
		}
	}
	usd, known := snap.LimitsUSD()
	for r := range snap.Resources {
		switch r := quantity.Resource(r); {
		case !slices.ContainsFunc(limited, func(l []int64) bool { return int(r) < len(l) && l[r] != model.NoLimit }):
		case known && r == usd:
			q.usd = int(r)
		default:
			q.scarceList = append(q.scarceList, r)
		}
	}
	return q
}

// quotasOf returns the quotas that may count a node of the row and the types.
func (ps *poolState) quotasOf(row label.Row, kinds bitset.Set) []int {
	if len(ps.counting) == 0 {
		return nil
	}
	hull := ps.spec.Types.Hull(row, kinds)
	return slices.DeleteFunc(slices.Clone(ps.counting), func(i int) bool { return !ps.snap.Quotas[i].Counts(ps.snap.Space, hull) })
}

// quotasOfOffering returns the quotas that may count a node of the offering.
func (ps *poolState) quotasOfOffering(o *offer, p typeOffering) []int {
	if len(ps.counting) == 0 {
		return nil
	}
	at := offeringOf{o, p.kind, p.class}
	list, known := ps.known[at]
	if !known {
		if ps.known == nil {
			ps.known = map[offeringOf][]int{}
		}
		list = ps.quotasOf(ps.pinned(o.row, p.class), ps.only(p.kind))
		ps.known[at] = list
	}
	return list
}

// pinned returns the row narrowed to the class.
func (ps *poolState) pinned(row label.Row, class int) label.Row {
	row = slices.Clone(row)
	ps.spec.Types.Classes[class].Pin(ps.snap.Space, row)
	return row
}

func (ps *poolState) only(kind int) bitset.Set {
	set := bitset.New(ps.spec.Types.Len())
	set.Add(kind)
	return set
}

// use returns what a node of the offering counts.
func (ps *poolState) use(p typeOffering) quantity.Vector {
	return ps.withPrice(ps.spec.Types.Total[p.kind], p.price)
}

// withPrice returns the capacity with the price, if that is limited.
func (ps *poolState) withPrice(total quantity.Vector, price int64) quantity.Vector {
	if ps.usd < 0 {
		return total
	}
	v := make(quantity.Vector, max(len(total), ps.usd+1))
	copy(v, total)
	v[ps.usd] = price
	return v
}

// holdsNode reports whether a node of the offering is within the limits of the pool and of all quotas.
func (ps *poolState) holdsNode(o *offer, p typeOffering) bool {
	use := ps.use(p)
	_, within := ps.within(use)
	return within && ps.quotas.admit(ps.quotasOfOffering(o, p), use)
}

// holdsInstead reports whether the bin may be a node of the offering instead.
func (ps *poolState) holdsInstead(b *bin, p typeOffering) bool {
	more := ps.use(p).Sub(b.charged)
	if _, within := ps.within(more); !within {
		return false
	}
	return !slices.ContainsFunc(ps.quotasOf(ps.pinned(b.row, p.class), ps.only(p.kind)), func(i int) bool {
		_, within := ps.quotas[i].within(more)
		return !within || !slices.Contains(b.quotas, i)
	})
}

// withinQuotas narrows a bin that is about to be opened to its offering if the limits have no room for all that it may
// become. It returns the types, the capacity that counts and the quotas.
func (f *fleet) withinQuotas(ps *poolState, b *bin, kinds bitset.Set) (bitset.Set, quantity.Vector, []int) {
	largest, counted := ps.largest(kinds, b.row), ps.quotasOf(b.row, kinds)
	if len(ps.counting) == 0 && ps.usd < 0 || kinds.Empty() {
		return kinds, largest, counted
	}
	if _, within := ps.within(largest); within && ps.quotas.admit(counted, largest) {
		return kinds, largest, counted
	}
	return f.narrowed(ps, b)
}

// narrowed narrows a bin to its offering, and returns as withinQuotas does.
func (f *fleet) narrowed(ps *poolState, b *bin) (bitset.Set, quantity.Vector, []int) {
	ps.spec.Types.Classes[b.class].Pin(f.snap.Space, b.row)
	kinds := f.kindsFor(ps, b, b.row, b.used)
	ps.dropLarger(kinds, ps.spec.Types.Total[b.kind])
	ps.keepCounted(kinds, b.row, ps.quotasOf(b.row, ps.only(b.kind)))
	for t := range kinds.Clone().All() {
		if ps.usd >= 0 && ps.spec.Types.Classes[b.class].Price[t] > b.price {
			kinds.Remove(t)
		}
	}
	kinds = f.cut(ps, kinds, b.row)
	return kinds, ps.largest(kinds, b.row), ps.quotasOf(b.row, kinds)
}

// keepCounted keeps the types whose nodes only the given quotas count.
func (ps *poolState) keepCounted(kinds bitset.Set, row label.Row, counted []int) {
	if len(ps.counting) == 0 {
		return
	}
	for t := range kinds.Clone().All() {
		if slices.ContainsFunc(ps.quotasOf(row, ps.only(t)), func(i int) bool { return !slices.Contains(counted, i) }) {
			kinds.Remove(t)
		}
	}
}

// beatsInLimits reports whether the offering uses no more than the other of what is limited.
func (ps *poolState) beatsInLimits(o *offer, q, p typeOffering) bool {
	total := ps.spec.Types.Total
	for _, r := range ps.scarceList {
		if total[q.kind].At(r) > total[p.kind].At(r) {
			return false
		}
	}
	if len(ps.counting) == 0 {
		return true
	}
	other := ps.quotasOfOffering(o, p)
	return !slices.ContainsFunc(ps.quotasOfOffering(o, q), func(i int) bool { return !slices.Contains(other, i) })
}

// byQuotas splits classes by the quotas that may count their nodes: a price list has only the cheapest offering of a
// type.
func (ps *poolState) byQuotas(row label.Row, classes []int) [][]int {
	if len(ps.counting) == 0 {
		return [][]int{classes}
	}
	var lists [][]int
	var like [][]int
	for _, class := range classes {
		pinned := ps.pinned(row, class)
		counted := slices.DeleteFunc(slices.Clone(ps.counting), func(i int) bool { return !ps.snap.Quotas[i].Counts(ps.snap.Space, pinned) })
		at := slices.IndexFunc(like, func(other []int) bool { return slices.Equal(other, counted) })
		if at < 0 {
			at, like, lists = len(like), append(like, counted), append(lists, nil)
		}
		lists[at] = append(lists[at], class)
	}
	return lists
}

// quotaVerdict returns the verdict of the first quota without room for a node with that capacity.
func (ps *poolState) quotaVerdict(which []int, total quantity.Vector) plan.Verdict {
	for _, i := range which {
		a, quota := &ps.quotas[i], ps.snap.Quotas[i]
		if a.nodes == 0 {
			return plan.Verdict{Code: plan.QuotaReached, Quota: quota.Name, Name: model.ResourceNodes, Need: 1}
		}
		if r, within := a.within(total); !within {
			return plan.Verdict{Code: plan.QuotaReached, Quota: quota.Name, Name: ps.snap.Resources[r], Need: total.At(r), Have: a.remaining[r]}
		}
	}
	return plan.Verdict{}
}
