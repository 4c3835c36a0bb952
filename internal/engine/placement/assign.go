package placement

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Assignment of pods to topology domains, before any packing. For each pod in turn, the rules determine from the live
// counts which domains are admissible, and one is chosen: a domain whose nodes have capacity, within what the rules
// allow; then the one with the fewest pods; then the cheapest. The order of assignment is an order in which
// kube-scheduler would admit the pods.

// domain is a choice: one atom for each key that the task must be pinned to.
type domain struct {
	atoms []int
	// rows are the task's rows in the domain, nil if the run keeps too many; see rowsIn.
	rows []label.Row
	// room is how many more pods of the group the nodes of the domain may take by their free resources, counted up to
	// the number of pods.
	room int
	// buys reports that some pool can launch a node in the domain that holds a pod. price is the price of the cheapest
	// such node.
	buys  bool
	price int64
	// joins: no node has room, and no available offering there holds a pod, but an open bin does. It may have types
	// that are not launched for the pods, or be the last node of a pool's limit or of a reservation.
	joins bool
	id    string
	// counted is, for each counter that the task's pods touch, whether they count there.
	counted []membership
	// nodes are the indexes of the run's nodes that are in the domain.
	nodes []int
}

// assign splits a task into lots, one for each domain that gets pods. Pods without an admissible domain remain in
// t.left.
func (r *run) assign(t *task) []*lot {
	if t.rules.none() {
		l := &lot{task: t, left: t.left, rows: t.rows, first: len(r.order)}
		r.order = append(r.order, t.left...)
		t.left = nil
		return []*lot{l}
	}
	if t.domains == nil {
		t.domains = r.domains(t)
	}
	lots := make([]*lot, len(t.domains))
	rest := t.left[:0:0]
	chooser := r.chooser(t)
	for i, p := range t.left {
		if r.spent() {
			rest, t.unreached = t.left[i:], true
			break
		}
		at := chooser.next()
		if at < 0 {
			rest = t.left[i:]
			break
		}
		if lots[at] == nil {
			lots[at] = &lot{task: t, rows: r.rowsIn(t, t.domains[at]), to: t.domains[at], first: len(r.order),
				expected: t.domains[at].room > 0}
		}
		lots[at].left = append(lots[at].left, p)
		lots[at].turns = append(lots[at].turns, len(r.order))
		r.order = append(r.order, p)
		r.count(t, t.domains[at], 1)
		t.domains[at].room--
	}
	t.left = rest
	return slices.DeleteFunc(lots, func(l *lot) bool { return l == nil })
}

// crowd returns how many pods the spread constraints count in the domain.
func (r *rules) crowd(d *domain) int {
	n := 0
	for i := range r.spreads {
		n += r.spreads[i].counts[r.atom(d, r.spreads[i].key)]
	}
	return n
}

// atom returns the domain's atom on a key that the rules pin.
func (r *rules) atom(d *domain, key label.Key) int {
	at, _ := slices.BinarySearch(r.pins, key)
	return d.atoms[at]
}

// count adds n pods of the task to the counters of the domain.
func (r *run) count(t *task, d *domain, n int) {
	if d.counted == nil {
		rows := r.rowsIn(t, d)
		d.counted = make([]membership, len(t.rules.touched))
		for i, c := range t.rules.touched {
			d.counted[i] = c.filter.pods(r.snap.Space, rows, t.group.Tolerations)
		}
	}
	for i, c := range t.rules.touched {
		if atom := t.rules.atom(d, c.key); atom != r.snap.Space.Absent(c.key) {
			c.add(atom, n, d.counted[i])
		}
	}
}

// domains lists the choices of a task: every combination of atoms that its rows admit and in which a node exists or may
// be launched. If the budget is spent, the list is incomplete.
func (r *run) domains(t *task) []*domain { return r.usable(t, r.combinations(t)) }

// usable returns the domains of the tuples of atoms that have capacity for a pod of the task.
func (r *run) usable(t *task, tuples [][]int) []*domain {
	var list []*domain
	for _, atoms := range tuples {
		if r.spent() {
			break
		}
		rows := r.pinned(t, atoms)
		if len(rows) == 0 {
			continue
		}
		d := &domain{atoms: atoms, id: idOf(atoms)}
		r.keepRows(d, rows)
		d.price, d.buys = r.cheapestFor(t, d, rows)
		list = append(list, d)
	}
	r.findRoom(t, list)
	return slices.DeleteFunc(list, func(d *domain) bool {
		d.joins = d.room == 0 && !d.buys && !r.spent() && r.takesInBin(t, d)
		return d.closed()
	})
}

// closed reports whether the domain has no capacity for a pod of the task: on nodes, in open bins and in available
// offerings.
func (d *domain) closed() bool { return d.room <= 0 && !d.buys && !d.joins }

// takesInBin reports whether an open bin in the domain fits a pod of the task.
func (r *run) takesInBin(t *task, d *domain) bool {
	if len(t.left) == 0 {
		return false
	}
	l := &lot{task: t, left: t.left[:1], rows: r.rowsIn(t, d)}
	return slices.ContainsFunc(r.bins, func(b *bin) bool {
		_, some := r.joinedBy(l, b)
		return some
	})
}

func idOf(atoms []int) string {
	var id []byte
	for _, a := range atoms {
		id = binary.AppendUvarint(id, uint64(a))
	}
	return string(id)
}

// atomsOf returns the atoms of the key that the task's rows admit and that some node or pool can have.
func (r *run) atomsOf(t *task, key label.Key) bitset.Set {
	known := r.knownAtoms(key)
	from, to := r.snap.Space.Span(key)
	asked := bitset.New(r.snap.Space.Atoms(key))
	for _, row := range t.rows {
		asked.OrWith(bitset.Set(row[from:to]))
	}
	asked.AndWith(known)
	return asked
}

// knownAtoms returns the atoms of the key that some node or pool can have.
func (r *run) knownAtoms(key label.Key) bitset.Set {
	if set := r.atoms[key]; set != nil {
		return set
	}
	space := r.snap.Space
	set := bitset.New(space.Atoms(key))
	from, to := space.Span(key)
	for _, n := range r.snap.Nodes {
		set.OrWith(bitset.Set(n.Row[from:to]))
	}
	for _, m := range r.pools {
		if m.open() {
			m.sells(space, key, set)
		}
	}
	if r.atoms == nil {
		r.atoms = map[label.Key]bitset.Set{}
	}
	r.atoms[key] = set
	return set
}

// pinned returns the task's rows, narrowed to the atoms.
func (r *run) pinned(t *task, atoms []int) []label.Row {
	space := r.snap.Space
	var rows []label.Row
next:
	for _, row := range t.rows {
		fixed := slices.Clone(row)
		for i, key := range t.rules.pins {
			if !space.HasAtom(row, key, atoms[i]) {
				continue next
			}
			space.SetOnly(fixed, key, atoms[i])
		}
		rows = append(rows, fixed)
	}
	return rows
}

// findRoom determines the nodes of each domain and how many pods of the task they may take. It counts up to the number
// of pods, except for pods with affinity, which choose by the total. A node with open labels is in no domain yet.
func (r *run) findRoom(t *task, domains []*domain) {
	byID := r.nodesBy(t.rules.pins)
	want, enough := model.SlackOf(t.group.Requests), len(t.left)
	if len(t.rules.affinities) > 0 {
		enough = math.MaxInt32
	}
	for _, d := range domains {
		list := byID[d.id]
		if list == nil {
			continue
		}
		d.nodes = *list
		rows := r.rowsIn(t, d)
		for _, i := range d.nodes {
			if !r.slack[i].Holds(want) || !t.group.Requests.Fits(r.nodes[i].free) {
				continue
			}
			if d.room = min(d.room+r.roomOn(t, rows, r.nodes[i]), math.MaxInt32); d.room >= enough {
				break
			}
		}
	}
}

// nodesBy returns the indexes of the run's nodes by their atoms on the keys, see idOf. Many tasks pin the same keys and
// share the lists.
func (r *run) nodesBy(keys []label.Key) map[string]*[]int {
	var of []byte
	for _, key := range keys {
		of = binary.AppendUvarint(of, uint64(key))
	}
	if known := r.partitions[string(of)]; known != nil {
		return known
	}
	byID := map[string]*[]int{}
	var id []byte
next:
	for i, n := range r.nodes {
		id = id[:0]
		for _, key := range keys {
			atom := r.snap.Space.Only(n.row, key)
			if atom < 0 {
				continue next
			}
			id = binary.AppendUvarint(id, uint64(atom))
		}
		list := byID[string(id)]
		if list == nil {
			list = new([]int)
			byID[string(id)] = list
		}
		*list = append(*list, i)
	}
	if r.partitions == nil {
		r.partitions = map[string]map[string]*[]int{}
	}
	r.partitions[string(of)] = byID
	return byID
}

// roomOn returns how many pods of the task the node may take. The first pod of a self-affine group may make any node
// its domain.
func (r *run) roomOn(t *task, rows []label.Row, n *target) int {
	fit := r.fits(t, rows, n)
	if fit.Count == 0 && len(t.rules.hostAffinities) > 0 && fit.Verdict.Code == plan.AffinityUnmet {
		fit = r.fitsPlace(t, &n.place, true)
	}
	return fit.Count
}

// sellsIn reports whether a node of the pool may be in the domain at all.
func (r *run) sellsIn(m *market, t *task, d *domain) bool {
	for i, key := range t.rules.pins {
		if !r.snap.Space.HasAtom(m.pool.Start, key, d.atoms[i]) {
			return false
		}
	}
	return true
}

// cheapestFor returns the price of the cheapest available node in the domain that holds a pod of the task.
func (r *run) cheapestFor(t *task, d *domain, rows []label.Row) (int64, bool) {
	best, found, weight := int64(0), false, int32(0)
	for _, m := range r.pools {
		if found && m.pool.Weight < weight {
			// A lighter pool is considered only when no heavier one can launch a node there.
			break
		}
		if !m.open() || !r.sellsIn(m, t, d) {
			continue
		}
		weight = m.pool.Weight
		for _, o := range r.offersTo(m, t, rows) {
			for _, p := range o.front {
				if m.holds(t.group, p.kind) {
					if !found || p.price < best {
						best, found = p.price, true
					}
					break
				}
			}
		}
	}
	return best, found
}

// admits evaluates every rule by domain for one more pod of the task.
func (r *run) admits(t *task, d *domain) plan.Verdict {
	for i := range t.rules.spreads {
		s := &t.rules.spreads[i]
		if !r.spreadAdmits(t, s, t.rules.atom(d, s.key)) {
			return plan.Verdict{Code: plan.SpreadExceeded, Key: s.key}
		}
	}
	for _, c := range t.rules.apart {
		if r.keptApart(t, d, c) {
			return plan.Verdict{Code: plan.AntiAffinityBlocked, Key: c.key}
		}
	}
	return r.affinityAdmits(t, d)
}

// keptApart reports whether anti-affinity excludes the domain: it has a pod that the counter counts.
func (r *run) keptApart(t *task, d *domain, c *counter) bool {
	atom := t.rules.atom(d, c.key)
	return atom != r.snap.Space.Absent(c.key) && c.counts[atom] > 0
}

// spreadAdmits evaluates topology spread: with the pod, the domain's count exceeds the least count of all domains by at
// most maxSkew.
func (r *run) spreadAdmits(t *task, s *spreadRule, atom int) bool {
	if atom == r.snap.Space.Absent(s.key) {
		return false
	}
	self := 0
	if s.self {
		self = 1
	}
	return s.counts[atom]+self-r.least(t, s) <= s.maxSkew
}

// affinityAdmits evaluates affinity. Required terms: the domain has a selected pod for every key; or no selected pod
// exists anywhere and the pod selects itself, which makes it the first of its kind. Each preferred term, and each
// volume that keeps pods together, is evaluated on its own.
func (r *run) affinityAdmits(t *task, d *domain) plan.Verdict {
	near := true
	var key label.Key
	for i := range t.rules.affinities {
		a := &t.rules.affinities[i]
		atom := t.rules.atom(d, a.key)
		if atom == r.snap.Space.Absent(a.key) {
			return plan.Verdict{Code: plan.AffinityUnmet, Key: a.key}
		}
		switch {
		case a.sure[atom] > 0 || a.wish && a.first():
		case a.wish:
			return plan.Verdict{Code: plan.AffinityUnmet, Key: a.key}
		default:
			near, key = false, a.key
		}
	}
	if near || r.firstOfItsKind(t) {
		return plan.Verdict{}
	}
	return plan.Verdict{Code: plan.AffinityUnmet, Key: key}
}

// firstOfItsKind reports whether no pod anywhere satisfies the task's required affinity terms, and the task's own pods
// would.
func (r *run) firstOfItsKind(t *task) bool {
	for i := range t.rules.affinities {
		if a := &t.rules.affinities[i]; !a.wish && !a.first() {
			return false
		}
	}
	return r.firstOnAnyHost(t)
}

// firstOnAnyHost is like firstOfItsKind, once the task's pods are assigned to domains and counted there: all terms
// select the same pods, and none of those is on a host.
func (r *run) firstOnAnyHost(t *task) bool {
	for _, a := range t.rules.hostAffinities {
		if !a.wish && !a.first(r.counters.totals) {
			return false
		}
	}
	return true
}

// domainOfRow returns the domain of a pod of the task on a node of the row.
func (r *run) domainOfRow(t *task, row label.Row) *domain {
	return new(domain).become(r, t, row)
}

// become turns the domain into that of a pod of the task on a node of the row.
func (d *domain) become(r *run, t *task, row label.Row) *domain {
	d.rows, d.atoms = append(d.rows[:0], row), d.atoms[:0]
	for _, key := range t.rules.pins {
		atom := domainOf(r.snap.Space, row, key)
		if atom < 0 {
			atom = r.snap.Space.Absent(key)
		}
		d.atoms = append(d.atoms, atom)
	}
	return d
}
