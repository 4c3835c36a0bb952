package disruption

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// schedulerSim holds the nodes of a rehearsal while pods are placed.
type schedulerSim struct {
	*rehearsal
	sizes []*sizeClass
}

// sizeClass holds the nodes of one size, the emptiest first.
type sizeClass struct {
	cpu, memory float64
	nodes       []*simNode
}

// simNode is a node and the state of its simulation.
type simNode struct {
	node *model.Node
	free quantity.Vector
	// load is the mean of the used shares of its cpu and memory.
	load float64
	// marks of the pods that were placed on it.
	marks map[int]int
}

func newSchedulerSim(r *rehearsal) *schedulerSim {
	s := &schedulerSim{rehearsal: r}
	type size struct{ cpu, memory int64 }
	bySize := map[size]*sizeClass{}
	slab := make([]simNode, len(r.open))
	for i, n := range r.open {
		of := size{n.Usable.At(quantity.CPU), n.Usable.At(quantity.Memory)}
		h := bySize[of]
		if h == nil {
			h = &sizeClass{cpu: max(1, float64(of.cpu)), memory: max(1, float64(of.memory))}
			bySize[of] = h
			s.sizes = append(s.sizes, h)
		}
		slab[i] = simNode{node: n, free: n.Free().Clone()}
		slab[i].load = h.loadOf(slab[i].free)
		h.nodes = append(h.nodes, &slab[i])
	}
	for _, h := range s.sizes {
		slices.SortFunc(h.nodes, func(a, b *simNode) int {
			return cmp.Or(cmp.Compare(a.load, b.load), strings.Compare(a.node.Name, b.node.Name))
		})
	}
	return s
}

// loadOf returns the load of a node with the given free resources.
func (h *sizeClass) loadOf(free quantity.Vector) float64 {
	return 1 - (float64(free.At(quantity.CPU))/h.cpu+float64(free.At(quantity.Memory))/h.memory)/2
}

// maxProbes is the number of feasible nodes per size class that are examined for each pod.
const maxProbes = 4

// place puts a pod on the node that kube-scheduler would select, and reports whether there is one.
func (s *schedulerSim) place(q *movingPod) bool {
	var best *sizeClass
	at, most := 0, 0.0
	for _, h := range s.sizes {
		if float64(q.pod.Requests.At(quantity.CPU)) > h.cpu || float64(q.pod.Requests.At(quantity.Memory)) > h.memory {
			continue
		}
		for i, found := 0, 0; i < len(h.nodes) && found < maxProbes; i++ {
			t := h.nodes[i]
			if !q.pod.Requests.Fits(t.free) || !s.admits(t, q) {
				continue
			}
			found++
			if score := h.score(t.free, q.pod.Requests); best == nil || score > most {
				best, at, most = h, i, score
			}
		}
	}
	if best == nil {
		return false
	}
	best.take(at, q)
	return true
}

// score returns the score of kube-scheduler for a node with the given free resources: LeastAllocated and
// BalancedAllocation, 0 to 2.
func (h *sizeClass) score(free, more quantity.Vector) float64 {
	cpu := float64(free.At(quantity.CPU)-more.At(quantity.CPU)) / h.cpu
	memory := float64(free.At(quantity.Memory)-more.At(quantity.Memory)) / h.memory
	return (cpu+memory)/2 + 1 - max(cpu-memory, memory-cpu)/2
}

// admits checks everything except resources.
func (s *schedulerSim) admits(t *simNode, q *movingPod) bool {
	n := t.node
	if !q.afterLaunch && s.later[n.Name] {
		return false
	}
	if len(n.Taints) > 0 {
		if _, no := model.Untolerated(n.Taints, q.group.Tolerations); no {
			return false
		}
	}
	space := s.snap.Space
	if !slices.ContainsFunc(q.group.Rows, func(row label.Row) bool { return space.Contains(row, n.Row) }) {
		return false
	}
	if q.podRules.free() {
		return true
	}
	if home := s.assigned[q.pod.UID]; home != nil {
		if q.podRules.fixed && home.Name != n.Name {
			return false
		}
		for _, k := range q.podRules.keys {
			if !space.EqualKey(home.Row, n.Row, label.Key(k)) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(q.podRules.excluded, func(mark int) bool { return t.has(mark) })
}

// has reports whether a pod with the mark is on the node.
func (t *simNode) has(mark int) bool {
	if t.marks[mark] > 0 {
		return true
	}
	at, known := slices.BinarySearchFunc(t.node.Counts, mark, func(c model.MarkCount, mark int) int { return cmp.Compare(c.Mark, mark) })
	return known && t.node.Counts[at].Count > 0
}

// take puts the pod on a node of the size class and moves the node back in the order.
func (h *sizeClass) take(at int, q *movingPod) {
	t := h.nodes[at]
	t.free.AddScaled(q.pod.Requests, -1)
	t.load = h.loadOf(t.free)
	for _, mark := range q.podRules.own {
		if t.marks == nil {
			t.marks = map[int]int{}
		}
		t.marks[mark]++
	}
	for ; at+1 < len(h.nodes) && h.nodes[at+1].load < t.load; at++ {
		h.nodes[at] = h.nodes[at+1]
	}
	h.nodes[at] = t
}
