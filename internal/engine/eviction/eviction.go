package eviction

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// disruptedTaint is the taint of a node that is being removed. A drain does not evict pods that tolerate it.
var disruptedTaint = [1]model.Taint{{Key: "karpenter.sh/disrupted", Effect: model.NoSchedule}}

// Allowed reports whether a drain could evict the pod now, so that no drain is started that cannot finish. These
// block the eviction: an active do-not-disrupt annotation, a PodDisruptionBudget that currently allows no eviction, and
// more than one PodDisruptionBudget, which the eviction API refuses. Pods that a drain does not evict never block it:
// pods that are terminating, pods that tolerate the disruption taint, and mirror pods. Of these, do-not-disrupt still
// counts on all but terminating pods. The cost is one look-up of the pod's PodDisruptionBudgets.
func Allowed(snap *model.Snapshot, p *model.Pod) plan.Verdict {
	if v := annotated(snap, p); !v.OK() {
		return v
	}
	return budgeted(snap, p)
}

// Refusals returns all verdicts that block the eviction of the pod, where Allowed returns the first.
func Refusals(snap *model.Snapshot, p *model.Pod) []plan.Verdict {
	return slices.DeleteFunc([]plan.Verdict{annotated(snap, p), budgeted(snap, p)}, plan.Verdict.OK)
}

// annotated returns the refusal of the pod's do-not-disrupt annotation.
func annotated(snap *model.Snapshot, p *model.Pod) plan.Verdict {
	if p.ProtectedUntil.After(snap.Now) {
		return plan.Verdict{Code: plan.NodeProtected, Node: p.Node, Holder: &plan.Holder{Pod: p.Key()}}
	}
	return plan.Verdict{}
}

// budgeted returns the refusal of the pod's PodDisruptionBudgets.
func budgeted(snap *model.Snapshot, p *model.Pod) plan.Verdict {
	if len(snap.PDBs) == 0 || !evicted(p) {
		return plan.Verdict{}
	}
	pdbs := snap.PDBsOf(p)
	switch {
	case len(pdbs) == 0:
		return plan.Verdict{}
	case len(pdbs) > 1:
		return plan.Verdict{Code: plan.PDBsConflict, Node: p.Node, Have: int64(len(pdbs)),
			Holder: &plan.Holder{Pod: p.Key(), PDB: pdbs[0].Namespace + "/" + pdbs[0].Name}}
	case pdbs[0].Allowed > 0, !p.Ready && (pdbs[0].AlwaysEvictUnready || pdbs[0].Healthy):
		return plan.Verdict{}
	}
	return plan.Verdict{Code: plan.PDBBlocks, Node: p.Node, Holder: &plan.Holder{Pod: p.Key(), PDB: pdbs[0].Namespace + "/" + pdbs[0].Name}}
}

// evicted reports whether a drain evicts the pod.
func evicted(p *model.Pod) bool { return !p.Terminating && Awaited(p) }

// Awaited reports whether a drain waits until the pod is gone: all pods but mirror pods and those that tolerate the
// disruption taint.
func Awaited(p *model.Pod) bool {
	if p.Controller.Kind == "Node" {
		return false
	}
	_, refused := model.Untolerated(disruptedTaint[:], p.Tolerations)
	return refused
}

// criticalPriority is the least priority of the classes system-cluster-critical and system-node-critical. User-defined
// classes have at most 1,000,000,000.
const criticalPriority = 2_000_000_000

// Deferred reports whether the drain of the node does not reach the pod yet. A drain evicts critical pods after all
// others, and one of the others cannot be evicted at present.
func Deferred(snap *model.Snapshot, n *model.Node, p *model.Pod) bool {
	return p.Priority >= criticalPriority && slices.ContainsFunc(n.Pods, func(other *model.Pod) bool {
		return other.Priority < criticalPriority && !Allowed(snap, other).OK()
	})
}

// soon is how long before the end of a drain the plan includes pods that only that end removes. It is longer
// than any cloud needs to turn a launch into a node, and longer than EC2's two-minute notice of a spot interruption, so
// that all pods of an interrupted node are planned for at the notice
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html). A
// terminationGracePeriod of hours does not keep a new node empty for hours.
const soon = 5 * time.Minute

// DrainEndsSoon reports whether all pods of the node are about to be deleted, regardless of their protection.
func DrainEndsSoon(snap *model.Snapshot, n *model.Node) bool {
	return n.Deleting && !n.DrainEnds.IsZero() && !n.DrainEnds.After(snap.Now.Add(soon))
}

// Blocked reports whether PodDisruptionBudgets block the pod's eviction until they are changed: one that never allows
// any eviction, or more than one, which the eviction API refuses. A pod that is not ready may be evicted if the
// budget's unhealthyPodEvictionPolicy permits it, or if enough of its pods are healthy.
func Blocked(snap *model.Snapshot, p *model.Pod) bool {
	pdbs := snap.PDBsOf(p)
	if len(pdbs) != 1 {
		return len(pdbs) > 1
	}
	pdb := pdbs[0]
	return pdb.Blocking && (p.Ready || !pdb.AlwaysEvictUnready && !pdb.Healthy)
}

// BudgetFull reports whether the pod's PodDisruptionBudget requires as many healthy pods as there are. A node that was
// launched for the pod before that, or while a StatefulSet is short of one pod for a moment, is kept for it: see
// Bought.
func BudgetFull(snap *model.Snapshot, p *model.Pod) bool {
	pdbs := snap.PDBsOf(p)
	return len(pdbs) == 1 && pdbs[0].Full && pdbs[0].Allowed == 0 && (p.Ready || !pdbs[0].AlwaysEvictUnready && !pdbs[0].Healthy)
}

// Moves reports whether, in the current state, the pod will be evicted from its node and rescheduled.
func Moves(snap *model.Snapshot, n *model.Node, p *model.Pod) bool {
	return p.Reschedulable && (DrainEndsSoon(snap, n) || !p.ProtectedUntil.After(snap.Now) && !Blocked(snap, p))
}
