package plan

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Ahead returns the snapshot that provisioning plans on. Pods on nodes that are being removed are pending in it, so
// that capacity is launched before it is needed, and those nodes accept no pods.
//
// A pod appears in three forms, and has the same reservation in each, so that no node is launched twice:
//
//	it runs on a node being removed     a claim is created, or capacity found; it records the pod and its controller
//	it is planned again                 the claim in flight has a reservation for it
//	it is gone, a successor exists      a pod of the same controller without a reservation takes this one
//
// Some pods cannot be evicted in the current state: do-not-disrupt protects them, a PodDisruptionBudget never allows
// the eviction or requires as many healthy pods as there are, or more than one budget selects them. They would leave a
// new node empty, and are not planned for unless the drain ends soon (see doomed). A PodDisruptionBudget that allows no
// eviction at the moment is different: the drain waits for it, and the pod needs capacity elsewhere when the budget
// opens. Such a pod, and a critical pod that the drain does not reach yet, is EvictionBlocked: a plan with no other
// node for it counts it where it runs. The PodDisruptionBudget may open only when pending pods of the same app are
// healthy, and placing those requires a plan that agrees with kube-scheduler about where the pods are.
func Ahead(snap *model.Snapshot) *model.Snapshot {
	pdbs := len(snap.PDBs) > 0
	read, blocked := reader{}, map[string]bool{}
	ahead := snap.Vacated(read.leaving, func(n *model.Node, p *model.Pod) bool {
		switch {
		case doomed(snap, n):
			return true
		case p.ProtectedUntil.After(snap.Now), pdbs && (held(snap, p) || full(snap, p)):
			return false
		case evictable(snap, p).OK() && !deferred(snap, n, p):
			return true
		case p.Rejected != nil: // no plan can place it
			return false
		}
		blocked[p.UID] = true
		return true
	})
	return Seated(ahead.BlockingEviction(blocked), snap, read.leaving)
}

// criticalPriority is the least priority of the classes system-cluster-critical and system-node-critical. User-defined
// classes have at most 1,000,000,000.
const criticalPriority = 2_000_000_000

// deferred reports whether the drain of the node does not reach the pod yet. A drain evicts critical pods after all
// others, and one of the others cannot be evicted at present.
func deferred(snap *model.Snapshot, n *model.Node, p *model.Pod) bool {
	return p.Priority >= criticalPriority && slices.ContainsFunc(n.Pods, func(other *model.Pod) bool {
		return other.Priority < criticalPriority && !evictable(snap, other).OK()
	})
}

// Leaving reports whether the node is being removed and provisioning need not expect a rollback: its claim is being
// deleted, for any reason, or it is in a command that launches replacements or drains.
func Leaving(n *model.NodeSpec) bool { return reader{}.leaving(&model.Node{NodeSpec: n}) }

func (r reader) leaving(n *model.Node) bool {
	switch {
	case n.Claim == "":
		return false
	case n.Deleting:
		return true
	case n.Command == "":
		return false
	}
	cmd := r.command(n)
	return cmd != nil && (cmd.Phase == Launching || cmd.Phase == Draining)
}

// doomedAhead is how long before the end of a drain the plan includes pods that only that end removes. It is longer
// than any cloud needs to turn a launch into a node, and longer than EC2's two-minute notice of a spot interruption, so
// that all pods of an interrupted node are planned for at the notice
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html). A
// terminationGracePeriod of hours does not keep a new node empty for hours.
const doomedAhead = 5 * time.Minute

// doomed reports whether all pods of the node are about to be deleted, regardless of their protection.
func doomed(snap *model.Snapshot, n *model.Node) bool {
	return n.Deleting && !n.DrainEnds.IsZero() && !n.DrainEnds.After(snap.Now.Add(doomedAhead))
}

// held reports whether PodDisruptionBudgets block the pod's eviction until they are changed: one that never allows any
// eviction, or more than one, which the eviction API refuses. A pod that is not ready may be evicted if the budget's
// unhealthyPodEvictionPolicy permits it, or if enough of its pods are healthy.
func held(snap *model.Snapshot, p *model.Pod) bool {
	pdbs := snap.PDBsOf(p)
	if len(pdbs) != 1 {
		return len(pdbs) > 1
	}
	pdb := pdbs[0]
	return pdb.Blocking && (p.Ready || !pdb.AlwaysEvictUnready && !pdb.Healthy)
}

// full reports whether the pod's PodDisruptionBudget requires as many healthy pods as there are. A node that was
// launched for the pod before that, or while a StatefulSet is short of one pod for a moment, is kept for it: see
// Bought.
func full(snap *model.Snapshot, p *model.Pod) bool {
	pdbs := snap.PDBsOf(p)
	return len(pdbs) == 1 && pdbs[0].Full && pdbs[0].Allowed == 0 && (p.Ready || !pdbs[0].AlwaysEvictUnready && !pdbs[0].Healthy)
}
