package nominate

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Nominations and topology spread.
//
// A nomination (status.nominatedNodeName) affects other pods too: when kube-scheduler filters a node for a pod, it
// treats all other pods of the same or a higher priority that are nominated to the node as if they ran on it. Pods that
// are admissible only one after the other, because of topology spread, would exclude each other forever on every node
// with too many of them. So of pods that a spread constraint counts together, only some are nominated to a node at a
// time, and the next when those are bound. See spreadLimit.

// MostNominated is how many pods are nominated to one node at a time: the kubelet's default of maxPods. For each pod
// that it schedules, kube-scheduler evaluates every other nominated pod, so its time grows with the square of their
// number: 954 pods on one node took 20 s, and 4 s without nominations. Pods beyond this number are not nominated, and
// kube-scheduler selects their node.
const MostNominated = 110

// Targets maps the name of a claim or node to the pods that a plan places on it.
type Targets map[string][]*model.Pod

// TargetsOf returns the pods of the plan by target. It is never nil.
func TargetsOf(p *plan.Provision) Targets {
	targets := make(Targets, len(p.Claims)+len(p.Placed))
	for _, claim := range p.Claims {
		targets[claim.Name] = claim.Pods
	}
	for _, placed := range p.Placed {
		targets[placed.Node] = placed.Pods
	}
	return targets
}

// Nominate returns the writes that nominate pods to a node that is about to become schedulable: the pods planned onto
// the node, or onto its claim, that are still pending.
func (t Targets) Nominate(snap *model.Snapshot, claim, node string) []plan.Action {
	pods := t[node]
	if pods == nil {
		pods = t[claim]
	}
	return nominatorOf(snap, pods).nominate(pods, node)
}

// Nominations returns the writes that make the pods' nominations agree with the plan: pods planned onto registered,
// managed nodes are nominated to these, all others to none. Pods are not nominated to a node that is being registered,
// but earlier nominations to it (see Targets.Nominate) remain. The plan may be older than the snapshot. beyond is how
// many pods have no nomination only because their node has the maximum, or because they or nominated pods would exclude
// others. They are nominated when other pods are bound.
func Nominations(snap *model.Snapshot, p *plan.Provision) (actions []plan.Action, beyond int) {
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

// nominator computes nominations for one snapshot.
type nominator struct {
	snap    *model.Snapshot
	pending map[string]*model.Pod
	// groups of pending pods by shape; single caches the results of oneDomain.
	groups map[*model.Shape]*model.Group
	single map[*model.Spread]bool
	beyond int
}

func newNominator(snap *model.Snapshot) *nominator {
	n := &nominator{snap: snap, pending: snap.PendingPods(), groups: map[*model.Shape]*model.Group{}, single: map[*model.Spread]bool{}}
	for _, g := range snap.Groups {
		n.groups[g.Pods[0].Shape] = g
	}
	return n
}

// nominatorOf returns a nominator for these pods alone. It costs one look-up for each other pod of a large backlog.
func nominatorOf(snap *model.Snapshot, pods []*model.Pod) *nominator {
	n := &nominator{snap: snap, pending: map[string]*model.Pod{}, groups: map[*model.Shape]*model.Group{}, single: map[*model.Spread]bool{}}
	asked := map[string]bool{}
	for _, pod := range pods {
		asked[pod.UID] = true
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

// agree returns the writes for pods that the plan places on the node, or claim, of that name.
func (n *nominator) agree(pods []*model.Pod, name string) []plan.Action {
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
	return n.nominate(pods, node.Name)
}

// clear returns the writes that remove the pods' nominations, except those to one node.
func (n *nominator) clear(pods []*model.Pod, except string) []plan.Action {
	var actions []plan.Action
	for _, pod := range n.present(pods) {
		if pod.Nominated != "" && pod.Nominated != except {
			actions = append(actions, nomination(pod, ""))
		}
	}
	return actions
}

// nominate returns the writes that nominate pods to the node. Some of the pods may be nominated already.
func (n *nominator) nominate(planned []*model.Pod, node string) []plan.Action {
	pods := n.present(planned)
	with := nominatedPods{nominator: n}
	keeps := make(map[*model.Pod]bool, len(pods))
	for _, pod := range pods {
		if pod.Nominated == node && !with.exceeds(pod) {
			with.add(pod)
			keeps[pod] = true
		}
	}
	var actions []plan.Action
	for _, pod := range pods {
		switch {
		case keeps[pod]:
		case len(with.all) < MostNominated && !with.exceeds(pod):
			with.add(pod)
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

// present returns those pods that are still pending, as they are in the snapshot.
func (n *nominator) present(pods []*model.Pod) []*model.Pod {
	present := make([]*model.Pod, 0, len(pods))
	for _, pod := range pods {
		if now := n.pending[pod.UID]; now != nil {
			present = append(present, now)
		}
	}
	return present
}

func nomination(pod *model.Pod, node string) plan.Action {
	if node == "" {
		return plan.ClearNomination{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, From: pod.Nominated}
	}
	return plan.NominatePod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Node: node}
}
