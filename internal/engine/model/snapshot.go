package model

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// A Snapshot is the world at one moment: immutable, indexed, deterministic. Slices are in a fixed order that does not
// depend on the order in which the world was told; maps inside are for looking up only.
type Snapshot struct {
	// Now is the only clock of the engine.
	Now time.Time
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

	poolByName map[string]*Pool
	nodeByName map[string]*Node
	nodeClaims map[string]*Node
}

// Pool returns the pool of that name, nil if there is none.
func (s *Snapshot) Pool(name string) *Pool { return s.poolByName[name] }

// Node returns the node (or claim without a node) of that name, nil if there is none.
func (s *Snapshot) Node(name string) *Node { return s.nodeByName[name] }

// Claim returns the node that belongs to the claim of that name, nil if there is none.
func (s *Snapshot) Claim(name string) *Node { return s.nodeClaims[name] }

// Group is a set of pending pods that no rule can tell apart.
type Group struct {
	*Shape
	// Rows are the alternatives of the shape, encoded; at least one. An alternative that contradicts itself is left
	// out; when all do, Contradiction is the key of the first and Rows is empty.
	Rows          []label.Row
	Contradiction label.Key
	// Requests of one pod.
	Requests quantity.Vector
	// Pods by creation, namespace, name.
	Pods []*Pod
}

// Shape is what scheduling can tell about a pod: all pods of one shape are alike.
type Shape struct {
	// Signature is the canonical form; two pods are alike if and only if their signatures are equal.
	Signature    string
	Namespace    string
	Priority     int32
	Amounts      []quantity.Amount
	Alternatives [][]label.Requirement
	Tolerations  []Toleration
}

// Pod is one pod of a shape.
type Pod struct {
	*Shape
	UID            string
	Name           string
	Created        time.Time
	Node           string
	Nominated      string
	Rejected       *Rejection
	Controller     Owner
	Daemon         bool
	Reschedulable  bool
	EvictionCost   int64
	ProtectedUntil time.Time
	state          PodState
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
	// Pods bound to it, by namespace and name.
	Pods []*Pod
	// Price in nano-USD per hour: of its offering; for a launching claim the dearest it may become; 0 if unknown.
	Price int64
	// Types are the names a launching claim may become, cheapest first; nil for others.
	Types []string
}

// Free is what new pods may still use, per resource; negative where the node is overcommitted.
func (n *Node) Free() quantity.Vector {
	return n.Usable.Sub(n.Used).Sub(n.Reserved)
}

// Ours reports whether a claim of ours stands behind the node.
func (n *Node) Ours() bool { return n.Claim != "" }

// Pool is a pool, encoded, with its types.
type Pool struct {
	*PoolSpec
	// Start is the row that a new bin of the pool starts with.
	Start label.Row
	// Contradiction is the key of a requirement that contradicts another when Valid is false.
	Contradiction label.Key
	Valid         bool
	// Types is the index over the catalogue; nil when the pool has none.
	Types *TypeIndex
	// Used by the pool's nodes that are not deleting, by capacity; Nodes is their number.
	Used  quantity.Vector
	Nodes int
	// Limit per resource, -1 for none; NodeLimit likewise.
	Limit     quantity.Vector
	NodeLimit int64
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

// Without returns the snapshot as it would be without the named nodes: their pods that somebody will start again are
// pending. Nothing is rebuilt; the receiver is unchanged.
func (s *Snapshot) Without(names ...string) *Snapshot {
	gone := make(map[string]bool, len(names))
	for _, name := range names {
		gone[name] = true
	}
	what := *s
	what.Nodes = make([]*Node, 0, len(s.Nodes))
	var homeless []*Pod
	for _, n := range s.Nodes {
		if !gone[n.Name] {
			what.Nodes = append(what.Nodes, n)
			continue
		}
		for _, p := range n.Pods {
			if p.Reschedulable {
				homeless = append(homeless, p)
			}
		}
	}
	what.nodeByName, what.nodeClaims = indexNodes(what.Nodes)
	what.Pools = s.poolsWithout(gone)
	what.poolByName = indexPools(what.Pools)
	what.Groups = s.groupsWith(homeless)
	return &what
}

// poolsWithout copies the pools whose usage shrinks when the nodes go.
func (s *Snapshot) poolsWithout(gone map[string]bool) []*Pool {
	pools := slices.Clone(s.Pools)
	copied := map[string]*Pool{}
	for _, n := range s.Nodes {
		if !gone[n.Name] || n.Deleting || n.Pool == "" || s.Pool(n.Pool) == nil {
			continue
		}
		p := copied[n.Pool]
		if p == nil {
			fresh := *s.Pool(n.Pool)
			p, copied[n.Pool] = &fresh, &fresh
			pools[slices.Index(pools, s.Pool(n.Pool))] = p
		}
		p.Used = p.Used.Sub(n.Total)
		p.Nodes--
	}
	return pools
}

// groupsWith merges pods into the groups of pending pods.
func (s *Snapshot) groupsWith(pods []*Pod) []*Group {
	if len(pods) == 0 {
		return s.Groups
	}
	more := map[string][]*Pod{}
	for _, p := range pods {
		more[p.Signature] = append(more[p.Signature], p)
	}
	groups := make([]*Group, 0, len(s.Groups)+len(more))
	for _, g := range s.Groups {
		if added := more[g.Signature]; added != nil {
			merged := *g
			merged.Pods = slices.Concat(g.Pods, added)
			slices.SortFunc(merged.Pods, comparePods)
			g = &merged
			delete(more, g.Signature)
		}
		groups = append(groups, g)
	}
	for _, added := range more {
		slices.SortFunc(added, comparePods)
		groups = append(groups, encodeGroup(s.Space, s.Resources, added[0].Shape, added))
	}
	slices.SortFunc(groups, compareGroups)
	return groups
}

func indexNodes(nodes []*Node) (byName, byClaim map[string]*Node) {
	byName, byClaim = make(map[string]*Node, len(nodes)), make(map[string]*Node, len(nodes))
	for _, n := range nodes {
		byName[n.Name] = n
		if n.Claim != "" {
			byClaim[n.Claim] = n
		}
	}
	return byName, byClaim
}

func indexPools(pools []*Pool) map[string]*Pool {
	byName := make(map[string]*Pool, len(pools))
	for _, p := range pools {
		byName[p.Name] = p
	}
	return byName
}
