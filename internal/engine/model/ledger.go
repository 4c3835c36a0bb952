package model

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Ledger is what the nodes use of the limits of pools and CapacityQuotas: resources, nodes and USD per hour. Each pool and
// each quota has an account, with a line for each of its limits.
//
// A node counts in its pool, and in every quota that selects its labels. A claim in flight, and one that is only planned,
// counts as the largest and most expensive node that it may become, in every quota that may select it. A node that is
// being deleted does not count, because its pods need another one before it can go. In a static pool, where nodes replace
// each other regardless of pods, it counts in the limits of its pool until its machine is gone. A node that a command is
// about to remove counts: its replacement must fit beside it.
//
// A planner charges what it launches and releases what it gives back, in a clone if that is a trial. The ledger of a
// snapshot is never charged. The copy of a Ledger is the same ledger; the zero value has no accounts.
type Ledger struct {
	*accounts
	// used by line.
	used []int64
}

// accounts are the limits of a ledger, which its clones share.
type accounts struct {
	space *label.Space
	// pools are the accounts by the name of the pool; the accounts of the quotas follow.
	pools  map[string]Account
	quotas []*Quota
	list   []account
	lines  []line
	// order are the accounts, for lists of one.
	order []Account
	// priced: some limit is one on USD per hour.
	priced bool
}

// Account is that of a pool or a quota: its number in the ledgers of a snapshot and of those derived from it.
type Account int

// account has the lines from begin to end, the first of which counts nodes.
type account struct {
	begin, end int
	static     bool
}

// line is a limit, NoLimit for none.
type line struct {
	name     string
	resource quantity.Resource
	limit    int64
	unit     unit
}

// unit says what a line counts.
type unit uint8

const (
	amounts unit = iota
	nodeCount
	prices
)

// Use is what one node, or the change of one, uses of accounts. Price is in nano-USD per hour.
type Use struct {
	Accounts []Account
	Total    quantity.Vector
	Price    int64
	Nodes    int64
}

// of returns what the line counts of the use.
func (u *Use) of(l *line) int64 {
	switch l.unit {
	case nodeCount:
		return u.Nodes
	case prices:
		return u.Price
	}
	return u.Total.At(l.resource)
}

// Line is one limit of an account. Resource is meaningless if Name is ResourceNodes.
type Line struct {
	Name        string
	Resource    quantity.Resource
	Limit, Used int64
}

// Left returns what the limit leaves.
func (l *Line) Left() int64 { return max(0, l.Limit-l.Used) }

// Shortage is a line that does not admit a use, and what the use needs of it.
type Shortage struct {
	Account Account
	Line
	Need int64
}

// newLedger returns the ledger of the pools and the quotas, with nothing used.
func newLedger(space *label.Space, resources *quantity.Table, pools []*Pool, quotas []*Quota) Ledger {
	of := &accounts{space: space, pools: make(map[string]Account, len(pools)), quotas: quotas}
	for i, p := range pools {
		of.pools[p.Name] = Account(i)
		of.open(resources, p.Limits, p.Static)
	}
	for _, q := range quotas {
		of.open(resources, q.Limits, false)
	}
	return Ledger{of, make([]int64, len(of.lines))}
}

// open adds an account.
func (a *accounts) open(resources *quantity.Table, limits []quantity.Amount, static bool) {
	begin := len(a.lines)
	a.lines = append(a.lines, line{ResourceNodes, 0, NoLimit, nodeCount})
	for _, most := range limits {
		if most.Name == ResourceNodes {
			a.lines[begin].limit = most.Value
			continue
		}
		of := line{most.Name, resources.Intern(most.Name), most.Value, amounts}
		if most.Name == ResourceUSD {
			of.unit, a.priced = prices, true
		}
		a.lines = append(a.lines, of)
	}
	slices.SortStableFunc(a.lines[begin+1:], func(x, y line) int { return int(x.resource) - int(y.resource) })
	a.order = append(a.order, Account(len(a.list)))
	a.list = append(a.list, account{begin, len(a.lines), static})
}

// Clone returns a ledger that may be charged without effect on this one.
func (l Ledger) Clone() Ledger {
	l.used = slices.Clone(l.used)
	return l
}

// Adopt takes over what another ledger of the same accounts counts.
func (l Ledger) Adopt(other Ledger) { copy(l.used, other.used) }

// Admit reports whether every limit admits the use.
func (l Ledger) Admit(u Use) bool {
	_, at := l.over(&u)
	return at < 0
}

// Shortage returns the first limit that does not admit the use. It returns false if there is none.
func (l Ledger) Shortage(u Use) (Shortage, bool) {
	a, at := l.over(&u)
	if at < 0 {
		return Shortage{}, false
	}
	return Shortage{a, l.line(at), u.of(&l.lines[at])}, true
}

// over returns the first line that does not admit the use, and its account; negative for none.
func (l Ledger) over(u *Use) (Account, int) {
	for _, a := range u.Accounts {
		for i := l.list[a].begin; i < l.list[a].end; i++ {
			if most := l.lines[i].limit; most != NoLimit && u.of(&l.lines[i]) > max(0, most-l.used[i]) {
				return a, i
			}
		}
	}
	return -1, -1
}

// Charge adds the use.
func (l Ledger) Charge(u Use) {
	for _, a := range u.Accounts {
		for i := l.list[a].begin; i < l.list[a].end; i++ {
			l.used[i] = quantity.Add(l.used[i], u.of(&l.lines[i]))
		}
	}
}

// Release subtracts the use.
func (l Ledger) Release(u Use) {
	for _, a := range u.Accounts {
		for i := l.list[a].begin; i < l.list[a].end; i++ {
			l.used[i] = quantity.Sub(l.used[i], u.of(&l.lines[i]))
		}
	}
}

// With returns a clone in which the nodes count, Without one in which they do not.
func (l Ledger) With(nodes ...*Node) Ledger {
	l = l.Clone()
	for _, n := range nodes {
		l.Charge(l.useOf(n))
	}
	return l
}

// Without is the opposite of With.
func (l Ledger) Without(nodes ...*Node) Ledger {
	l = l.Clone()
	for _, n := range nodes {
		l.Release(l.useOf(n))
	}
	return l
}

// useOf returns what the node counts.
func (l Ledger) useOf(n *Node) Use {
	u := Use{Total: n.Total, Price: n.Price, Nodes: 1}
	own := l.Own(n.Pool)
	switch {
	case !n.Deleting:
		u.Accounts = l.counting(own, n.Row)
	case len(own) > 0 && l.list[own[0]].static:
		u.Accounts = own
	}
	return u
}

// Largest returns what the largest and most expensive node of the types counts whose labels the row may have.
func (l Ledger) Largest(pool *Pool, row label.Row, types bitset.Set) Use {
	u := Use{Accounts: l.counting(l.Own(pool.Name), row), Nodes: 1}
	if pool.Types != nil {
		u.Total, u.Price = pool.Types.Largest(row, types, l.priced)
	}
	return u
}

// counting returns the own account and those of the quotas that may count a node of the row.
func (l Ledger) counting(own []Account, row label.Row) []Account {
	for i, q := range l.quotas {
		if q.Counts(l.space, row) {
			own = append(own, Account(len(l.pools)+i))
		}
	}
	return own
}

// Own returns the account of the pool as a list that must not be changed; it is empty if the ledger has no such pool.
func (l Ledger) Own(pool string) []Account {
	if l.accounts == nil {
		return nil
	}
	a, known := l.pools[pool]
	if !known {
		return nil
	}
	return l.order[a : a+1 : a+1]
}

// AccountOf returns the account of a quota of the snapshot.
func (l Ledger) AccountOf(q *Quota) Account { return Account(len(l.pools) + slices.Index(l.quotas, q)) }

// Quota returns the quota of the account, nil for a pool.
func (l Ledger) Quota(a Account) *Quota {
	if i := int(a) - len(l.pools); i >= 0 {
		return l.quotas[i]
	}
	return nil
}

// Nodes returns the line of the account that counts nodes, also if they are not limited.
func (l Ledger) Nodes(a Account) Line { return l.line(l.list[a].begin) }

// Lines returns the limits of the accounts: in each, that on nodes first, then by resource.
func (l Ledger) Lines(of ...Account) []Line {
	var lines []Line
	for _, a := range of {
		for i := l.list[a].begin; i < l.list[a].end; i++ {
			if l.lines[i].limit != NoLimit {
				lines = append(lines, l.line(i))
			}
		}
	}
	return lines
}

func (l Ledger) line(i int) Line {
	return Line{l.lines[i].name, l.lines[i].resource, l.lines[i].limit, l.used[i]}
}

// Part returns the largest part of what limits leave that the use takes, of limits that leave something.
func (l Ledger) Part(u Use) float64 {
	part := 0.0
	for _, a := range u.Accounts {
		for i := l.list[a].begin; i < l.list[a].end; i++ {
			if left := l.lines[i].limit - l.used[i]; l.lines[i].limit != NoLimit && left > 0 {
				part = max(part, float64(u.of(&l.lines[i]))/float64(left))
			}
		}
	}
	return part
}

// Use returns what limits count for a claim with the specification that lists the types. One that lists none may become
// any type of its pool, which matters for quotas: pools of such claims limit the number of nodes only. If the snapshot
// cannot tell the labels of the claim's node, they may be any of the pool.
func (s *Snapshot) Use(spec NodeSpec, types []string) Use {
	pool := s.Pool(spec.Pool)
	if pool == nil {
		return Use{}
	}
	own := s.Ledger.Own(pool.Name)
	if len(s.Quotas) == 0 && (len(pool.Limits) == 0 || len(types) == 0) {
		return Use{Accounts: own, Nodes: 1}
	}
	if pool.Types == nil {
		return Use{Accounts: s.Ledger.counting(own, pool.Start), Nodes: 1}
	}
	set := pool.Eligible
	if len(types) > 0 {
		set = pool.Types.named(types)
	}
	row := pool.Start
	if pool.Rooms != nil && (s.Ledger.priced || len(s.Quotas) > 0) {
		if n := s.future(pool, spec, set); n != nil {
			row = n.Row
		}
	}
	return s.Ledger.Largest(pool, row, set)
}
