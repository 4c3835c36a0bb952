package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Sums over the nodes of a snapshot: how many pods with a mark are in each domain, how many nodes lack a label. A what-if
// is on a snapshot that differs from the one before in a few nodes. So a sum is kept with the nodes that it is over, and
// the next run adds the nodes that have come and subtracts those that are gone. Nodes never change: a node with other pods
// is another node. Integers have no rounding, so the result is the same as a sum over all nodes.

// sumKind is what a sum counts.
type sumKind uint8

const (
	sumDomains     sumKind = iota // of a counter, see counter.sum
	sumRefusing                   // nodes with a taint that the filter excludes
	sumLackingKeys                // nodes that may lack a topology key of the filter
	sumMarked                     // pods with a mark on nodes with a hostname
	sumNameless                   // nodes without a hostname
	sumLacking                    // nodes that may lack the label
	sumAtoms                      // nodes that may have the value of the label, by atom
)

// sumKey identifies a sum.
type sumKey struct {
	kind sumKind
	counterKey
}

// nodeSum is a sum and the nodes that it is over.
type nodeSum struct {
	nodes []*model.Node
	sum   []int
}

// nodeSums are the sums of consecutive runs.
type nodeSums struct {
	space *label.Space
	marks int
	known map[sumKey]*nodeSum
	// gone and come are the difference between the nodes before and now, if there are few.
	before, now, gone, come []*model.Node
	few                     bool
}

// mostChanged is how many nodes may differ for a sum to be adjusted. With more, it is computed anew.
const mostChanged = 64

// begin drops the sums that are in the terms of another label space or of other marks.
func (s *nodeSums) begin(snap *model.Snapshot) {
	if s.space != snap.Space || s.marks != len(snap.Marks) || len(s.known) > mostSums {
		*s = nodeSums{space: snap.Space, marks: len(snap.Marks), known: map[sumKey]*nodeSum{}}
	}
}

// mostSums limits the memory of the sums.
const mostSums = 1 << 14

// over returns a sum over the nodes, of the given length. add adds what one node counts, times 1 or -1. The result belongs
// to the caller.
func (s *nodeSums) over(key sumKey, nodes []*model.Node, length int, add func(sum []int, n *model.Node, times int)) []int {
	known := s.known[key]
	if known == nil || len(known.sum) != length || !s.differ(known.nodes, nodes) {
		known = &nodeSum{nodes, make([]int, length)}
		for _, n := range nodes {
			add(known.sum, n, 1)
		}
		s.known[key] = known
		return slices.Clone(known.sum)
	}
	sum := slices.Clone(known.sum)
	for _, n := range s.gone {
		add(sum, n, -1)
	}
	for _, n := range s.come {
		add(sum, n, 1)
	}
	if len(s.gone)+len(s.come) > mostChanged/4 {
		*known = nodeSum{nodes, slices.Clone(sum)}
	}
	return sum
}

// differ determines the difference between the nodes before and now, and reports whether it is small. Snapshots never write
// into the list of nodes of another one, so lists of one length are the same if they begin in the same place.
func (s *nodeSums) differ(before, now []*model.Node) bool {
	same := func(a, b []*model.Node) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
	if !same(s.before, before) || !same(s.now, now) {
		s.before, s.now = before, now
		s.gone, s.come, s.few = model.DifferentNodes(before, now, mostChanged)
	}
	return s.few
}
