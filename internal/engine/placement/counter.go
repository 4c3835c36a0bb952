package placement

import (
	"math/bits"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement/tally"
)

// Counting pods in topology domains.
//
// A counter counts the pods with one mark in the domains of one label key, over the nodes that a filter accepts.
// Domains are atoms of the label space, because every value of a topology key has its own atom. A counter is built once
// per run from the counts of the nodes, and changes as pods are assigned to domains.
//
// The hostname is different: every node and every bin is a domain of its own. So its counts are stored with the node or
// bin, as a tally. A slot is a mark that some rule counts by hostname.

// counter counts one mark by domain. If it is open whether a node counts, or which domain it will be in, its pods are
// included in the upper bound of a domain and not in the certain count.
type counter struct {
	id     counterKey
	key    label.Key
	filter *filter
	// counts, by atom, are the upper bounds; sure are the certain counts.
	counts, sure []int
	// domains are the atoms that some node accepted by the filter may have, certain those that a node has.
	domains, certain bitset.Set
	total            int
	// groups is how many of the groups to place its pods may be of, and pending how many pods they have. used reports that
	// a rule in force reads the counter.
	groups, pending int
	used            bool
	// required: a rule that is not a preference reads it.
	required bool
	// epoch changes with every change except growing counts.
	epoch int
}

// add counts n pods in a domain; a negative n removes them.
func (c *counter) add(atom, n int, m membership) {
	if m == never {
		return
	}
	if n < 0 {
		c.epoch++
	}
	c.counts[atom] += n
	c.total += n
	if m == surely {
		c.sure[atom] += n
	}
}

// membership is whether a node counts: never, maybe, or surely.
type membership uint8

const (
	never membership = iota
	maybe
	surely
)

// filter accepts the nodes that topology spread counts (nodeAffinityPolicy, nodeTaintsPolicy, and only nodes with the
// topology keys of all the pod's constraints), see
// https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/. A nil filter accepts every
// node.
type filter struct {
	keys        []label.Key
	affinity    []label.Row
	tolerations []model.Toleration
	taints      bool
	// refuses reports that some node or pool has an untolerated taint, lacks that some node lacks one of the keys.
	refuses, lacks bool
}

// node returns whether a node with the row and taints counts.
func (f *filter) node(space *label.Space, row label.Row, taints []model.Taint) membership {
	if f == nil {
		return surely
	}
	if f.taints {
		if _, no := model.Untolerated(taints, f.tolerations); no {
			return never
		}
	}
	m := surely
	for _, key := range f.keys {
		m = min(m, defines(space, row, key))
	}
	return min(m, within(space, f.affinity, row))
}

// pods returns whether pods with the tolerations, on nodes of one of the rows, count.
func (f *filter) pods(space *label.Space, rows []label.Row, tolerations []model.Toleration) membership {
	if f == nil {
		return surely
	}
	m := surely
	if f.lacks || f.taints && f.refuses && !slices.Equal(f.tolerations, tolerations) {
		m = maybe
	}
	if len(f.affinity) == 0 {
		return m
	}
	some, all := false, true
	for _, row := range rows {
		in := within(space, f.affinity, row)
		some, all = some || in != never, all && in == surely
	}
	switch {
	case !some:
		return never
	case !all:
		return maybe
	}
	return m
}

// within returns whether an object with the row matches one of the rows.
func within(space *label.Space, rows []label.Row, row label.Row) membership {
	if len(rows) == 0 {
		return surely
	}
	m := never
	for _, r := range rows {
		if space.Contains(r, row) {
			return surely
		}
		if space.Compatible(r, row) {
			m = maybe
		}
	}
	return m
}

// defines returns whether a node of the row has the label.
func defines(space *label.Space, row label.Row, key label.Key) membership {
	switch {
	case !space.AllowsAbsent(row, key):
		return surely
	case domainOf(space, row, key) < 0 && onlyAbsent(space, row, key):
		return never
	}
	return maybe
}

func onlyAbsent(space *label.Space, row label.Row, key label.Key) bool {
	for atom := range space.Atoms(key) {
		if atom != space.Absent(key) && space.HasAtom(row, key, atom) {
			return false
		}
	}
	return true
}

// counterKey identifies a counter. Filters are equal when the groups they come from select the same nodes.
type counterKey struct {
	mark   int
	key    label.Key
	filter string
}

// counters are the counters of one run.
type counters struct {
	snap *model.Snapshot
	// host is the key of hostnames, if any object names it.
	host      label.Key
	hostNamed bool
	byKey     map[counterKey]*counter
	// all lists the counters in the order of creation.
	all []*counter
	// byMark lists the counters of a mark. slotOf is its hostname slot, -1 for none.
	byMark [][]*counter
	slotOf []int
	// totals by slot, over all nodes and bins.
	totals []int
	// someNameless reports that a node has no hostname label.
	someNameless bool
	moving       []Moving
	// daemons are the daemons that matter to rules by hostname.
	daemons []daemonPod
	// sums are those over the nodes.
	sums *nodeSums
}

func newCounters(snap *model.Snapshot, moving []Moving, sums *nodeSums) counters {
	c := counters{snap: snap, moving: moving, byKey: map[counterKey]*counter{}, sums: sums,
		byMark: make([][]*counter, len(snap.Marks)), slotOf: make([]int, len(snap.Marks))}
	for i := range c.slotOf {
		c.slotOf[i] = -1
	}
	sums.begin(snap)
	c.host, c.hostNamed = snap.Space.Lookup(model.LabelHostname)
	c.someNameless = len(snap.Marks) > 0 && c.hostNamed && c.someNode(sumKey{kind: sumNameless}, c.nameless)
	return c
}

// someNode reports whether some node has the property. The key identifies the property.
func (c *counters) someNode(key sumKey, has func(*model.Node) bool) bool {
	return c.sums.over(key, c.snap.Nodes, 1, func(sum []int, n *model.Node, times int) {
		if has(n) {
			sum[0] += times
		}
	})[0] > 0
}

// slot returns the hostname slot of a mark, and creates it if necessary.
func (c *counters) slot(mark int) int {
	if c.slotOf[mark] < 0 {
		c.slotOf[mark] = len(c.totals)
		c.totals = append(c.totals, 0)
	}
	return c.slotOf[mark]
}

// counter returns the counter of a mark by a key, and creates it if necessary.
func (c *counters) counter(mark int, key label.Key, f *filter, filterKey string) *counter {
	id := counterKey{mark, key, filterKey}
	if known := c.byKey[id]; known != nil {
		return known
	}
	if f != nil {
		c.examine(f, filterKey)
	}
	fresh := &counter{id: id, key: key, filter: f}
	c.byKey[id] = fresh
	c.all = append(c.all, fresh)
	c.byMark[mark] = append(c.byMark[mark], fresh)
	return fresh
}

// examine records whether the filter excludes any node because of its taints or a missing topology key.
func (c *counters) examine(f *filter, filterKey string) {
	refuses := func(taints []model.Taint) bool {
		_, no := model.Untolerated(taints, f.tolerations)
		return no
	}
	lacks := func(n *model.Node) bool {
		return slices.ContainsFunc(f.keys, func(key label.Key) bool { return defines(c.snap.Space, n.Row, key) != surely })
	}
	key := counterKey{filter: filterKey}
	f.refuses = slices.ContainsFunc(c.snap.Pools, func(p *model.Pool) bool { return refuses(p.Taints) }) ||
		c.someNode(sumKey{sumRefusing, key}, func(n *model.Node) bool { return refuses(n.Taints) })
	f.lacks = len(f.keys) > 0 && c.someNode(sumKey{sumLackingKeys, key}, lacks)
}

// fill counts the pods on nodes and nothing else. It is called when all counters and slots are known.
func (c *counters) fill() {
	if len(c.all) == 0 && len(c.totals) == 0 {
		return
	}
	for mark, slot := range c.slotOf {
		if slot >= 0 {
			c.totals[slot] = c.sums.over(sumKey{sumMarked, counterKey{mark: mark}}, c.snap.Nodes, 1, func(sum []int, n *model.Node, times int) {
				if !c.nameless(n) {
					sum[0] += times * n.CountOf(mark)
				}
			})[0]
		}
	}
	for _, counter := range c.all {
		counter.fill(c)
	}
	for i := range c.moving {
		c.countMoving(&c.moving[i])
	}
}

// fill counts the pods and the nodes by domain: the upper bound of pods, the certain pods, the nodes that may be in the
// domain and those that are.
func (c *counter) fill(of *counters) {
	space := of.snap.Space
	atoms := space.Atoms(c.key)
	sum := of.sums.over(sumKey{sumDomains, c.id}, of.snap.Nodes, 4*atoms, func(sum []int, n *model.Node, times int) {
		pods := times * n.CountOf(c.id.mark)
		c.visit(space, n.Row, n.Taints, func(atom int, m membership) {
			sum[atom] += pods
			sum[2*atoms+atom] += times
			if m == surely {
				sum[atoms+atom] += pods
				sum[3*atoms+atom] += times
			}
		})
	})
	c.counts, c.sure, c.total = sum[:atoms:atoms], sum[atoms:2*atoms:2*atoms], 0
	c.domains, c.certain = bitset.New(atoms), bitset.New(atoms)
	for atom := range atoms {
		c.total += c.counts[atom]
		if sum[2*atoms+atom] > 0 {
			c.domains.Add(atom)
		}
		if sum[3*atoms+atom] > 0 {
			c.certain.Add(atom)
		}
	}
	c.epoch++
}

// notice adds the domains that a node of the row is or may be in, if it counts there.
func (c *counter) notice(space *label.Space, row label.Row, taints []model.Taint) {
	c.epoch++
	c.visit(space, row, taints, func(atom int, m membership) {
		c.domains.Add(atom)
		if m == surely {
			c.certain.Add(atom)
		}
	})
}

// put counts n pods on a node of the row.
func (c *counter) put(space *label.Space, row label.Row, n int, taints []model.Taint) {
	c.visit(space, row, taints, func(atom int, m membership) { c.add(atom, n, m) })
}

// visit calls see with the domain of a node of the row, or with all domains that it may be in, and whether it counts
// there. The value that decides the domain may decide membership too: a node selected by its architecture is in no
// domain of another architecture.
func (c *counter) visit(space *label.Space, row label.Row, taints []model.Taint, see func(int, membership)) {
	if atom := domainOf(space, row, c.key); atom >= 0 {
		if m := c.filter.node(space, row, taints); m != never {
			see(atom, m)
		}
		return
	}
	for atom := range space.Atoms(c.key) {
		if atom == space.Absent(c.key) || !space.HasAtom(row, c.key, atom) {
			continue
		}
		pinned := slices.Clone(row)
		space.SetOnly(pinned, c.key, atom)
		if m := c.filter.node(space, pinned, taints); m != never {
			see(atom, min(m, maybe))
		}
	}
}

// tallyOf returns the node's own counts by slot, including those of expected daemons.
func (c *counters) tallyOf(n *model.Node, daemons []daemonPod) tally.Tally {
	t := tally.Tally{Nameless: c.nameless(n)}
	if t.Nameless {
		return t
	}
	for _, m := range n.Counts {
		if slot := c.slotOf[m.Mark]; slot >= 0 {
			t.Add(slot, m.Count)
		}
	}
	addDaemons(&t, daemons)
	return t
}

// nameless reports whether the node has no hostname label. Then it is in no domain of hostnames, and its pods are
// neighbors of no pod.
func (c *counters) nameless(n *model.Node) bool {
	return c.hostNamed && c.snap.Space.AllowsAbsent(n.Row, c.host)
}

// domainOf returns the atom of the key that the row is pinned to, or -1 when it is absent or not pinned.
func domainOf(space *label.Space, row label.Row, key label.Key) int {
	from, to := space.Span(key)
	atom := -1
	for w := from; w < to; w++ {
		switch bits.OnesCount64(row[w]) {
		case 0:
		case 1:
			if atom >= 0 {
				return -1
			}
			atom = (w-from)*64 + bits.TrailingZeros64(row[w])
		default:
			return -1
		}
	}
	if atom == space.Absent(key) {
		return -1
	}
	return atom
}

// assign adds n pods of the group to the counters of the domain.
func (c *counters) assign(pg *pendingGroup, d *domain, n int) {
	if d.counted == nil {
		rows := pg.rowsIn(c.snap.Space, d)
		d.counted = make([]membership, len(pg.rules.touched))
		for i, counter := range pg.rules.touched {
			d.counted[i] = counter.filter.pods(c.snap.Space, rows, pg.group.Tolerations)
		}
	}
	for i, counter := range pg.rules.touched {
		if !slices.Contains(pg.rules.pins, counter.key) {
			continue // the domain of the pods is open
		}
		if atom := pg.rules.atom(d, counter.key); atom != c.snap.Space.Absent(counter.key) {
			counter.add(atom, n, d.counted[i])
		}
	}
}

// addHosts adds n pods to the totals by hostname.
func (c *counters) addHosts(rs *rules, n int) {
	for _, slot := range rs.hostTouched {
		c.totals[slot] += n
	}
}

// withOwnTotals returns the same counters with totals by hostname of its own, for a what-if.
func (c *counters) withOwnTotals() counters {
	own := *c
	own.totals = slices.Clone(c.totals)
	return own
}
