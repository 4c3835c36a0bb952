package plan

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Ahead returns the snapshot that provisioning plans on: pods that will have to move because their nodes are leaving
// are pending there, so that capacity is bought before it is missed, and nobody is sent to those nodes.
//
// One pod is seen three times, and each time has the same seat, so that nothing is bought twice:
//
//	it runs on a node that leaves     a claim is bought, or room found; the claim notes the pod and its controller
//	it is planned again               the claim in flight promises it its seat
//	it is gone, another has come      of those that were promised none, a pod of its controller takes the seat
//
// Pods that cannot be evicted as things are (a do-not-disrupt that holds, a PodDisruptionBudget that never allows it, or
// that wants as many healthy pods as there are, more than one of them) would keep a new node empty and are not planned
// for, unless the drain has an end that is near (see doomed). A PodDisruptionBudget that allows nothing at the moment is no
// reason: the drain waits for it, and the pod's place has to be there when it opens. Such a pod, and
// a critical one that the drain does not come to, is EvictionBlocked: a plan that has no other place for it counts it where it
// runs. The PodDisruptionBudget may open only when pending pods of the same app are healthy, and those need a plan that agrees
// with kube-scheduler about where the pods are.
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
		case p.Rejected != nil: // no plan has a place for it
			return false
		}
		blocked[p.UID] = true
		return true
	})
	return Seated(ahead.BlockingEviction(blocked), snap, read.leaving)
}

// criticalPriority is the least priority of the classes system-cluster-critical and system-node-critical. No other class may
// have as much.
const criticalPriority = 2_000_000_000

// deferred reports whether the drain of the node does not come to the pod for now: a drain evicts critical pods after all
// others, of which one cannot be evicted at present.
func deferred(snap *model.Snapshot, n *model.Node, p *model.Pod) bool {
	return p.Priority >= criticalPriority && slices.ContainsFunc(n.Pods, func(other *model.Pod) bool {
		return other.Priority < criticalPriority && !evictable(snap, other).OK()
	})
}

// Leaving reports whether the node is on its way out with no way back that provisioning need wait for: its claim is
// being deleted, for whatever reason, or it is in a command whose replacements are being bought or that is draining.
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

// doomedAhead is how long before the end of a drain also those pods are planned for that nothing but that end takes off the
// node. It is longer than any cloud takes until a machine is a node, and than the two minutes by which EC2 tells of a spot
// interruption: of a node that is interrupted all pods are planned for at the notice. A terminationGracePeriod of hours
// does not keep a new node empty for hours.
const doomedAhead = 5 * time.Minute

// doomed reports whether all pods of the node are about to be deleted, whatever protects them.
func doomed(snap *model.Snapshot, n *model.Node) bool {
	return n.Deleting && !n.DrainEnds.IsZero() && !n.DrainEnds.After(snap.Now.Add(doomedAhead))
}

// held reports whether PodDisruptionBudgets keep the pod where it is until somebody changes them: one that never allows
// any eviction, or more than one, which the eviction API refuses. A pod that is not ready may go in spite of one that
// says so, or whose pods are healthy beside it.
func held(snap *model.Snapshot, p *model.Pod) bool {
	pdbs := snap.PDBsOf(p)
	if len(pdbs) != 1 {
		return len(pdbs) > 1
	}
	pdb := pdbs[0]
	return pdb.Blocking && (p.Ready || !pdb.AlwaysEvictUnready && !pdb.Healthy)
}

// full reports whether the pod's PodDisruptionBudget wants as many healthy pods as there are. What was bought for the pod
// before that, or while the pods of a StatefulSet are one short for a moment, is kept for it: see Bought.
func full(snap *model.Snapshot, p *model.Pod) bool {
	pdbs := snap.PDBsOf(p)
	return len(pdbs) == 1 && pdbs[0].Full && pdbs[0].Allowed == 0 && (p.Ready || !pdbs[0].AlwaysEvictUnready && !pdbs[0].Healthy)
}
