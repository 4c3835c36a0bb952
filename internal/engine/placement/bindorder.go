package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement/tally"
)

// An order in which the pods of the plan can be bound, each admissible at its turn. It is the order of assignment to
// domains, because the rules by domain were evaluated there. A pod that is not admissible at its turn waits, as in
// kube-scheduler. On one node, a pod also waits for pods that were placed there before it and that it would exclude.
//
// Domains are assigned before nodes are found. So a pod that was not placed after all, or a node that turned out to be
// in an unexpected domain, may have changed the counts by which other pods were admitted. A pod that is not admissible
// at any turn loses its binding and is placed again, with all other pods in place. Pods that are not placed in the end
// are refused. Then other refused pods are tried again: the limits that those pods used in each attempt are now
// available.

// attempts is how often unbindable pods of one group are placed again. mostRounds is how often pods of any group are,
// at most; in portions, for which the work budget is spent, only attempts.
const attempts, mostRounds = 4, 16

// binding is where a pod of the plan is to be bound.
type binding struct {
	target *bindTarget
	pod    *model.Pod
	index  int
	// listed reports that the binding is in the order.
	listed bool
}

// bindTarget is a place that pods of the plan are bound to, one by one.
type bindTarget struct {
	placed []placedPods
	// unbound is how many unbound pods each of the placed has.
	unbound []int
	tally   tally.Tally
	row     label.Row
	taints  []model.Taint
}

// selfAffinityFirst moves pods with affinity to themselves to the front and keeps the order otherwise: once other pods
// that their affinity selects are elsewhere, they may no longer be the first of their kind.
func selfAffinityFirst(bindings []*binding) []*binding {
	if !slices.ContainsFunc(bindings, func(s *binding) bool { return s.selfAffine() }) {
		return bindings
	}
	sorted := make([]*binding, 0, len(bindings))
	for _, first := range []bool{true, false} {
		for _, s := range bindings {
			if s.selfAffine() == first {
				sorted = append(sorted, s)
			}
		}
	}
	return sorted
}

// selfAffine reports whether the pod's own affinity selects the pod itself.
func (s *binding) selfAffine() bool {
	rules := s.pending().hard()
	return slices.ContainsFunc(rules.affinities, func(a affinityRule) bool { return a.self }) ||
		slices.ContainsFunc(rules.hostAffinities, func(a hostAffinity) bool { return a.self })
}

// bindings lists the place of every pod, and removes all of them from the counts, because none is bound yet. All nodes
// are included, those of the snapshot and new ones. Bins with the same row and types become identical nodes.
func (o *bindOrder) bindings() []binding {
	o.counters.fill()
	stay := o.deferral.pods
	if o.deferral.placing {
		stay = nil
	}
	list := make([]binding, 0, placedCount(o.nodes, o.fleet))
	for _, n := range o.nodes.list {
		if len(n.placed) > 0 {
			list = n.bindings(list, n.node.Row, n.node.Taints, stay)
		}
	}
	alike := map[string]label.Row{}
	for _, b := range o.fleet.bins {
		like := o.claims.key(b)
		row, known := alike[string(like)]
		if !known {
			row = o.claims.resolved(b)
			alike[string(like)] = row
			for _, c := range o.counters.all {
				c.notice(o.snap.Space, row, o.fleet.poolOf(b).spec.Taints)
			}
		}
		list = b.bindings(list, row, o.fleet.poolOf(b).spec.Taints, nil)
	}
	return list
}

// bindings appends the bindings of a place's pods, and removes them from its tally. Pods that count where they run for
// now get no binding yet.
func (p *place) bindings(bindings []binding, row label.Row, taints []model.Taint, stay map[*model.Pod]bool) []binding {
	b := &bindTarget{placed: p.placed, unbound: make([]int, len(p.placed)), tally: p.tally.Clone(), row: row, taints: taints}
	for i, s := range p.placed {
		for _, slot := range s.pending.hard().hostTouched {
			b.tally.Add(slot, -len(s.pods))
		}
		if stay[s.pods[0]] { // restored one by one, so each is a share of its own
			continue
		}
		b.unbound[i] = len(s.pods)
		for _, pod := range s.pods {
			bindings = append(bindings, binding{target: b, pod: pod, index: i})
		}
	}
	return bindings
}

// inOrderOfAssignment orders the bindings by the last assignment of each pod: earlier ones were reverted.
func (o *bindOrder) inOrderOfAssignment(bindings []binding) []*binding {
	at := make(map[*model.Pod]*binding, len(bindings))
	for i := range bindings {
		at[bindings[i].pod] = &bindings[i]
	}
	list := make([]*binding, len(bindings))
	first := len(list)
	for i := len(o.assigner.order) - 1; i >= 0 && first > 0; i-- {
		if s := at[o.assigner.order[i]]; s != nil && !s.listed {
			s.listed = true
			first--
			list[first] = s
		}
	}
	return list[first:]
}

// count counts one of the placed pods with the index as bound.
func (b *bindTarget) count(counters *counters, i int) {
	rules := b.placed[i].pending.hard()
	for _, c := range rules.touched {
		c.put(counters.snap.Space, b.row, 1, b.taints)
	}
	for _, slot := range rules.hostTouched {
		b.tally.Add(slot, 1)
		if !b.tally.Nameless {
			counters.totals[slot]++
		}
	}
}

// admits reports whether the pod of the binding is admissible now.
func (o *bindOrder) admits(s *binding) bool {
	rs := s.pending().hard()
	for i := range s.index {
		if s.target.unbound[i] > 0 && s.target.placed[i].pending.hard().minds(rs) {
			return false
		}
	}
	if !rs.onAnyHost() {
		if limit, _ := o.admission.onHost(rs, &s.target.tally, o.admission.firstOfItsKind(rs)); limit == 0 {
			return false
		}
	}
	if len(rs.spreads)+len(rs.apart)+len(rs.affinities) == 0 {
		return true
	}
	return o.admission.admits(rs, nil, o.domain.become(o.snap.Space, rs, s.target.row)).OK()
}

// minds reports whether a pod with the other rules may exclude one with these from its host.
func (rs *rules) minds(other *rules) bool {
	for _, slot := range other.hostTouched {
		if slices.Contains(rs.hostApart, slot) ||
			slices.ContainsFunc(rs.hostSpreads, func(h hostSpread) bool { return h.slot == slot && !h.self }) {
			return true
		}
	}
	return false
}
