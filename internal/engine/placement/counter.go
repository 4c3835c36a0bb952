package placement

import (
	"math/bits"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Counting pods in topology domains.
//
// A counter counts the pods with one mark in the domains of one label key, over the nodes that a filter lets through.
// Domains are atoms of the label space, because every value of a key that is used as a topology key has its own. It is
// built once per run from the counts that the nodes carry, and changes as pods are assigned to domains.
//
// The hostname is different: every node and every bin is a domain of its own, so its counts lie with the node or bin,
// as a tally: a short list of (slot, count), a slot being a mark that some rule counts by hostname.

// counter is one mark, counted by domain.
type counter struct {
	key    label.Key
	filter *filter
	// counts by atom; domains are the atoms that some node (let through by the filter) has.
	counts  []int
	domains bitset.Set
	total   int
}

// filter lets through the nodes that topology spread counts (Kubernetes API: nodeAffinityPolicy, nodeTaintsPolicy).
// A nil filter lets every node through.
type filter struct {
	affinity    []label.Row
	tolerations []model.Toleration
	taints      bool
}

func (f *filter) passes(space *label.Space, n *model.Node) bool {
	if f == nil {
		return true
	}
	if f.taints {
		if _, no := model.Untolerated(n.Taints, f.tolerations); no {
			return false
		}
	}
	return len(f.affinity) == 0 || slices.ContainsFunc(f.affinity, func(row label.Row) bool { return space.Compatible(row, n.Row) })
}

// covers reports whether pods on nodes of the row are counted.
func (f *filter) covers(space *label.Space, row label.Row) bool {
	return f == nil || len(f.affinity) == 0 || slices.ContainsFunc(f.affinity, func(r label.Row) bool { return space.Compatible(r, row) })
}

// counterKey tells counters apart: filters are equal when the groups they come from ask for the same nodes.
type counterKey struct {
	mark   int
	key    label.Key
	filter string
}

// counters are those of one run.
type counters struct {
	snap  *model.Snapshot
	byKey map[counterKey]*counter
	// byMark lists the counters of a mark; slotOf its hostname slot, -1 without.
	byMark [][]*counter
	slotOf []int
	// totals by slot, over all nodes and bins.
	totals []int
}

func newCounters(snap *model.Snapshot) *counters {
	c := &counters{snap: snap, byKey: map[counterKey]*counter{}, byMark: make([][]*counter, len(snap.Marks)), slotOf: make([]int, len(snap.Marks))}
	for i := range c.slotOf {
		c.slotOf[i] = -1
	}
	return c
}

// slot returns the hostname slot of a mark.
func (c *counters) slot(mark int) int {
	if c.slotOf[mark] < 0 {
		c.slotOf[mark] = len(c.totals)
		c.totals = append(c.totals, 0)
	}
	return c.slotOf[mark]
}

// counter returns the counter of a mark by a key.
func (c *counters) counter(mark int, key label.Key, f *filter, filterKey string) *counter {
	id := counterKey{mark, key, filterKey}
	if known := c.byKey[id]; known != nil {
		return known
	}
	n := c.snap.Space.Atoms(key)
	fresh := &counter{key: key, filter: f, counts: make([]int, n), domains: bitset.New(n)}
	c.byKey[id] = fresh
	c.byMark[mark] = append(c.byMark[mark], fresh)
	return fresh
}

// fill counts what is there. It is called once, when all counters and slots are known.
func (c *counters) fill(nodes []*model.Node) {
	if len(c.byKey) == 0 && len(c.totals) == 0 {
		return
	}
	for _, n := range nodes {
		for _, counter := range c.byKey {
			if counter.filter.passes(c.snap.Space, n) {
				if atom := domainOf(c.snap.Space, n.Row, counter.key); atom >= 0 {
					counter.domains.Add(atom)
				}
			}
		}
		for _, m := range n.Counts {
			if slot := c.slotOf[m.Mark]; slot >= 0 {
				c.totals[slot] += m.Count
			}
			for _, counter := range c.byMark[m.Mark] {
				if atom := domainOf(c.snap.Space, n.Row, counter.key); atom >= 0 && counter.filter.passes(c.snap.Space, n) {
					counter.counts[atom] += m.Count
					counter.total += m.Count
				}
			}
		}
	}
}

// tallyOf is the node's own counts by slot.
func (c *counters) tallyOf(n *model.Node) tally {
	var t tally
	for _, m := range n.Counts {
		if slot := c.slotOf[m.Mark]; slot >= 0 {
			t = append(t, slotCount{slot, m.Count})
		}
	}
	return t
}

// domainOf returns the atom of the key that the row is pinned to, -1 when it is absent or not pinned.
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

// tally counts marks on one node or bin.
type tally []slotCount

type slotCount struct{ slot, count int }

func (t tally) at(slot int) int {
	for _, c := range t {
		if c.slot == slot {
			return c.count
		}
	}
	return 0
}

func (t tally) add(slot, n int) tally {
	for i := range t {
		if t[i].slot == slot {
			t[i].count += n
			return t
		}
	}
	return append(t, slotCount{slot, n})
}
