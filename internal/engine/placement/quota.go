package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Limits of pools and quotas. A node is charged to its pool and to each quota whose labels it may get: a bin may become
// several types in several zones. If the quotas do not admit all of these, the bin is narrowed to the offering that it
// was chosen for. The front of an offer has offerings of each combination of quotas, so that a more expensive one outside a
// quota that is used up can be chosen. Without quotas, all of this costs nothing.

// limitRules are the limits that may count nodes of a pool, and what they limit.
type limitRules struct {
	snap *model.Snapshot
	// own is the account of the pool, counting those of the quotas. Both are empty if nothing limits the pool.
	own, counting []model.Account
	// scarceList are the limited resources. limitsPrice says that the price is limited.
	scarceList  []quantity.Resource
	limitsPrice bool
	// known caches the accounts of offerings.
	known map[offeringOf][]model.Account
}

// offeringOf is an offering on nodes of the row of an offer.
type offeringOf struct {
	offer       *offer
	kind, class int
}

func newLimitRules(snap *model.Snapshot, p *model.Pool) limitRules {
	l := limitRules{snap: snap, own: snap.Ledger.Own(p.Name)}
	for _, quota := range snap.Quotas {
		if p.Types != nil && quota.Counts(snap.Space, p.Start) {
			l.counting = append(l.counting, snap.Ledger.AccountOf(quota))
		}
	}
	lines := append(snap.Ledger.Lines(l.own...), snap.Ledger.Lines(l.counting...)...)
	if len(lines)+len(l.counting) == 0 {
		l.own = nil
	}
	for _, line := range lines {
		switch line.Name {
		case model.ResourceNodes:
		case model.ResourceUSD:
			l.limitsPrice = true
		default:
			l.scarceList = append(l.scarceList, line.Resource)
		}
	}
	slices.Sort(l.scarceList)
	l.scarceList = slices.Compact(l.scarceList)
	return l
}

// accountsOf returns the accounts that may count a node of the row and the types, that of the pool first.
func (ps *poolState) accountsOf(row label.Row, kinds bitset.Set) []model.Account {
	if len(ps.counting) == 0 {
		return ps.own
	}
	return ps.accountsOn(ps.spec.Types.Hull(row, kinds))
}

// accountsOn returns the accounts that may count a node of the row.
func (ps *poolState) accountsOn(row label.Row) []model.Account {
	accounts := ps.own
	for _, a := range ps.counting {
		if ps.ledger.Quota(a).Counts(ps.snap.Space, row) {
			accounts = append(accounts, a)
		}
	}
	return accounts
}

// accountsOfOffering returns the accounts that may count a node of the offering.
func (ps *poolState) accountsOfOffering(o *offer, p typeOffering) []model.Account {
	if len(ps.counting) == 0 {
		return ps.own
	}
	at := offeringOf{o, p.kind, p.class}
	list, known := ps.known[at]
	if !known {
		if ps.known == nil {
			ps.known = map[offeringOf][]model.Account{}
		}
		list = ps.accountsOf(ps.pinned(o.row, p.class), ps.only(p.kind))
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

// full reports whether the limit on nodes of the pool leaves none.
func (ps *poolState) full() bool {
	return len(ps.own) > 0 && !ps.ledger.Admit(model.Use{Accounts: ps.own, Nodes: 1})
}

// use returns what a node of the offering uses of the accounts.
func (ps *poolState) use(accounts []model.Account, p typeOffering) model.Use {
	return model.Use{Accounts: accounts, Total: ps.spec.Types.Total[p.kind], Price: ps.listPrice(p), Nodes: 1}
}

// listPrice returns the price of the offering that limits count.
func (ps *poolState) listPrice(p typeOffering) int64 { return ps.spec.Types.ListPrice(p.kind, p.class) }

// largest returns what a node of the row uses that may become any of the types.
func (ps *poolState) largest(kinds bitset.Set, row label.Row) model.Use {
	if !ps.bounded() {
		return model.Use{}
	}
	total, price := ps.spec.Types.Largest(row, kinds, ps.limitsPrice)
	return model.Use{Accounts: ps.accountsOf(row, kinds), Total: total, Price: price, Nodes: 1}
}

// holdsNode reports whether a node of the offering is within the limits of the pool and of all quotas.
func (ps *poolState) holdsNode(o *offer, p typeOffering) bool {
	return ps.ledger.Admit(ps.use(ps.accountsOfOffering(o, p), p))
}

// holdsInstead reports whether the bin may be a node of the offering instead.
func (ps *poolState) holdsInstead(b *bin, p typeOffering) bool {
	accounts := ps.accountsOf(ps.pinned(b.row, p.class), ps.only(p.kind))
	return contains(b.use.Accounts, accounts) && ps.ledger.Admit(model.Use{Accounts: accounts,
		Total: ps.spec.Types.Total[p.kind].Sub(b.use.Total), Price: ps.listPrice(p) - b.use.Price})
}

// contains reports whether the accounts contain all of the others.
func contains(accounts, others []model.Account) bool {
	return !slices.ContainsFunc(others, func(a model.Account) bool { return !slices.Contains(accounts, a) })
}

// withinQuotas narrows a bin that is about to be opened to its offering if the limits do not admit all that it may
// become. It returns the types and what limits count. The nodes of the pool are counted elsewhere: the bin may replace
// others.
func (f *fleet) withinQuotas(ps *poolState, b *bin, kinds bitset.Set) (bitset.Set, model.Use) {
	use := ps.largest(kinds, b.row)
	if len(ps.counting) == 0 && !ps.limitsPrice || kinds.Empty() {
		return kinds, use
	}
	own, shared := use, use
	own.Accounts, own.Nodes, shared.Accounts = ps.own, 0, use.Accounts[len(ps.own):]
	if f.ledger.Admit(own) && f.ledger.Admit(shared) {
		return kinds, use
	}
	return f.narrowed(ps, b)
}

// narrowed narrows a bin to its offering, and returns as withinQuotas does.
func (f *fleet) narrowed(ps *poolState, b *bin) (bitset.Set, model.Use) {
	ps.spec.Types.Classes[b.class].Pin(f.snap.Space, b.row)
	kinds := f.kindsFor(ps, b, b.row, b.used)
	ps.dropLarger(kinds, ps.spec.Types.Total[b.kind])
	ps.keepCounted(kinds, b.row, ps.accountsOf(b.row, ps.only(b.kind)))
	for t := range kinds.Clone().All() {
		if ps.limitsPrice && ps.spec.Types.ListPrice(t, b.class) > ps.listPrice(b.typeOffering) {
			kinds.Remove(t)
		}
	}
	kinds = f.cut(ps, kinds, b.row)
	return kinds, ps.largest(kinds, b.row)
}

// keepCounted keeps the types whose nodes only the given accounts count.
func (ps *poolState) keepCounted(kinds bitset.Set, row label.Row, counted []model.Account) {
	if len(ps.counting) == 0 {
		return
	}
	for t := range kinds.Clone().All() {
		if !contains(counted, ps.accountsOf(row, ps.only(t))) {
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
	if ps.limitsPrice && ps.listPrice(q) > ps.listPrice(p) {
		return false
	}
	return len(ps.counting) == 0 || contains(ps.accountsOfOffering(o, p), ps.accountsOfOffering(o, q))
}

// byQuotas splits classes by the quotas that may count their nodes: a price list has only the cheapest offering of a
// type.
func (ps *poolState) byQuotas(row label.Row, classes []int) [][]int {
	if len(ps.counting) == 0 {
		return [][]int{classes}
	}
	var lists [][]int
	var like [][]model.Account
	for _, class := range classes {
		counted := ps.accountsOn(ps.pinned(row, class))
		at := slices.IndexFunc(like, func(other []model.Account) bool { return slices.Equal(other, counted) })
		if at < 0 {
			at, like, lists = len(like), append(like, counted), append(lists, nil)
		}
		lists[at] = append(lists[at], class)
	}
	return lists
}
