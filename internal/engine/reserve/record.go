package reserve

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Records returns the writes that record on claims which pods the plan places on their nodes, unless another
// object in the API records it: a claim lists the pods it was created for, and a nomination names its node. Neither
// exists for pods that join a claim in flight, whose node cannot be nominated yet; for pods whose nomination waits for
// others (see nominate.MostNominated and nominate/spreadlimit.go); and for pods that still run on a node that is being removed. With
// the reservations, a process without memory of this plan finds the same placements and launches no additional nodes.
// They are written before the claims of the plan are created.
//
// Nominations are written after that, and count the created claims: pods whose constraint counts nodes in one domain
// only may all be nominated, but not while a claim in flight may join another domain. So as soon as the
// plan has claims, such pods are reserved too. Otherwise nothing would record those of them that lose their nomination.
//
// Of several claims in flight that were created for one pod, the newest determines where the pod goes
// (model.CompareLaunches): a second claim was launched because the pod did not fit on the node of the first, so another
// pod may use its capacity there. If the plan nevertheless places the pod on an older one, that is reserved.
//
// A reservation is removed when its pod goes elsewhere, or runs on another node that is not being removed: if that node
// is removed later, a later plan decides where the pod goes. A reservation whose pod runs on the node itself, or is
// gone, is harmless and causes no write.
func Records(snap *model.Snapshot, p *plan.Provision) []plan.Action {
	r := &reserver{snap: snap, nominations: nominate.Select(snap, p), goes: map[string]string{},
		planned: map[string][]*model.Pod{}, named: launchedFor(snap)}
	for _, placed := range p.Placed {
		if node := snap.NodeOrClaim(placed.Node); node != nil {
			r.planned[node.Name] = placed.Pods
			r.note(placed.Pods, node.Name)
		}
	}
	for _, claim := range p.Claims {
		r.note(claim.Pods, claim.Name)
	}
	for _, refusal := range p.Refused {
		r.note(refusal.Pods, "")
	}
	r.noteSettled()
	var actions []plan.Action
	for _, node := range snap.Nodes {
		if !node.Ours() || node.Deleting || r.planned[node.Name] == nil && node.ReservedFor == nil {
			continue
		}
		if wanted := r.wanted(node); r.outdated(node, wanted) {
			actions = append(actions, plan.ReservePods{Claim: node.Claim, UID: node.ClaimUID, Pods: wanted})
		}
	}
	return actions
}

// reserver computes the reservations for one snapshot and one plan.
type reserver struct {
	snap        *model.Snapshot
	nominations *nominate.Selection
	// planned are the pods of the plan by the name of the node. goes is the node or the new claim of each pod by UID,
	// empty for pods that are not placed.
	planned map[string][]*model.Pod
	goes    map[string]string
	// named is the node whose claim was created for the pod, by UID.
	named map[string]*model.Node
}

// launchedFor returns, by UID of the pod, the node of the newest claim in flight that was created for it.
func launchedFor(snap *model.Snapshot) map[string]*model.Node {
	newest := map[string]*model.Node{}
	for _, node := range snap.Nodes {
		if node.Deleting || node.Stage >= model.Initialized {
			continue
		}
		for _, ref := range node.LaunchedFor {
			if other := newest[ref.UID]; other == nil || model.CompareLaunches(node, other) < 0 {
				newest[ref.UID] = node
			}
		}
	}
	return newest
}

func (r *reserver) note(pods []*model.Pod, to string) {
	for _, pod := range pods {
		r.goes[pod.UID] = to
	}
}

// noteSettled records the nodes of reserved pods that the plan does not contain, if these nodes are not being removed.
func (r *reserver) noteSettled() {
	reserved := map[string]bool{}
	for _, node := range r.snap.Nodes {
		for _, ref := range node.ReservedFor {
			if _, planned := r.goes[ref.UID]; !planned && !r.nominations.Pending(ref.UID) {
				reserved[ref.UID] = true
			}
		}
	}
	if len(reserved) == 0 {
		return
	}
	read := plan.CommandReader{}
	for _, node := range r.snap.Nodes {
		stays := !node.Deleting && !read.Leaving(node)
		for _, pod := range node.Pods {
			if stays && reserved[pod.UID] {
				r.goes[pod.UID] = node.Name
			}
		}
	}
}

// wanted returns the pods that only a record names.
func (r *reserver) wanted(node *model.Node) []model.PodRef {
	nominated := map[string]bool{}
	if node.Stage >= model.Registered {
		nominated = r.nominations.Nominated(r.planned[node.Name], node.Name)
	}
	var refs []model.PodRef
	for _, pod := range r.planned[node.Name] {
		waits := pod.Node != "" || r.nominations.Pending(pod.UID) && !nominated[pod.UID]
		if waits && r.named[pod.UID] != node {
			refs = append(refs, pod.Ref())
		}
	}
	return refs
}

// outdated reports whether the record on the claim lacks a pod, or names one that now goes elsewhere.
func (r *reserver) outdated(node *model.Node, wanted []model.PodRef) bool {
	if slices.ContainsFunc(wanted, func(ref model.PodRef) bool { return !slices.Contains(node.ReservedFor, ref) }) {
		return true
	}
	return slices.ContainsFunc(node.ReservedFor, func(ref model.PodRef) bool {
		to, planned := r.goes[ref.UID]
		return planned && to != node.Name
	})
}
