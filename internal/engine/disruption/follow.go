package disruption

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// A plan places the pods that a removal moves as if they had all left their nodes. They are evicted one by one, and a
// pod with required affinity to others of them is recreated while those still run. If the plan has all of them in
// another zone, kube-scheduler accepts the first pods in the old zone only: provisioning launches nodes there again,
// the replacements remain empty, and the next pass proposes the same command. Such a removal is not made. By hostname,
// the pods of a node follow the first of them that has moved: a node that is being removed accepts no pods.

// following returns the pods with required affinity whose planned domain has none of the pods that they must be near,
// neither before the removal nor on its nodes, while other such pods still run on its nodes.
func (w *projection) following(o *outcome) []unplacedPod {
	var planned map[*model.Pod]label.Row
	var origin map[*model.Pod]*model.Node
	var found []unplacedPod
	for _, g := range o.groups {
		for i := range g.Terms {
			term := &g.Terms[i]
			key, known := w.snap.Space.Lookup(term.Key)
			if !known || !term.Required() || term.Anti || term.Key == model.LabelHostname {
				continue
			}
			if planned == nil {
				planned, origin = w.plannedRows(o), w.origins(o.nodes)
			}
			found = w.followingTerm(found, o.nodes, &affinityTerm{g, g.TermMarks[i], key}, planned, origin)
		}
	}
	return found
}

// affinityTerm is a required affinity term of a group's pods, with its selector mark and its topology key.
type affinityTerm struct {
	group *model.Group
	mark  int
	key   label.Key
}

func (w *projection) followingTerm(found []unplacedPod, nodes []*model.Node, t *affinityTerm, planned map[*model.Pod]label.Row, origin map[*model.Pod]*model.Node) []unplacedPod {
	if slices.ContainsFunc(w.snap.Nodes, func(n *model.Node) bool { return n.CountOf(t.mark) > 0 && !slices.Contains(nodes, n) }) {
		return found // the plan has the pods near those
	}
	own := 0
	if slices.Contains(t.group.Matches, t.mark) {
		own = 1
	}
	for _, p := range t.group.Pods {
		from, row := origin[p], planned[p]
		if from == nil || row == nil {
			continue
		}
		others, near := 0, false
		for _, n := range nodes {
			count := n.CountOf(t.mark)
			if n == from {
				count -= own
			}
			if count > 0 {
				others += count
				near = near || w.within(row, n.Row, t.key)
			}
		}
		if others > 0 && !near {
			found = append(found, unplacedPod{pod: p, node: from, follows: w.snap.Space.Name(t.key)})
		}
	}
	return found
}

// within reports whether each domain that the row may be in is one of the other row.
func (w *projection) within(row, other label.Row, key label.Key) bool {
	space := w.snap.Space
	for atom := range space.Atoms(key) {
		if space.HasAtom(row, key, atom) && !space.HasAtom(other, key, atom) {
			return false
		}
	}
	return true
}

// plannedRows returns the rows of the nodes that the outcome places the pods on.
func (w *projection) plannedRows(o *outcome) map[*model.Pod]label.Row {
	rows := map[*model.Pod]label.Row{}
	add := func(n *model.Node, pods []*model.Pod) {
		if n == nil {
			return
		}
		for _, p := range pods {
			rows[p] = n.Row
		}
	}
	for _, s := range o.assignments {
		add(w.snap.Node(s.Node), s.Pods)
	}
	for i := range o.claims {
		add(w.snap.Future(o.claims[i].FutureSpec(w.snap), o.claims[i].Types()), o.claims[i].Pods)
	}
	return rows
}
