package plan

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// disruptedTaint is the taint of a node that is being removed. A drain does not evict pods that tolerate it.
var disruptedTaint = [1]model.Taint{{Key: "karpenter.sh/disrupted", Effect: model.NoSchedule}}

// Evictable reports whether a drain could evict the pod now, so that no drain is started that cannot finish. These
// block the eviction: an active do-not-disrupt annotation, a PodDisruptionBudget that currently allows no eviction, and
// more than one PodDisruptionBudget, which the eviction API refuses. Pods that a drain does not evict never block it:
// pods that are terminating, pods that tolerate the disruption taint, and mirror pods. Of these, do-not-disrupt still
// counts on all but terminating pods. The cost is one look-up of the pod's PodDisruptionBudgets.
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

// evictable returns the first refusing verdict of the node's pods.
func (g *Guard) evictable(n *model.Node) Verdict {
	for _, p := range n.Pods {
		if v := g.Evictable(p); !v.OK() {
			v.Node = n.Name
			return v
		}
	}
	return Verdict{}
}

// protected returns the first pod of the node that do-not-disrupt protects now, nil if there is none.
func (g *Guard) protected(n *model.Node) *model.Pod {
	for _, p := range n.Pods {
		if p.ProtectedUntil.After(g.snap.Now) {
			return p
		}
	}
	return nil
}
