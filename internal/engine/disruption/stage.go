package disruption

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// stage holds the nodes of a rehearsal while pods are placed.
type stage struct {
	*rehearsal
	shelves []*shelf
}

// shelf holds the nodes of one size, the emptiest first.
type shelf struct {
	cpu, memory float64
	stands      []*stand
}

// stand is a node and the state of its simulation.
type stand struct {
	node *model.Node
	free quantity.Vector
	// load is the mean of the used shares of its cpu and memory.
	load float64
	// marks of the pods that were placed on it.
	marks map[int]int
}

func newStage(r *rehearsal) *stage {
	s := &stage{rehearsal: r}
	type size struct{ cpu, memory int64 }
	bySize := map[size]*shelf{}
	slab := make([]stand, len(r.open))
	for i, n := range r.open {
		of := size{n.Usable.At(quantity.CPU), n.Usable.At(quantity.Memory)}
		h := bySize[of]
		if h == nil {
			h = &shelf{cpu: max(1, float64(of.cpu)), memory: max(1, float64(of.memory))}
			bySize[of] = h
			s.shelves = append(s.shelves, h)
		}
		slab[i] = stand{node: n, free: n.Free().Clone()}
		slab[i].load = h.loadOf(slab[i].free)
		h.stands = append(h.stands, &slab[i])
	}
	for _, h := range s.shelves {
		slices.SortFunc(h.stands, func(a, b *stand) int {
			return cmp.Or(cmp.Compare(a.load, b.load), strings.Compare(a.node.Name, b.node.Name))
		})
	}
	return s
}

// loadOf returns the load of a node with the given free resources.
func (h *shelf) loadOf(free quantity.Vector) float64 {
	return 1 - (float64(free.At(quantity.CPU))/h.cpu+float64(free.At(quantity.Memory))/h.memory)/2
}

// looks is the number of feasible nodes per shelf that are examined for each pod.
const looks = 4

// place puts a pod on the node that kube-scheduler would select, and reports whether there is one.
func (s *stage) place(q *player) bool {
	var best *shelf
	at, most := 0, 0.0
	for _, h := range s.shelves {
		if float64(q.pod.Requests.At(quantity.CPU)) > h.cpu || float64(q.pod.Requests.At(quantity.Memory)) > h.memory {
			continue
		}
		for i, found := 0, 0; i < len(h.stands) && found < looks; i++ {
			t := h.stands[i]
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
func (h *shelf) score(free, more quantity.Vector) float64 {
	cpu := float64(free.At(quantity.CPU)-more.At(quantity.CPU)) / h.cpu
	memory := float64(free.At(quantity.Memory)-more.At(quantity.Memory)) / h.memory
	return (cpu+memory)/2 + 1 - max(cpu-memory, memory-cpu)/2
}

// admits checks everything except resources.
func (s *stage) admits(t *stand, q *player) bool {
	n := t.node
	if !q.second && s.later[n.Name] {
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
	if q.bonds.free() {
		return true
	}
	if home := s.assigned[q.pod.UID]; home != nil {
		if q.bonds.fixed && home.Name != n.Name {
			return false
		}
		for _, k := range q.bonds.keys {
			if !space.EqualKey(home.Row, n.Row, label.Key(k)) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(q.bonds.shut, func(mark int) bool { return t.has(mark) })
}

// has reports whether a pod with the mark is on the node.
func (t *stand) has(mark int) bool {
	if t.marks[mark] > 0 {
		return true
	}
	at, known := slices.BinarySearchFunc(t.node.Counts, mark, func(c model.MarkCount, mark int) int { return cmp.Compare(c.Mark, mark) })
	return known && t.node.Counts[at].Count > 0
}

// take puts the pod on a node of the shelf and moves the node back in the order.
func (h *shelf) take(at int, q *player) {
	t := h.stands[at]
	t.free.AddScaled(q.pod.Requests, -1)
	t.load = h.loadOf(t.free)
	for _, mark := range q.bonds.own {
		if t.marks == nil {
			t.marks = map[int]int{}
		}
		t.marks[mark]++
	}
	for ; at+1 < len(h.stands) && h.stands[at+1].load < t.load; at++ {
		h.stands[at] = h.stands[at+1]
	}
	h.stands[at] = t
}
