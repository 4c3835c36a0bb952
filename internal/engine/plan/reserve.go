package plan

import (
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Reservations are the writes that note on claims which pods the plan puts onto their nodes, as far as nothing else in the API
// says so: a claim names the pods that it was created for, and a nomination names its node. Neither is there for pods that join a
// claim in flight, whose node cannot be nominated yet, nor for pods whose nomination waits for that of others (see MostPromises
// and crowd), nor for pods that still run on a node that leaves. A process without memory of this plan finds the same
// places by the reservations, and launches nothing beside it. They are written before the claims of the plan are created.
//
// A reservation that is out of date does no harm while its pod is bound or gone, and is not written again for that.
func Reservations(snap *model.Snapshot, p *Provision) []Action {
	r := &reserver{nominator: newNominator(snap), goes: map[string]string{}, planned: map[string][]*model.Pod{}}
	for _, placed := range p.Placed {
		if node := nodeOrClaim(snap, placed.Node); node != nil {
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
	var actions []Action
	for _, node := range snap.Nodes {
		if !node.Ours() || node.Deleting || r.planned[node.Name] == nil && node.ReservedFor == nil {
			continue
		}
		if wanted := r.wanted(node); r.outdated(node, wanted) {
			actions = append(actions, ReservePods{Claim: node.Claim, UID: node.ClaimUID, Pods: wanted})
		}
	}
	return actions
}

// reserver answers for one snapshot and one plan.
type reserver struct {
	*nominator
	// planned are the pods of the plan by the name of the node, goes is the node or the new claim of each by UID, empty for pods
	// that have no place.
	planned map[string][]*model.Pod
	goes    map[string]string
}

func (r *reserver) note(pods []*model.Pod, to string) {
	for _, pod := range pods {
		r.goes[pod.UID] = to
	}
}

// wanted are the words (model.Pod.Promise) of the pods that only a reservation remembers.
func (r *reserver) wanted(node *model.Node) []string {
	nominated := map[string]bool{}
	if node.Stage >= model.Registered {
		nominated = r.nominated(r.present(r.planned[node.Name]), node.Name)
	}
	var words []string
	for _, pod := range r.planned[node.Name] {
		named := node.Stage < model.Initialized && slices.Contains(node.BoughtFor, pod.UID)
		waits := pod.Node != "" || r.pending[pod.UID] != nil && !nominated[pod.UID]
		if waits && !named {
			words = append(words, pod.Promise())
		}
	}
	return words
}

// outdated reports whether the reservations on the claim lack a pod, or name one that goes elsewhere now.
func (r *reserver) outdated(node *model.Node, wanted []string) bool {
	if slices.ContainsFunc(wanted, func(word string) bool { return !slices.Contains(node.ReservedFor, word) }) {
		return true
	}
	return slices.ContainsFunc(node.ReservedFor, func(word string) bool {
		uid, _, _ := strings.Cut(word, "/")
		to, planned := r.goes[uid]
		return planned && to != node.Name
	})
}
