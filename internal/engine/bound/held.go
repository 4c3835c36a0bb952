package bound

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Nodes whose pods may be packed anew, but that a plan may also keep, each at its price. A node can be cheaper than
// what the catalog has for its pods: its size differs from that of its type, its offering is sold out or has another
// price by now, its pool has reached a limit or no longer permits the type.

// hold adds the held nodes to the limited supplies, each as it would be with its pods only. It omits a node in whose
// place a plan can have an offering that holds as much and costs no more.
func (p *problem) hold(nodes []*model.Node) {
	first := len(p.limited)
	specs := p.specsOn(nodes)
	for _, n := range nodes {
		k := &kind{price: n.LeastPrice(), free: n.Free().Max(nil), specs: p.acceptedBy(n)}
		for _, pod := range n.Pods {
			if p.wanted(pod) {
				k.free = k.free.Add(pod.Requests)
			}
		}
		for _, s := range specs[n.Name] {
			k.specs.Add(s)
		}
		if slices.ContainsFunc(p.kinds, func(q *kind) bool { return q.price <= k.price && q.covers(k) }) {
			continue
		}
		at := slices.IndexFunc(p.limited[first:], func(s *limitedSupply) bool { return s.kinds[0].same(k) })
		if at < 0 {
			p.limited = append(p.limited, &limitedSupply{held: true, kinds: []*kind{k}})
			at = len(p.limited) - 1 - first
		}
		p.limited[first+at].count++
	}
}

func (k *kind) same(q *kind) bool {
	return k.price == q.price && k.specs.Equal(q.specs) && k.free.Equal(q.free)
}

// specsOn returns the specs of the pods on the held nodes, by node. A pod may stay where it runs although its node has
// a taint or lacks a label by now.
func (p *problem) specsOn(nodes []*model.Node) map[string][]int {
	specs := make(map[string][]int, len(nodes))
	for _, n := range nodes {
		specs[n.Name] = nil
	}
	for _, it := range p.items {
		for _, part := range it.parts {
			for _, pod := range part.group.Pods {
				if list, held := specs[pod.Node]; held && !slices.Contains(list, it.spec) {
					specs[pod.Node] = append(list, it.spec)
				}
			}
		}
	}
	return specs
}

// seats counts the pods on held nodes, by node and set. A held node may hold more pods than the rules by hostname permit
// on a new node: a spread constraint permits more where every node has some, and rules are not checked again for pods
// that run. The bound leaves out the pods beyond the rules, as if their place cost nothing.
type seats struct {
	held map[string]bool
	used map[seat]int
}

type seat struct {
	node string
	set  int
}

func seatsOf(nodes []*model.Node) *seats {
	s := &seats{held: map[string]bool{}, used: map[seat]int{}}
	for _, n := range nodes {
		s.held[n.Name] = true
	}
	return s
}

// count returns the number of wanted pods of the item's group without those beyond the rules. room is that of its set.
func (s *seats) count(g *model.Group, it *item, room int, wanted func(*model.Pod) bool) int64 {
	n := int64(0)
	own := map[string]int{}
	for _, pod := range g.Pods {
		if !wanted(pod) {
			continue
		}
		if it.most < unbounded && s.held[pod.Node] {
			set := seat{pod.Node, it.set}
			if own[pod.Node] >= it.most || it.set >= 0 && s.used[set] >= room {
				continue
			}
			own[pod.Node]++
			s.used[set]++
		}
		n++
	}
	return n
}

// heldRows limits the rows that held nodes add to the program. Those beyond get credit, and do not guide the values.
const heldRows = 64

// compare finds the available kind that is most similar to each held or committed node: its weights are good for the node
// too.
func (p *problem) compare() {
	for _, s := range p.limited {
		if !s.held && !s.committed {
			continue
		}
		if s.class = -1; s.held && p.held < heldRows {
			s.class, p.held = p.held, p.held+1
		}
		for _, k := range s.kinds {
			least := math.Inf(1)
			for _, q := range p.kinds {
				if d := k.distance(q); d < least {
					least, k.like = d, q
				}
				if s.committed && (k.alternative == nil || q.price < k.alternative.price) && q.holds(k) {
					k.alternative = q
				}
			}
		}
	}
}

// holds reports whether all that q can hold fits on k.
func (k *kind) holds(q *kind) bool {
	for r := range q.room {
		if k.room[r] < q.room[r] {
			return false
		}
	}
	return k.specs.Equal(q.specs)
}

// distance is how much the room of the kinds differs, summed over the resources, each relative to the larger room.
func (k *kind) distance(q *kind) float64 {
	d := 0.0
	for r, have := range k.room {
		if most := max(have, q.room[r]); most > 0 {
			d += math.Abs(have-q.room[r]) / most
		}
	}
	return d
}

// openHeld adds to the program each pattern that a held node was found to hold, as far as it makes the program cheaper,
// and returns their number. Each node has a row, so that its patterns are at most as many as there are such nodes.
func (s *search) openHeld() int {
	added := 0
	for _, st := range s.limited {
		if !st.held || st.class < 0 {
			continue
		}
		row := len(s.items) + s.classes*len(s.resources) + st.class
		if s.admits(candidate{st.kinds[0], st.found}, s.master.dual[row]) {
			at := &s.master.columns[s.offer(st.kinds[0], st.found)]
			at.rows, at.coefs = append(slices.Clone(at.rows), int32(row)), append(at.coefs, 1)
			added++
		}
	}
	return added
}
