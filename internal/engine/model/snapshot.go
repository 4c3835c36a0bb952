package model

import (
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Snapshot is the state of the cluster at one moment: immutable, indexed, deterministic. Slices are in a fixed order
// that does not depend on the order in which objects were added; maps are for lookups only.
type Snapshot struct {
	// Now is the only clock of the engine.
	Now time.Time
	// Arrival is how long an empty node is kept for pods that were moved to it, 0 for the default (reserve.Arrival).
	Arrival time.Duration
	// Version counts the changes that the builder has received.
	Version uint64
	Space   *label.Space
	// Resources are the names by quantity.Resource.
	Resources []string
	// Pools by weight descending, then name descending.
	Pools []*Pool
	// Quotas by name.
	Quotas []*Quota
	// Ledger is what the nodes use of the limits of both.
	Ledger Ledger
	// Commitments by ID.
	Commitments []*Commitment
	// Nodes: initialized ones first, then by name.
	Nodes []*Node
	// Groups of pending pods, by signature.
	Groups []*Group
	// Virtual holds the groups of virtual pods, by signature. They are planned after all pods of Groups, on the capacity
	// that those leave, and no pod of Groups counts them. They are not in Groups, and no derived snapshot moves them there.
	Virtual []*Group
	// Rejected holds pending pods that must not be placed because of a problem of their own, by namespace and name.
	Rejected []*Pod
	Daemons  []*Daemon
	// DaemonsAside are DaemonSets that are not considered, by namespace and name.
	DaemonsAside []AsideDaemon
	// PDBs by namespace, then name.
	PDBs []*PDBSpec
	// Marks define which pods are counted in topology domains, by number.
	Marks []Mark
	// Turns and ClaimNames are those of the last plan, see Reservations; nil if there was none.
	Turns      map[string]int
	ClaimNames map[string]string
	// EvictionBlocked holds the UIDs of pods in Groups that run on a node being removed and cannot be evicted at
	// present (reserve.Ahead). Such a pod stays on its node, and counts there, while a plan finds no other place for
	// it.
	EvictionBlocked map[string]bool

	// taints are those of all nodes and pools, each once, sorted.
	taints []Taint
	// named holds the nodes by name, claimed those with a claim by the claim's name: for binary search.
	named, claimed []*Node
	// guards holds the PDBs by a label that they require, see guardKey.
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

// NodeOrClaim returns the node of that name, or else the node that belongs to the claim of that name, nil if there is
// none.
func (s *Snapshot) NodeOrClaim(name string) *Node {
	if n := s.Node(name); n != nil {
		return n
	}
	return s.Claim(name)
}

// PendingPods returns the pods of Groups by UID.
func (s *Snapshot) PendingPods() map[string]*Pod { return byUID(s.Groups) }

// VirtualPods returns the virtual pods, by UID.
func (s *Snapshot) VirtualPods() map[string]*Pod { return byUID(s.Virtual) }

func byUID(groups []*Group) map[string]*Pod {
	pods := map[string]*Pod{}
	for _, g := range groups {
		for _, p := range g.Pods {
			pods[p.UID] = p
		}
	}
	return pods
}

func find(nodes []*Node, name string, key func(*Node) string) *Node {
	at, found := slices.BinarySearchFunc(nodes, name, func(n *Node, name string) int { return strings.Compare(key(n), name) })
	if !found {
		return nil
	}
	return nodes[at]
}

// Group is a set of pending pods that no rule distinguishes.
type Group struct {
	*Shape
	// Rows are the encoded alternatives of the shape; at least one. A contradictory alternative is omitted; if all
	// are, Contradiction is the key of the first and Rows is empty.
	Rows          []label.Row
	Contradiction label.Key
	// Affinity holds the rows without the requirements of volumes: topology spread counts the nodes that they accept.
	Affinity []label.Row
	// Preferences are the encoded preferred node affinity terms, in the order of the shape; an empty row is a
	// contradictory term.
	Preferences []label.Row
	// Tolerations match exactly the taints of nodes and pools that the pods tolerate.
	Tolerations []Toleration
	// Matches are the selector marks that count the group's pods, BlockedBy the carrier marks whose selector selects
	// them; both ascending.
	Matches   []int
	BlockedBy []int
	identity  identity
	// each holds the matchings of those pods that marks of virtual pods select; nil if there are none.
	each map[*Pod]*matching
	// Pods by creation, namespace, name.
	Pods []*Pod
}

// Shape holds the properties of a pod that scheduling depends on, apart from its labels, which matter by the marks that
// select it, and its tolerations, which matter by the taints that they match.
type Shape struct {
	// Signature is the canonical form: two pods have equal signatures if and only if nothing but labels and tolerations
	// distinguishes them.
	Signature string
	Namespace string
	// Virtual is that of the pods, see PodSpec.
	Virtual  string
	Priority int32
	// Requests of one pod. Unknown are the amounts of the resources without a number of their own: Requests contains
	// their sum as that of the resource Unknown, without those that count volumes (resources.go).
	Requests           quantity.Vector
	Unknown            []quantity.Amount
	Alternatives       [][]label.Requirement
	VolumeAlternatives [][]label.Requirement
	// Shared volumes count once per node, whichever pods use them there.
	Shared    []Volume
	Preferred []Preference
	Spread    []Spread
	Terms     []Term
	HostPorts []HostPort
	// SpreadMarks and TermMarks are the selector marks of Spread and Terms; CarrierMarks the carrier mark of each
	// term, -1 for terms that are not required anti-affinity.
	SpreadMarks  []int
	TermMarks    []int
	CarrierMarks []int
}

// Pod is one pod of a shape.
type Pod struct {
	*Shape
	Labels      map[string]string
	Tolerations []Toleration
	UID         string
	Name        string
	Created     time.Time
	Node        string
	Nominated   string
	Rejected    *Rejection
	NoNewNode   *Rejection
	// rejectedByBuilder says that the builder set Rejected (admit.go).
	rejectedByBuilder bool
	Controller        Owner
	Daemon            bool
	Reschedulable     bool
	Terminating       bool
	Ready             bool
	state             PodState
	EvictionCost      int64
	ProtectedUntil    time.Time
	class             *class
	// reduced is by how much Requests, which are those of its successor, exceed what the pod uses on its node; usually
	// nil.
	reduced quantity.Vector
}

// AddUse adds to used, n times, what the pod uses on its node: less than its Requests if they were reduced while it
// ran.
func (p *Pod) AddUse(used quantity.Vector, n int64) {
	used.AddScaled(p.Requests, n)
	used.AddScaled(p.reduced, -n)
}

// Key returns namespace/name.
func (p *Pod) Key() string { return p.Namespace + "/" + p.Name }

// Node is an existing or planned node: its encoded spec and its contents.
type Node struct {
	*NodeSpec
	Row label.Row
	// Total is the capacity, Usable the part of it that pods may use.
	Total  quantity.Vector
	Usable quantity.Vector
	// Used is the usage of bound pods, Reserved the requests of daemons that are not bound yet.
	Used     quantity.Vector
	Reserved quantity.Vector
	free     quantity.Vector
	slack    Slack
	// Pods bound to it, by namespace and name.
	Pods []*Pod
	// Reservations of pods on the node, each pod once, in the order in which they are placed: those that its claim
	// records, unless Snapshot.WithReservations replaced them.
	Reservations []Reservation
	// matchings of the pods, in their order; nil if there are no marks.
	matchings []*matching
	// Counts of the marks of the pods, by mark ascending.
	Counts []MarkCount
	// Ports that the pods use, and the shared claims that they use, sorted.
	Ports  []HostPort
	Claims []string
	// Price in nano-USD per hour: that of its offering; for a launching claim the highest price that it may have; 0
	// if unknown.
	Price int64
	// ZoneShifted: the catalog of its pool says that its zone is being avoided.
	ZoneShifted bool
	// cover is what commitments pay for, nil for nothing.
	cover *cover
	// Types are the names of the types that a launching claim may become, in the order of the catalog; nil for
	// others.
	Types []string
	// least is the cheapest type that a launching claim may become.
	least struct {
		kind  string
		price int64
	}
}

// LeastPrice returns the price of the node, nano-USD per hour. For a launching claim it is the price of the cheapest
// available offering of the types that it may become. Figures for users count claims at LeastPrice, because a launch
// takes the cheapest offering that the cloud has. Decisions count them at Price, so that no saving depends on a
// machine that the cloud may not have.
func (n *Node) LeastPrice() int64 {
	if len(n.Types) > 0 {
		return n.least.price
	}
	return n.Price
}

// LeastType returns the instance type of LeastPrice; empty if unknown.
func (n *Node) LeastType() string {
	if len(n.Types) > 0 {
		return n.least.kind
	}
	return n.Labels[LabelType]
}

// Free returns the resources that are free for new pods; negative where the node is overcommitted. Callers must not
// change it.
func (n *Node) Free() quantity.Vector { return n.free }

// weigh computes the free resources.
func (n *Node) weigh() {
	n.free = n.Usable.Sub(n.Used).Sub(n.Reserved)
	n.slack = SlackOf(n.free)
}

// Slack is the part of a vector that decides most checks of room: millicores of cpu and bytes of memory.
type Slack struct{ CPU, Memory int64 }

// SlackOf returns that part of a vector.
func SlackOf(v quantity.Vector) Slack { return Slack{v.At(quantity.CPU), v.At(quantity.Memory)} }

// Holds reports whether s has at least as much of both as want. If not, no vector with the slack want fits.
func (s Slack) Holds(want Slack) bool { return want.CPU <= s.CPU && want.Memory <= s.Memory }

// Slack returns the slack of the free resources.
func (n *Node) Slack() Slack { return n.slack }

// CountOf returns how many pods of the node have the mark.
func (n *Node) CountOf(mark int) int {
	at, some := slices.BinarySearchFunc(n.Counts, mark, func(c MarkCount, mark int) int { return c.Mark - mark })
	if !some {
		return 0
	}
	return n.Counts[at].Count
}

// Reschedulable counts the node's pods that a controller would recreate if the node were removed. A node without such
// pods is empty. Priority and deletion cost are ignored: a pod that is cheap to evict still needs a node. (Upstream
// treats nodes with only very low priority pods as empty, and removes them without checking whether the pods fit
// elsewhere; here a priority cutoff makes such pods expendable.)
func (n *Node) Reschedulable() int {
	count := 0
	for _, p := range n.Pods {
		if p.Reschedulable {
			count++
		}
	}
	return count
}

// Ours reports whether the node is managed, that is, has a NodeClaim.
func (n *Node) Ours() bool { return n.Claim != "" }

// Cordoned reports whether kube-scheduler places no new pods on the node (spec.unschedulable).
func (n *Node) Cordoned() bool {
	return slices.ContainsFunc(n.Taints, func(t Taint) bool { return t.Key == "node.kubernetes.io/unschedulable" })
}

// Daemon is an encoded DaemonSet.
type Daemon struct {
	*DaemonSpec
	Rows     []label.Row
	Requests quantity.Vector
}

// Admits reports whether the daemon creates a pod on a node with the row and taints.
func (d *Daemon) Admits(space *label.Space, row label.Row, taints []Taint) bool {
	if _, refused := Untolerated(taints, d.Tolerations); refused {
		return false
	}
	return d.selects(space, row)
}

// selects reports whether the daemon's selectors accept the row.
func (d *Daemon) selects(space *label.Space, row label.Row) bool {
	return slices.ContainsFunc(d.Rows, func(r label.Row) bool { return space.Compatible(row, r) })
}
