package plan

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// The order in which the nodes of a plan open for pods.
//
// As soon as a node opens, kube-scheduler tries every pending pod on it, also those that the plan has elsewhere. What keeps
// the room for the node's own pods is their nomination, and there are two gaps. A pod that kube-scheduler tries while the node
// still has its taint loses its nomination (kube-scheduler clears it when preemption cannot help). And of pods that a spread
// constraint counts together only some may be nominated at a time (see crowd), so that room for the others is left open. A pod of
// another kind in that room leaves room elsewhere that the spread forbids the displaced pods to use, and one more node is
// launched. So a node opens when its nominations stand, and nodes with room left open come after those with none, once
// the pods of other kinds are bound.

// mostTogether is how many nodes a plan may have for this; the pods of more nodes find room among themselves.
const mostTogether = 50

// Opening says why a node should not open for pods yet.
type Opening uint8

const (
	// Open: there is no reason.
	Open Opening = iota
	// Unsettled: nominations were written just now, and must be seen to stand.
	Unsettled
	// OthersFirst: pods of another kind are about to be bound to nodes that keep all their room.
	OthersFirst
)

// Opening says whether the node of the claim may open. The nominations are those that Promises asked for on the same
// snapshot.
func (t Targets) Opening(snap *model.Snapshot, claim, node string, nominations int) Opening {
	if len(t) < 2 || len(t) > mostTogether {
		return Open
	}
	n := newNominator(snap)
	own := n.present(t[node])
	if t[node] == nil {
		own = n.present(t[claim])
	}
	others := t.others(n, claim, node)
	foreign := func(p *model.Pod) bool {
		return slices.ContainsFunc(own, func(o *model.Pod) bool { return o.Shape != p.Shape })
	}
	if !slices.ContainsFunc(others, func(o target) bool { return slices.ContainsFunc(o.pods, foreign) }) {
		return Open
	}
	if nominations > 0 {
		return Unsettled
	}
	if n.promise(own, node); n.beyond == 0 {
		return Open
	}
	for _, o := range others {
		if slices.ContainsFunc(o.pods, foreign) && o.tight(snap) {
			return OthersFirst
		}
	}
	return Open
}

// target is a node of a plan, and the pods planned onto it that are still pending.
type target struct {
	name string
	pods []*model.Pod
}

// others are the targets beside that of the claim which are nodes of ours, in flight or here, and have pods to come.
func (t Targets) others(n *nominator, claim, node string) []target {
	var list []target
	for name, planned := range t {
		if there := nodeOrClaim(n.snap, name); there == nil || !there.Ours() || there.Claim == claim || there.Name == node {
			continue
		}
		if pods := n.present(planned); len(pods) > 0 {
			list = append(list, target{name, pods})
		}
	}
	return list
}

// tight reports whether all pods of the target may be nominated to it at once.
func (o target) tight(snap *model.Snapshot) bool {
	n := newNominator(snap)
	n.promise(o.pods, o.name)
	return n.beyond == 0
}
