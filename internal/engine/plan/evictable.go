package plan

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// disruptedTaint is what a node that leaves carries; a drain leaves pods that tolerate it alone.
var disruptedTaint = [1]model.Taint{{Key: "karpenter.sh/disrupted", Effect: model.NoSchedule}}

// Evictable tells whether a drain could evict the pod now, so that a node is not given up for a drain that cannot end:
// a do-not-disrupt that holds, a PodDisruptionBudget that allows no eviction at the moment, or more than one, which the
// eviction API refuses, keep it where it is. Pods that a drain does not evict are in nobody's way: those that are
// leaving already, those that tolerate the taint of a node that leaves, and mirror pods; do-not-disrupt counts on them
// too, but for the leaving. The cost is that of the look-up of its PodDisruptionBudgets.
func (g *Guard) Evictable(p *model.Pod) Verdict { return evictable(g.snap, p) }

func evictable(snap *model.Snapshot, p *model.Pod) Verdict {
	if p.ProtectedUntil.After(snap.Now) {
		return Verdict{Code: NodeProtected, Node: p.Node, Holder: &Holder{Pod: p.Key()}}
	}
	if len(snap.PDBs) == 0 || !evicted(p) {
		return Verdict{}
	}
	pdbs := snap.PDBsOf(p)
	switch {
	case len(pdbs) == 0:
		return Verdict{}
	case len(pdbs) > 1:
		return Verdict{Code: PDBsConflict, Node: p.Node, Holder: &Holder{Pod: p.Key(), PDB: pdbs[0].Namespace + "/" + pdbs[0].Name}, Have: int64(len(pdbs))}
	case pdbs[0].Allowed > 0, !p.Ready && (pdbs[0].AlwaysEvictUnready || pdbs[0].Healthy):
		return Verdict{}
	}
	return Verdict{Code: PDBBlocks, Node: p.Node, Holder: &Holder{Pod: p.Key(), PDB: pdbs[0].Namespace + "/" + pdbs[0].Name}}
}

// evicted reports whether a drain evicts the pod.
func evicted(p *model.Pod) bool {
	if p.Terminating || p.Controller.Kind == "Node" {
		return false
	}
	_, refused := model.Untolerated(disruptedTaint[:], p.Tolerations)
	return refused
}

// evictable is the first verdict of the node's pods that is a no.
func (g *Guard) evictable(n *model.Node) Verdict {
	for _, p := range n.Pods {
		if v := g.Evictable(p); !v.OK() {
			v.Node = n.Name
			return v
		}
	}
	return Verdict{}
}

// protected is the first pod of the node that do-not-disrupt protects now, nil if there is none.
func (g *Guard) protected(n *model.Node) *model.Pod {
	for _, p := range n.Pods {
		if p.ProtectedUntil.After(g.snap.Now) {
			return p
		}
	}
	return nil
}
