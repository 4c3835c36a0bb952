package plan

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// The order in which the nodes of a plan open for pods.
//
// The first node that opens wakes all pending pods in kube-scheduler, and it tries each of them on the nodes that are open by
// then. Two things go wrong. A pod whose own node is still closed takes room that is left open for others: of pods that a
// spread constraint counts together only some may be nominated at a time (see crowd), so nothing holds the room of the rest.
// And a pod that is tried in vain loses its nomination, because kube-scheduler clears it when preemption does not help; pods
// that float, because they have no nomination, then take the room that it held. Either way the spread forbids the displaced
// pods what is left elsewhere, and one more node is launched.
//
// So nodes with pods of other shapes than those that float open before nodes whose pods all float, one after the other: each
// when kube-scheduler has tried its pods on the nodes before, which clears their nominations, and right after these are
// written again. When those nodes are open and their pods are bound, or nominated for a while, the others open together.

// mostAfterEachOther is how many nodes open one after the other at most; where there are more, those with pods of other shapes open
// together. The nodes of a plan of more than mostInOrder open in any order: working it out for each of them takes too long.
const mostAfterEachOther, mostInOrder = 10, 20

// Opening is which nodes open before a node.
type Opening struct {
	// Before are the names of nodes, or claims, of the plan that open before this one, and are not open yet.
	Before []string
	// Stays: pods that do not float come to the node. Alone: no other node opens beside it.
	Stays, Alone bool
	// First: no node of the plan is open yet.
	First bool
	// Untried: kube-scheduler is still to try pods, after the last node opened, before this one may. Of a node with pods that stay
	// these are its own, and they have their nominations until then; other nodes wait for all pods that stay.
	Untried bool
	// Adrift: a pod that stays has no nomination though its node is open.
	Adrift bool
}

// Opening says which nodes open before the node of the claim; nil where there is no order.
func (t Targets) Opening(snap *model.Snapshot, claim, node string) *Opening {
	if len(t) > mostInOrder {
		return nil
	}
	rows := t.rows(snap)
	own := slices.IndexFunc(rows, func(r row) bool { return r.node.Claim == claim || r.node.Name == node })
	if own < 0 || !slices.ContainsFunc(rows, row.floats) || !slices.ContainsFunc(rows, row.stays) {
		return nil
	}
	self, apart := rows[own], 0
	opening := &Opening{First: !slices.ContainsFunc(rows, row.open)}
	nominated := func(p *model.Pod) bool { return p.Nominated == self.node.Name }
	opening.Untried = !self.stays() || slices.ContainsFunc(self.pods, nominated)
	for _, r := range rows {
		opening.Adrift = opening.Adrift || r.open() && r.adrift
		if r.open() || !r.stays() {
			continue
		}
		apart++
		if !self.stays() || r.loose < self.loose {
			opening.Before = append(opening.Before, r.node.Name)
		}
	}
	opening.Stays, opening.Alone = self.stays(), self.stays() && apart <= mostAfterEachOther
	return opening
}

// Standing are the writes that nominate pods to the nodes of the plan that are open, where a nomination is missing.
func (t Targets) Standing(snap *model.Snapshot) []Action {
	return t.missing(snap, row.open)
}

// Coming are the writes that nominate pods to the nodes of the plan that are open, and to those that have joined and to which pods
// come that stay, where a nomination is missing; those to the node that is about to open come last.
func (t Targets) Coming(snap *model.Snapshot, claim, node string) []Action {
	others := t.missing(snap, func(r row) bool {
		joined := r.node.Name != r.node.Claim
		return r.node.Claim != claim && (r.open() || joined && r.stays())
	})
	return append(others, t.Promises(snap, claim, node)...)
}

// missing are the nominations to some of the nodes that are not there.
func (t Targets) missing(snap *model.Snapshot, some func(row) bool) []Action {
	n := newNominator(snap)
	var actions []Action
	for _, r := range t.rows(snap) {
		if some(r) {
			actions = append(actions, n.promise(r.pods, r.node.Name)...)
		}
	}
	return actions
}

// row is a node of a plan to which pods are to come.
type row struct {
	node *model.Node
	pods []*model.Pod
	// others are the pods of shapes that do not float anywhere, loose the pods that have no nomination while the others have.
	others, loose int
	// adrift: one of the others has no nomination to the node.
	adrift bool
}

// stays reports whether pods come to the node that are to find it open when they are tried.
func (r row) stays() bool { return r.others > 0 }

// floats reports whether not all pods of the node may be nominated to it at once.
func (r row) floats() bool { return r.loose > 0 }

func (r row) open() bool { return r.node.Stage >= model.Registered }

// rows are the nodes of the plan to which pods are to come, in the order in which they open.
func (t Targets) rows(snap *model.Snapshot) []row {
	n := newNominator(snap)
	var rows []row
	floating := map[*model.Shape]bool{}
	for name, planned := range t {
		node, pods := nodeOrClaim(snap, name), n.present(planned)
		if node == nil || !node.Ours() || len(pods) == 0 {
			continue
		}
		kept := n.nominated(pods, node.Name)
		r := row{node: node, pods: pods}
		for _, pod := range pods {
			if !kept[pod.UID] {
				r.loose++
				floating[pod.Shape] = true
			}
		}
		rows = append(rows, r)
	}
	for i := range rows {
		for _, pod := range rows[i].pods {
			if !floating[pod.Shape] {
				rows[i].others++
				rows[i].adrift = rows[i].adrift || pod.Nominated != rows[i].node.Name
			}
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.loose, b.loose), cmp.Compare(b.others, a.others), cmp.Compare(a.node.Name, b.node.Name))
	})
	return rows
}
