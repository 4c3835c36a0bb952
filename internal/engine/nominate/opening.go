package nominate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// The order in which the nodes of a plan become schedulable ("open").
//
// When the first node opens, kube-scheduler tries all pending pods on the nodes that are open by then. Two things go
// wrong. A pod whose own node is still closed takes capacity meant for others: of pods that a spread constraint counts
// together, only some may be nominated to a node at a time (see spreadLimit), so no nomination reserves capacity for
// the rest. And a pod that is tried without success loses its nomination, because kube-scheduler clears it when
// preemption does not help. Other pods without a nomination then take the reserved capacity. In both cases the spread
// constraint excludes the displaced pods from the capacity left elsewhere, and one more node is launched.
//
// Pods of a shape of which some cannot be nominated yet are called limited here, all others unlimited. Nodes with
// unlimited pods open first, one after the other. Each opens when kube-scheduler has tried its pods on the earlier
// nodes, which clears their nominations; right after that, these are written again. When those nodes are open and their
// unlimited pods are bound, or have been nominated for a while, the nodes with only limited pods open together.
//
// Limited pods may have a higher priority than the unlimited pods whose nodes open first, and then take their capacity:
// in each domain, not more than their skew permits while other domains are closed. So of these nodes, those whose pods
// can use the capacity that the limited pods leave free open first. If the nodes of the limited pods opened first,
// kube-scheduler would bind as few of them there, fill the rest of the capacity with pods of lower priority, and
// preempt these later.

// mostAfterEachOther is the largest number of nodes that open one after the other. If there are more, those with
// unlimited pods open together. The nodes of a plan with more than mostInOrder nodes open in any order: the total wait
// would be too long.
const mostAfterEachOther, mostInOrder = 10, 20

// Order is the order in which the nodes of a plan open, for one snapshot. It is not safe for concurrent use.
type Order struct {
	nominator *nominator
	nodes     []orderedNode
}

// Opening is the state of one node in an Order.
type Opening struct {
	// Before are the names of nodes, or claims, of the plan that open before this one and are not open yet.
	Before []string
	// Unlimited reports that unlimited pods are planned onto the node. Alone reports that no other node opens at the
	// same time.
	Unlimited, Alone bool
	// First reports that no node of the plan is open yet.
	First bool
	// Untried reports that, since the last node opened, kube-scheduler has not tried all pods that it must try before
	// this node opens. For a node with unlimited pods these are its own pods, which keep their nominations until then.
	// The other nodes wait for the unlimited pods of the open nodes to be bound.
	Untried bool
	// Unnominated reports that an unlimited pod has no nomination although its node is open.
	Unnominated bool
}

// orderedNode is a node of a plan with the pods that are not bound to it yet.
type orderedNode struct {
	node *model.Node
	pods []*model.Pod
	// unlimited counts the pods whose shape is not limited on any node. waiting counts the pods that cannot be
	// nominated yet.
	unlimited, waiting int
	// unnominated reports that an unlimited pod has no nomination to the node.
	unnominated bool
	// exposed reports that a pod could not use the capacity planned for a limited pod of higher priority that took its
	// own. room is what the plan leaves free.
	exposed bool
	room    quantity.Vector
}

func (n orderedNode) hasUnlimited() bool { return n.unlimited > 0 }

func (n orderedNode) hasWaiting() bool { return n.waiting > 0 }

// compare orders nodes with unlimited pods.
func (n orderedNode) compare(other orderedNode) int {
	switch {
	case n.waiting != other.waiting:
		return cmp.Compare(n.waiting, other.waiting)
	case n.exposed == other.exposed:
		return 0
	case n.exposed:
		return 1
	}
	return -1
}

func (n orderedNode) open() bool { return n.node.Stage >= model.Registered }

func (n orderedNode) is(claim, node string) bool { return n.node.Claim == claim || n.node.Name == node }

// Order returns the order in which the nodes of the plan open. It is nil where they open in any order.
func (t Targets) Order(snap *model.Snapshot) *Order {
	if len(t) > mostInOrder || !t.ordered(snap) {
		return nil
	}
	o := &Order{nominator: nominatorOf(snap, slices.Collect(maps.Values(t))...)}
	planned := t.asBound(o.nominator)
	o.nominator.withhold(planned)
	limited := o.add(planned)
	if !slices.ContainsFunc(o.nodes, orderedNode.hasWaiting) || !slices.ContainsFunc(o.nodes, orderedNode.hasUnlimited) ||
		!o.compete(limited) {
		return nil
	}
	return o
}

// compete reports whether a pod may take capacity meant for another: a limited pod on a node with unlimited pods, or an
// unlimited pod on another node with pods that cannot be nominated yet.
func (o *Order) compete(limited map[*model.Shape]bool) bool {
	for i, own := range o.nodes {
		var last *model.Shape
		for _, pod := range own.pods {
			if pod.Shape == last {
				continue
			}
			last = pod.Shape
			for j, n := range o.nodes {
				wanted := limited[pod.Shape] && n.hasUnlimited() || !limited[pod.Shape] && n.hasWaiting() && i != j
				if wanted && o.nominator.admits(n.node, pod) {
					return true
				}
			}
		}
	}
	return false
}

// ordered reports whether the plan has at least two managed nodes, one of which is closed.
func (t Targets) ordered(snap *model.Snapshot) bool {
	ours, closed := 0, false
	for name := range t {
		if node := snap.NodeOrClaim(name); node != nil && node.Ours() {
			ours++
			closed = closed || node.Stage < model.Registered
		}
	}
	return ours > 1 && closed
}

// asBound returns the targets after pods of one shape have exchanged their nodes: where a pod was bound to another node
// of the plan than its own, a pending pod of its shape that was planned onto that node moves to the pod's own node.
func (t Targets) asBound(n *nominator) Targets {
	now, home := make(Targets, len(t)), map[string]string{}
	for name, pods := range t {
		now[name] = n.present(pods)
		for _, pod := range pods {
			home[pod.UID] = name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		node := n.snap.NodeOrClaim(name)
		if node == nil {
			continue
		}
		for _, bound := range node.Pods {
			own, planned := home[bound.UID]
			if !planned || own == name {
				continue
			}
			alike := func(p *model.Pod) bool { return p.Signature == bound.Signature }
			if i := slices.IndexFunc(now[name], alike); i >= 0 {
				now[own] = append(now[own], now[name][i])
				now[name] = slices.Delete(now[name], i, i+1)
			}
		}
	}
	return now
}

// add adds the nodes of the plan that still expect pods, in the order in which they open. It returns the shapes of
// limited pods.
func (o *Order) add(targets Targets) map[*model.Shape]bool {
	limited := map[*model.Shape]bool{}
	for name, pods := range targets {
		node := o.nominator.snap.NodeOrClaim(name)
		if node == nil || !node.Ours() || len(pods) == 0 {
			continue
		}
		nominated, ordered := o.nominator.nominated(pods, node.Name), orderedNode{node: node, pods: pods, room: node.Free()}
		for _, pod := range pods {
			ordered.room = ordered.room.Sub(pod.Requests)
			if !nominated[pod.UID] {
				ordered.waiting++
				limited[pod.Shape] = true
			}
		}
		o.nodes = append(o.nodes, ordered)
	}
	for i := range o.nodes {
		n := &o.nodes[i]
		for _, pod := range n.pods {
			if !limited[pod.Shape] {
				n.unlimited++
				n.unnominated = n.unnominated || pod.Nominated != n.node.Name
			}
		}
	}
	for i := range o.nodes {
		o.nodes[i].exposed = len(o.nominator.withheld) > 0 && o.exposed(o.nodes[i])
	}
	slices.SortFunc(o.nodes, func(a, b orderedNode) int {
		return cmp.Or(a.compare(b), cmp.Compare(b.unlimited, a.unlimited), cmp.Compare(a.node.Name, b.node.Name))
	})
	return limited
}

// exposed reports whether a limited pod of higher priority may take the capacity of one of the node's pods, which then
// could not use the capacity that is planned for the limited pod.
func (o *Order) exposed(n orderedNode) bool {
	for _, home := range o.nodes {
		var last *model.Shape
		for _, high := range home.pods {
			if high.Shape == last || !o.nominator.withheld[high.Shape] || home.node == n.node {
				continue
			}
			last = high.Shape
			room := home.room.Add(high.Requests)
			stuck := func(pod *model.Pod) bool {
				return pod.Priority < high.Priority && !(pod.Requests.Fits(room) && o.nominator.admits(home.node, pod))
			}
			if slices.ContainsFunc(n.pods, stuck) && high.Requests.Fits(n.node.Free()) && o.nominator.admits(n.node, high) {
				return true
			}
		}
	}
	return false
}

// Opening returns the state of the claim's node, or nil for a node that no other node waits for and that waits for
// none.
func (o *Order) Opening(claim, node string) *Opening {
	if o == nil {
		return nil
	}
	own := slices.IndexFunc(o.nodes, func(n orderedNode) bool { return n.is(claim, node) })
	if own < 0 {
		return nil
	}
	self, closed := o.nodes[own], 0
	opening := &Opening{Unlimited: self.hasUnlimited(), First: !slices.ContainsFunc(o.nodes, orderedNode.open)}
	for _, n := range o.nodes {
		switch {
		case !n.hasUnlimited():
		case n.open():
			opening.Unnominated = opening.Unnominated || n.unnominated
			opening.Untried = opening.Untried || !opening.Unlimited
		default:
			closed++
			if !self.hasUnlimited() || n.compare(self) < 0 {
				opening.Before = append(opening.Before, n.node.Name)
			}
		}
	}
	if opening.Unlimited {
		opening.Untried = slices.ContainsFunc(self.pods, func(p *model.Pod) bool { return p.Nominated == self.node.Name })
	}
	opening.Alone = opening.Unlimited && closed <= mostAfterEachOther
	return opening
}

// IsOpen reports whether the claim's node is open or gone.
func (o *Order) IsOpen(claim string) bool {
	node := o.nominator.snap.Claim(claim)
	return node == nil || node.Stage >= model.Registered
}

// Missing returns the missing nominations to the claim's node.
func (o *Order) Missing(claim, node string) []plan.Action {
	return o.missingOn(func(n orderedNode) bool { return n.is(claim, node) })
}

// MissingOnOpen returns the missing nominations to the open nodes of the plan.
func (o *Order) MissingOnOpen() []plan.Action {
	return o.missingOn(orderedNode.open)
}

// MissingBefore returns the writes that must precede the opening of the claim's node: the missing nominations to the
// open nodes of the plan and to those with unlimited pods that have joined. Nominations to the node itself come last.
func (o *Order) MissingBefore(claim, node string) []plan.Action {
	others := o.missingOn(func(n orderedNode) bool {
		joined := n.node.Name != n.node.Claim
		return !n.is(claim, node) && (n.open() || joined && n.hasUnlimited())
	})
	return append(others, o.Missing(claim, node)...)
}

// missingOn returns the missing nominations to the nodes that some selects.
func (o *Order) missingOn(some func(orderedNode) bool) []plan.Action {
	var actions []plan.Action
	for _, n := range o.nodes {
		if some(n) {
			actions = append(actions, o.nominator.nominate(n.pods, n.node.Name)...)
		}
	}
	return actions
}
