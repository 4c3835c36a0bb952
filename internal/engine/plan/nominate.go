package plan

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Nominations are a promise to the pod, and for kube-scheduler more than that: while it asks whether a node will do for a
// pod, it reckons with all other pods of the same or a higher priority that are nominated to the node as if they were on
// it already. Pods that are admissible one after the other, as topology spread makes them, would each be kept out by the
// others, for ever, on every node that has too many of them. So of pods that a spread constraint counts together only some
// are nominated to a node at a time; the next when they are bound. See crowd.

// MostPromises is how many pods are nominated to one node at a time: as many as a kubelet takes by default. For each
// pod that it places, kube-scheduler reckons with every other that is nominated, so that its time grows with the square:
// 954 pods on one node took it 20 s, and 4 s without nominations. Pods beyond go where kube-scheduler likes.
const MostPromises = 110

// Targets are the pods of a plan by the name of the claim or node that they are to go to.
type Targets map[string][]*model.Pod

// Targets returns where the plan puts its pods; never nil.
func (p *Provision) Targets() Targets {
	targets := make(Targets, len(p.Claims)+len(p.Placed))
	for _, claim := range p.Claims {
		targets[claim.Name] = claim.Pods
	}
	for _, placed := range p.Placed {
		targets[placed.Node] = placed.Pods
	}
	return targets
}

// Promises are the writes that nominate to a node that is about to open those pods that were planned onto it, or onto
// its claim, and are still pending.
func (t Targets) Promises(snap *model.Snapshot, claim, node string) []Action {
	pods := t[node]
	if pods == nil {
		pods = t[claim]
	}
	return nominatorOf(snap, pods).promise(pods, node)
}

// Nominations are the writes that make the pods' nominations agree with the plan: pods on registered nodes of ours are
// nominated to them, all others to nothing. A node that is being registered is not nominated to here, but what it was
// promised just now (see Targets.Promises) stays. The plan may be older than the snapshot. beyond is how many pods have
// no promise only because their nodes have as many as they may, or one that keeps them out: their turn is when others are
// bound.
func Nominations(snap *model.Snapshot, p *Provision) (actions []Action, beyond int) {
	n := newNominator(snap)
	for _, placed := range p.Placed {
		actions = append(actions, n.agree(placed.Pods, placed.Node)...)
	}
	for _, claim := range p.Claims {
		actions = append(actions, n.agree(claim.Pods, claim.Name)...)
	}
	for _, refusal := range p.Refused {
		actions = append(actions, n.clear(refusal.Pods, "")...)
	}
	for _, pod := range snap.Rejected {
		if pod.Nominated != "" {
			actions = append(actions, nomination(pod, ""))
		}
	}
	return actions, n.beyond
}

// nominator answers for one snapshot.
type nominator struct {
	snap    *model.Snapshot
	pending map[string]*model.Pod
	// groups of pending pods by shape; single are the answers of oneDomain.
	groups map[*model.Shape]*model.Group
	single map[*model.Spread]bool
	beyond int
}

func newNominator(snap *model.Snapshot) *nominator {
	n := &nominator{snap: snap, pending: pendingPods(snap), groups: map[*model.Shape]*model.Group{}, single: map[*model.Spread]bool{}}
	for _, g := range snap.Groups {
		n.groups[g.Pods[0].Shape] = g
	}
	return n
}

// nominatorOf answers for the pods of some lists alone: a large backlog beside them costs a look-up for each of its pods.
func nominatorOf(snap *model.Snapshot, lists ...[]*model.Pod) *nominator {
	n := &nominator{snap: snap, pending: map[string]*model.Pod{}, groups: map[*model.Shape]*model.Group{}, single: map[*model.Spread]bool{}}
	asked := map[string]bool{}
	for _, pods := range lists {
		for _, pod := range pods {
			asked[pod.UID] = true
		}
	}
	for _, g := range snap.Groups {
		if len(n.pending) == len(asked) {
			break
		}
		for _, pod := range g.Pods {
			if asked[pod.UID] {
				n.pending[pod.UID], n.groups[pod.Shape] = pod, g
			}
		}
	}
	return n
}

// agree are the writes for pods that the plan puts on the node, or claim, of that name.
func (n *nominator) agree(pods []*model.Pod, name string) []Action {
	node := n.snap.Node(name)
	if node == nil {
		node = n.snap.Claim(name)
	}
	switch {
	case node == nil || !node.Ours():
		return n.clear(pods, "")
	case node.Stage < model.Registered:
		return n.clear(pods, node.Name)
	}
	return n.promise(pods, node.Name)
}

// clear takes the pods' nominations back, except those to one node.
func (n *nominator) clear(pods []*model.Pod, except string) []Action {
	var actions []Action
	for _, pod := range n.present(pods) {
		if pod.Nominated != "" && pod.Nominated != except {
			actions = append(actions, nomination(pod, ""))
		}
	}
	return actions
}

// promise are the writes that nominate pods to the node, some of which may be already.
func (n *nominator) promise(planned []*model.Pod, node string) []Action {
	pods := n.present(planned)
	promised := promises{nominator: n}
	keeps := make(map[*model.Pod]bool, len(pods))
	for _, pod := range pods {
		if pod.Nominated == node && !promised.keepOut(pod) {
			promised.add(pod)
			keeps[pod] = true
		}
	}
	var actions []Action
	for _, pod := range pods {
		switch {
		case keeps[pod]:
		case len(promised.all) < MostPromises && !promised.keepOut(pod):
			promised.add(pod)
			actions = append(actions, nomination(pod, node))
		default:
			n.beyond++
			if pod.Nominated != "" {
				actions = append(actions, nomination(pod, ""))
			}
		}
	}
	return actions
}

// nominated are the UIDs of those of the pods that have, or are about to get, a nomination to the node.
func (n *nominator) nominated(pods []*model.Pod, node string) map[string]bool {
	nominated := map[string]bool{}
	for _, pod := range pods {
		nominated[pod.UID] = pod.Nominated == node
	}
	for _, action := range n.promise(pods, node) {
		switch a := action.(type) {
		case NominatePod:
			nominated[a.UID] = true
		case ClearNomination:
			nominated[a.UID] = false
		}
	}
	return nominated
}

// present are those of the pods that are still pending, as the snapshot has them.
func (n *nominator) present(pods []*model.Pod) []*model.Pod {
	present := make([]*model.Pod, 0, len(pods))
	for _, pod := range pods {
		if now := n.pending[pod.UID]; now != nil {
			present = append(present, now)
		}
	}
	return present
}

func nomination(pod *model.Pod, node string) Action {
	if node == "" {
		return ClearNomination{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, From: pod.Nominated}
	}
	return NominatePod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Node: node}
}
