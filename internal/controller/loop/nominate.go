package loop

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
)

// remember keeps which pods the plan puts where.
func (p *Provision) remember(decided *plan.Provision) {
	targets := make(map[string][]*model.Pod, len(decided.Claims)+len(decided.Placed))
	for _, claim := range decided.Claims {
		targets[claim.Name] = claim.Pods
	}
	for _, placed := range decided.Placed {
		targets[placed.Node] = placed.Pods
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets = targets
}

// planned returns the pods that the latest plan puts on the claim or its node; known is false before the first plan.
func (p *Provision) planned(claim, node string) (pods []*model.Pod, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pods = p.targets[node]; pods == nil {
		pods = p.targets[claim]
	}
	return pods, p.targets != nil
}

// NominateFor promises the node to the pods that were planned onto the claim. Call it when the node has registered and
// pods are still kept off by its taint. It returns when the promises are written. What cannot be written is logged
// and left to the next tick: a node never waits for a pod.
func (p *Provision) NominateFor(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) error {
	if !p.Nominate {
		return nil
	}
	snap := p.Snapshot()
	pods, known := p.planned(claim.Name, node.Name)
	if !known { // after a restart: with its claims in flight, the same plan comes out
		p.remember(p.Schedule(snap))
		pods, _ = p.planned(claim.Name, node.Name)
	}
	pending := pendingByUID(snap)
	var waiting []*model.Pod
	for _, planned := range pods {
		if pod := pending[planned.UID]; pod != nil {
			waiting = append(waiting, pod)
		}
	}
	for _, o := range execute.Failures(p.Writer.Do(ctx, promises(waiting, node.Name))) {
		p.Log.Error(o.Err, "promising a node to its pods", "Node", node.Name, "NodeClaim", claim.Name)
	}
	return ctx.Err()
}

func pendingByUID(snap *model.Snapshot) map[string]*model.Pod {
	pending := map[string]*model.Pod{}
	for _, g := range snap.Groups {
		for _, pod := range g.Pods {
			pending[pod.UID] = pod
		}
	}
	return pending
}

// nominations are the writes that make the pods' nominations agree with the plan: pods on registered nodes of ours are
// nominated to them, all others to nothing. A node that is being registered is not nominated to here, but its promises,
// which NominateFor has just made, stay.
func (p *Provision) nominations(snap *model.Snapshot, decided *plan.Provision) []plan.Action {
	if !p.Nominate {
		return nil
	}
	var actions []plan.Action
	agree := func(pods []*model.Pod, node string) {
		for _, pod := range pods {
			if pod.Nominated != node {
				actions = append(actions, nominationOf(pod, node))
			}
		}
	}
	for _, placed := range decided.Placed {
		n := snap.Node(placed.Node)
		switch {
		case n == nil || !n.Ours():
			agree(placed.Pods, "")
		case n.Stage >= model.Registered:
			actions = append(actions, promises(placed.Pods, n.Name)...)
		default:
			agree(slices.DeleteFunc(slices.Clone(placed.Pods), func(pod *model.Pod) bool { return pod.Nominated == n.Name }), "")
		}
	}
	for _, claim := range decided.Claims {
		agree(claim.Pods, "")
	}
	for _, refusal := range decided.Refused {
		agree(refusal.Pods, "")
	}
	agree(snap.Rejected, "")
	return actions
}

// mostPromises is how many pods are nominated to one node at a time: as many as a kubelet takes by default. For each
// pod that it places, kube-scheduler reckons with every other that is nominated, so that its time grows with the square:
// 954 pods on one node took it 20 s, and 4 s without nominations. Pods beyond go where kube-scheduler likes.
const mostPromises = 110

// promises are the writes that nominate pods to the node, some of which may be already.
func promises(pods []*model.Pod, node string) []plan.Action {
	free := mostPromises
	for _, pod := range pods {
		if pod.Nominated == node {
			free--
		}
	}
	var actions []plan.Action
	for _, pod := range pods {
		switch {
		case pod.Nominated == node:
		case free > 0:
			free--
			actions = append(actions, nominationOf(pod, node))
		case pod.Nominated != "":
			actions = append(actions, nominationOf(pod, ""))
		}
	}
	return actions
}

func nominationOf(pod *model.Pod, node string) plan.Action {
	if node == "" {
		return plan.ClearNomination{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	}
	return plan.NominatePod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Node: node}
}
