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

// assigner assigns groups to domains.
type assigner struct {
	snap      *model.Snapshot
	counters  *counters
	admission *admission
	fit       *fitChecker
	nodes     *existingNodes
	fleet     *fleet
	budget    *budget
	// order is the pods in the order of their assignment.
	order []*model.Pod
	// known caches which atoms of a key some node or pool can have.
	known map[label.Key]bitset.Set
	// keptRows is how many rows the domains of the groups keep; combine.go.
	keptRows int
}

// domain is a choice: one atom for each key that the group must be pinned to.
type domain struct {
	atoms []int
	// rows are the group's rows in the domain, nil if the run keeps too many; see rowsIn.
	rows []label.Row
	// room is how many more pods of the group the nodes of the domain may take by their free resources, counted up to
	// the number of pods.
	room int
	// launchable reports that some pool can launch a node in the domain that holds a pod. price is the price of the
	// cheapest such node.
	launchable bool
	price      int64
	// joinable: no node has room, and no available offering there holds a pod, but an open bin does. It may have types
	// that are not launched for the pods, or be the last node of a pool's limit or of a reservation.
	joinable bool
	id       string
	// counted is, for each counter that the group's pods touch, whether they count there.
	counted []membership
	// nodes are the indexes of the run's nodes that are in the domain.
	nodes []int
}

// assign splits a group into batches, one for each domain that gets pods. Pods without an admissible domain remain in
// t.left.
func (as *assigner) assign(pg *pendingGroup) []*domainBatch {
	if pg.rules.none() {
		batch := &domainBatch{pending: pg, left: pg.left, rows: pg.rows, first: len(as.order)}
		as.order = append(as.order, pg.left...)
		pg.left = nil
		return []*domainBatch{batch}
	}
	if pg.choices.domains == nil {
		pg.choices.domains = as.domains(pg)
	}
	batches := make([]*domainBatch, len(pg.choices.domains))
	rest := pg.left[:0:0]
	chooser := as.chooser(pg)
	for i, p := range pg.left {
		if as.budget.spent() {
			rest, pg.unreached = pg.left[i:], true
			break
		}
		at := chooser.next()
		if at < 0 {
			rest = pg.left[i:]
			break
		}
		if batches[at] == nil {
			batches[at] = &domainBatch{pending: pg, rows: pg.rowsIn(as.snap.Space, pg.choices.domains[at]), domain: pg.choices.domains[at],
				first: len(as.order), expected: pg.choices.domains[at].room > 0}
		}
		batches[at].left = append(batches[at].left, p)
		batches[at].turns = append(batches[at].turns, len(as.order))
		as.order = append(as.order, p)
		as.counters.assign(pg, pg.choices.domains[at], 1)
		pg.choices.domains[at].room--
	}
	pg.left = rest
	return slices.DeleteFunc(batches, func(batch *domainBatch) bool { return batch == nil })
}

// podsIn returns how many pods the spread constraints count in the domain.
func (r *rules) podsIn(d *domain) int {
	n := 0
	for i := range r.spreads {
		n += r.spreads[i].counter.counts[r.atom(d, r.spreads[i].counter.key)]
	}
	return n
}

// atom returns the domain's atom on a key that the rules pin.
func (r *rules) atom(d *domain, key label.Key) int {
	at, _ := slices.BinarySearch(r.pins, key)
	return d.atoms[at]
}

// domains lists the choices of a group: every combination of atoms that its rows admit and in which a node exists or
// may be launched. If the budget is spent, the list is incomplete.
func (as *assigner) domains(pg *pendingGroup) []*domain { return as.usable(pg, as.combinations(pg)) }

// usable returns the domains of the tuples of atoms that have capacity for a pod of the group.
func (as *assigner) usable(pg *pendingGroup, tuples [][]int) []*domain {
	var list []*domain
	for _, atoms := range tuples {
		if as.budget.spent() {
			break
		}
		rows := pg.pinned(as.snap.Space, atoms)
		if len(rows) == 0 {
			continue
		}
		d := &domain{atoms: atoms, id: idOf(atoms)}
		as.keepRows(d, rows)
		d.price, d.launchable = as.cheapestFor(pg, d, rows)
		list = append(list, d)
	}
	as.findRoom(pg, list)
	return slices.DeleteFunc(list, func(d *domain) bool {
		d.joinable = d.room == 0 && !d.launchable && !as.budget.spent() && as.joinableFor(pg, d)
		return d.closed()
	})
}

// closed reports whether the domain has no capacity for a pod of the group: on nodes, in open bins and in available
// offerings.
func (d *domain) closed() bool { return d.room <= 0 && !d.launchable && !d.joinable }

// joinableFor reports whether an open bin in the domain fits a pod of the group.
func (as *assigner) joinableFor(pg *pendingGroup, d *domain) bool {
	if len(pg.left) == 0 {
		return false
	}
	batch := &domainBatch{pending: pg, left: pg.left[:1], rows: pg.rowsIn(as.snap.Space, d)}
	return slices.ContainsFunc(as.fleet.bins, func(b *bin) bool {
		_, some := as.fleet.joinedBy(batch, b)
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

// atomsOf returns the atoms of the key that the group's rows admit and that some node or pool can have.
func (as *assigner) atomsOf(pg *pendingGroup, key label.Key) bitset.Set {
	known := as.knownAtoms(key)
	from, to := as.snap.Space.Span(key)
	asked := bitset.New(as.snap.Space.Atoms(key))
	for _, row := range pg.rows {
		asked.OrWith(bitset.Set(row[from:to]))
	}
	asked.AndWith(known)
	return asked
}

// knownAtoms returns the atoms of the key that some node or pool can have.
func (as *assigner) knownAtoms(key label.Key) bitset.Set {
	if set := as.known[key]; set != nil {
		return set
	}
	space := as.snap.Space
	set := bitset.New(space.Atoms(key))
	from, to := space.Span(key)
	sum := as.counters.sums.over(sumKey{sumAtoms, counterKey{key: key}}, as.snap.Nodes, space.Atoms(key),
		func(sum []int, n *model.Node, times int) {
			for atom := range bitset.Set(n.Row[from:to]).All() {
				sum[atom] += times
			}
		})
	for atom, nodes := range sum {
		if nodes > 0 {
			set.Add(atom)
		}
	}
	for _, ps := range as.fleet.pools {
		if ps.open() {
			ps.addDomains(space, key, set)
		}
	}
	if as.known == nil {
		as.known = map[label.Key]bitset.Set{}
	}
	as.known[key] = set
	return set
}

// findRoom determines the nodes of each domain and how many pods of the group they may take. It counts up to the number
// of pods, except for pods with affinity, which choose by the total. A node with open labels is in no domain yet.
func (as *assigner) findRoom(pg *pendingGroup, domains []*domain) {
	byID := as.nodes.nodesBy(pg.rules.pins)
	want, enough := model.SlackOf(pg.group.Requests), len(pg.left)
	if len(pg.rules.affinities) > 0 {
		enough = math.MaxInt32
	}
	for _, d := range domains {
		list := byID[d.id]
		if list == nil {
			continue
		}
		d.nodes = *list
		rows := pg.rowsIn(as.snap.Space, d)
		for _, i := range d.nodes {
			if !as.nodes.slack[i].Holds(want) || !pg.group.Requests.Fits(as.nodes.list[i].free) {
				continue
			}
			if d.room = min(d.room+as.roomOn(pg, rows, as.nodes.list[i]), math.MaxInt32); d.room >= enough {
				break
			}
		}
	}
}

// keysOf returns an identity of the keys.
func keysOf(keys []label.Key) string {
	var of []byte
	for _, key := range keys {
		of = binary.AppendUvarint(of, uint64(key))
	}
	return string(of)
}

// nodesBy returns the indexes of the run's nodes by their atoms on the keys, see idOf. Many groups pin the same keys
// and share the lists.
func (e *existingNodes) nodesBy(keys []label.Key) map[string]*[]int {
	of := keysOf(keys)
	if known := e.partitions[of]; known != nil {
		return known
	}
	byID := map[string]*[]int{}
	var id []byte
next:
	for i, n := range e.list {
		id = id[:0]
		for _, key := range keys {
			atom := e.snap.Space.Only(n.row, key)
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
	if e.partitions == nil {
		e.partitions = map[string]map[string]*[]int{}
	}
	e.partitions[of] = byID
	return byID
}

// roomOn returns how many pods of the group the node may take. The first pod of a self-affine group may make any node
// its domain.
func (as *assigner) roomOn(pg *pendingGroup, rows []label.Row, n *target) int {
	fit := as.fit.node(pg, rows, n)
	if fit.Count == 0 && len(pg.rules.hostAffinities) > 0 && fit.Verdict.Code == plan.AffinityUnmet {
		fit = as.fit.place(pg, &n.place, true)
	}
	return fit.Count
}

// launchableIn reports whether a node of the pool may be in the domain at all.
func (as *assigner) launchableIn(ps *poolState, pg *pendingGroup, d *domain) bool {
	for i, key := range pg.rules.pins {
		if !as.snap.Space.HasAtom(ps.spec.Start, key, d.atoms[i]) {
			return false
		}
	}
	return true
}

// cheapestFor returns the price of the cheapest available node in the domain that holds a pod of the group.
func (as *assigner) cheapestFor(pg *pendingGroup, d *domain, rows []label.Row) (int64, bool) {
	best, found, weight := int64(0), false, int32(0)
	for _, ps := range as.fleet.pools {
		if found && ps.spec.Weight < weight {
			// A lighter pool is considered only when no heavier one can launch a node there.
			break
		}
		if !ps.open() || !as.launchableIn(ps, pg, d) {
			continue
		}
		weight = ps.spec.Weight
		for _, o := range as.fleet.offersTo(ps, pg, rows) {
			for _, p := range o.front {
				if o.holds(pg.group, p) {
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

// domainOfRow returns the domain of a pod with the rules on a node of the row.
func domainOfRow(space *label.Space, rs *rules, row label.Row) *domain {
	return new(domain).become(space, rs, row)
}

// become turns the domain into that of a pod with the rules on a node of the row.
func (d *domain) become(space *label.Space, rs *rules, row label.Row) *domain {
	d.rows, d.atoms = append(d.rows[:0], row), d.atoms[:0]
	for _, key := range rs.pins {
		atom := domainOf(space, row, key)
		if atom < 0 {
			atom = space.Absent(key)
		}
		d.atoms = append(d.atoms, atom)
	}
	return d
}
