package model

import (
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// A Snapshot is the world at one moment: immutable, indexed, deterministic. Slices are in a fixed order that does not
// depend on the order in which the world was told; maps inside are for looking up only.
type Snapshot struct {
	// Now is the only clock of the engine.
	Now time.Time
	// Arrival is for how long an empty node is kept for pods that were sent to it, 0 for the usual (plan.Arrival).
	Arrival time.Duration
	// Version counts the changes that the builder has seen.
	Version uint64
	Space   *label.Space
	// Resources are the names by quantity.Resource.
	Resources []string
	// Pools by weight descending, then name descending (core specification 3.4).
	Pools []*Pool
	// Nodes: initialised ones first, then by name.
	Nodes []*Node
	// Groups of pending pods, by signature.
	Groups []*Group
	// Set aside pods: pending, and not to be placed for a reason of their own, by namespace and name.
	Rejected []*Pod
	Daemons  []*Daemon
	// PDBs by namespace, then name.
	PDBs []*PDBSpec
	// Marks are what pods are counted by in topology domains, by number.
	Marks []Mark
	// Turns are, by UID, when pods that are still pending would have been bound by the plan that gave them their seats
	// (plan.Reseated); nil when there was none.
	Turns map[string]int
	// Planned are the nodes that the same plan gave them, by UID; they are newer than nominations, which are written after it.
	Planned map[string]string
	// EvictionBlocked has the UIDs of pods in Groups that run on a node that leaves and cannot be evicted at present
	// (plan.Ahead). Such a pod stays on its node, and counts there, while a plan finds no other place for it.
	EvictionBlocked map[string]bool

	// named are the nodes by name, claimed those with a claim by the claim's name: for binary search.
	named, claimed []*Node
	// guards are the PDBs by a label that they demand, see guardKey.
	guards map[guardKey][]*PDBSpec
}

// Pool returns the pool of that name, nil if there is none.
func (s *Snapshot) Pool(name string) *Pool {
	for _, p := range s.Pools {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Node returns the node (or claim without a node) of that name, nil if there is none.
func (s *Snapshot) Node(name string) *Node {
	return find(s.named, name, func(n *Node) string { return n.Name })
}

// Claim returns the node that belongs to the claim of that name, nil if there is none.
func (s *Snapshot) Claim(name string) *Node {
	return find(s.claimed, name, func(n *Node) string { return n.Claim })
}

func find(nodes []*Node, name string, key func(*Node) string) *Node {
	at, found := slices.BinarySearchFunc(nodes, name, func(n *Node, name string) int { return strings.Compare(key(n), name) })
	if !found {
		return nil
	}
	return nodes[at]
}

// Group is a set of pending pods that no rule can tell apart.
type Group struct {
	*Shape
	// Rows are the alternatives of the shape, encoded; at least one. An alternative that contradicts itself is left
	// out; when all do, Contradiction is the key of the first and Rows is empty.
	Rows          []label.Row
	Contradiction label.Key
	// Affinity are the rows without what the volumes demand: topology spread counts the nodes that they accept.
	Affinity []label.Row
	// Preferences are the preferred node affinity terms, encoded, in the order of the shape; an empty row is a term that
	// contradicts itself.
	Preferences []label.Row
	// Matches are the selector marks that count the group's pods, BlockedBy the carrier marks whose selector selects
	// them; both ascending.
	Matches   []int
	BlockedBy []int
	key       string
	// Pods by creation, namespace, name.
	Pods []*Pod
}

// Shape is what scheduling can tell about a pod: all pods of one shape are alike.
type Shape struct {
	// Signature is the canonical form; two pods are alike if and only if their signatures are equal.
	Signature string
	Namespace string
	Priority  int32
	// Requests of one pod.
	Requests           quantity.Vector
	Alternatives       [][]label.Requirement
	VolumeAlternatives [][]label.Requirement
	// Shared volumes count once per node, whoever uses them there.
	Shared      []Volume
	Preferred   []Preference
	Tolerations []Toleration
	Spread      []Spread
	Terms       []Term
	HostPorts   []HostPort
	// SpreadMarks and TermMarks are the selector marks of Spread and Terms; CarrierMarks the carrier mark of each term, -1
	// for those that are not required anti-affinity.
	SpreadMarks  []int
	TermMarks    []int
	CarrierMarks []int
}

// Pod is one pod of a shape.
type Pod struct {
	*Shape
	Labels    map[string]string
	UID       string
	Name      string
	Created   time.Time
	Node      string
	Nominated string
	Rejected  *Rejection
	// crowded says that Rejected is the builder's (admit.go).
	crowded        bool
	Controller     Owner
	Daemon         bool
	Reschedulable  bool
	Terminating    bool
	Ready          bool
	state          PodState
	EvictionCost   int64
	ProtectedUntil time.Time
	class          *class
}

// Key is namespace/name.
func (p *Pod) Key() string { return p.Namespace + "/" + p.Name }

// Node is a node that exists or will: its spec, encoded, with what is on it.
type Node struct {
	*NodeSpec
	Row label.Row
	// Total capacity and what pods may use of it.
	Total  quantity.Vector
	Usable quantity.Vector
	// Used by bound pods, Reserved for daemons that are still to come.
	Used     quantity.Vector
	Reserved quantity.Vector
	free     quantity.Vector
	slack    Slack
	// Pods bound to it, by namespace and name.
	Pods []*Pod
	// matchings of the pods, in their order; nil when there are no marks.
	matchings []*matching
	// Counts of the marks that the pods have, by mark ascending.
	Counts []MarkCount
	// Ports that the pods take, and the shared claims they use, sorted.
	Ports  []HostPort
	Claims []string
	// Price in nano-USD per hour: of its offering; for a launching claim the dearest it may become; 0 if unknown.
	Price int64
	// Types are the names a launching claim may become, in the order of the catalog; nil for others.
	Types []string
	// least is the cheapest that a launching claim may become.
	least struct {
		kind  string
		price int64
	}
}

// LeastPrice is what the node costs, nano-USD per hour; of a launching claim, what the cheapest available offering of the
// types that it may become costs. Figures that users read count claims at it, because a launch takes the cheapest offering
// that the cloud has. Decisions count them at Price, so that no saving depends on a machine that the cloud may not have.
func (n *Node) LeastPrice() int64 {
	if len(n.Types) > 0 {
		return n.least.price
	}
	return n.Price
}

// LeastType is the instance type that LeastPrice is the price of; empty if unknown.
func (n *Node) LeastType() string {
	if len(n.Types) > 0 {
		return n.least.kind
	}
	return n.Labels[LabelType]
}

// Free is what new pods may still use, per resource; negative where the node is overcommitted. It is not to be changed.
func (n *Node) Free() quantity.Vector { return n.free }

// weigh works out what is free.
func (n *Node) weigh() {
	n.free = n.Usable.Sub(n.Used).Sub(n.Reserved)
	n.slack = SlackOf(n.free)
}

// Slack is the part of a vector that decides most questions of room: millicores of cpu and bytes of memory.
type Slack struct{ CPU, Memory int64 }

// SlackOf is that part of a vector.
func SlackOf(v quantity.Vector) Slack { return Slack{v.At(quantity.CPU), v.At(quantity.Memory)} }

// Holds reports whether there is as much of both as is asked for. Where there is not, no vector with this slack fits.
func (s Slack) Holds(want Slack) bool { return want.CPU <= s.CPU && want.Memory <= s.Memory }

// Slack is that of what is free.
func (n *Node) Slack() Slack { return n.slack }

// Ours reports whether a claim of ours stands behind the node.
func (n *Node) Ours() bool { return n.Claim != "" }

// Cordoned reports whether kube-scheduler places no new pods on the node (spec.unschedulable).
func (n *Node) Cordoned() bool {
	return slices.ContainsFunc(n.Taints, func(t Taint) bool { return t.Key == "node.kubernetes.io/unschedulable" })
}

// Daemon is a DaemonSet, encoded.
type Daemon struct {
	*DaemonSpec
	Rows     []label.Row
	Requests quantity.Vector
}

// Admits reports whether the daemon will put a pod on a node with the row and taints.
func (d *Daemon) Admits(space *label.Space, row label.Row, taints []Taint) bool {
	if _, refused := Untolerated(taints, d.Tolerations); refused {
		return false
	}
	return slices.ContainsFunc(d.Rows, func(r label.Row) bool { return space.Compatible(row, r) })
}
