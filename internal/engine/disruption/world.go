package disruption

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// world is the cluster as it will be when everything under way is done: nodes that are leaving are gone, their pods and
// the pending ones are where they can be on nodes that are there or in flight, and what would have to be bought for
// the rest is provisioning's business. Every what-if starts from here, so that no two changes count on the same room.
type world struct {
	snap *model.Snapshot
	opts Options
	// taken are nodes that something decided in this run sends pods to: they stay for now.
	taken map[string]bool
	// began is the snapshot that the run began with; wholes is what its pools had altogether, once asked.
	began  *model.Snapshot
	wholes map[string]scale
	// proposed are the commands that other methods have proposed in this run.
	proposed []plan.Command
	// young are the nodes that nobody is sent to, see unsettled; nil until asked.
	young map[string]bool
	// moving are the pods that changes of this run move, see placement.Moving.
	moving []placement.Moving
	memory *placement.Memory
	// bought are the claims that this run decided on, and those that provisioning will buy for who is pending.
	bought []plan.NewClaim
	// work is how many questions the what-ifs asked.
	work int
}

// settle makes the world of a snapshot, in which certain nodes are gone.
func settle(snap *model.Snapshot, opts Options, gone func(*model.Node) bool) *world {
	w := &world{began: snap, opts: opts, taken: map[string]bool{}, memory: &placement.Memory{}}
	var names []string
	for _, n := range snap.Nodes {
		if gone(n) {
			names = append(names, n.Name)
		}
	}
	after := snap
	if len(names) > 0 {
		after = snap.Without(names...)
		after.Pools = snap.Pools // what leaves still counts against the limits
	}
	p := &plan.Provision{}
	if len(after.Groups) > 0 {
		p = placement.Schedule(plan.Seated(after, snap, gone), opts.Placement)
	}
	w.work = p.Work
	w.bought = p.Claims
	for _, placed := range p.Placed {
		w.taken[placed.Node] = true
	}
	w.snap = after
	ahead := &change{seats: seatings(p), groups: groupsOf(&outcome{groups: after.Groups})}
	for _, name := range names {
		ahead.nodes = append(ahead.nodes, snap.Node(name))
	}
	w.moving = []placement.Moving{w.movingOf(ahead)}
	w.snap = after.Bound(ahead.seats)
	w.snap.Groups, w.snap.Rejected = nil, nil
	return w
}

// departing reports whether a node is on its way out: being deleted, or in a command.
func departing(n *model.Node) bool { return n.Deleting || n.Command != "" }

func seatings(p *plan.Provision) []model.Seating {
	seats := make([]model.Seating, len(p.Placed))
	for i, s := range p.Placed {
		seats[i] = model.Seating{Node: s.Node, Pods: s.Pods}
	}
	return seats
}

// outcome is what would happen if nodes left.
type outcome struct {
	nodes  []*model.Node
	claims []plan.NewClaim
	seats  []model.Seating
	// groups of the pods that would move.
	groups []*model.Group
	// homeless are pods without another place, and where they are.
	homeless []stranded
}

// stranded is a pod that has no other place than its node.
type stranded struct {
	pod  *model.Pod
	node *model.Node
}

// without asks what would happen if the nodes left and nobody went to the closed ones.
func (w *world) without(nodes []*model.Node, closed func(*model.Node) bool) *outcome {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	what := w.snap.Without(names...)
	what.Pools = w.snap.Pools // candidates stay until their replacements are there
	o := &outcome{nodes: nodes, groups: what.Groups}
	origin := w.origins(nodes)
	for _, p := range what.Rejected {
		if n := origin[p]; n != nil {
			o.homeless = append(o.homeless, stranded{p, n})
		}
	}
	opts := w.opts.Placement
	opts.Closed, opts.Moving, opts.Memory, opts.Bought = closed, w.moving, w.memory, w.bought
	p := placement.Schedule(what, opts)
	w.work += p.Work
	for _, r := range p.Refused {
		for _, pod := range r.Pods {
			if n := origin[pod]; n != nil && pod.Rejected == nil {
				o.homeless = append(o.homeless, stranded{pod, n})
			}
		}
	}
	o.claims, o.seats = p.Claims, seatings(p)
	return o
}

// origins says where the pods are that would have to move.
func (w *world) origins(nodes []*model.Node) map[*model.Pod]*model.Node {
	origin := make(map[*model.Pod]*model.Node, 16*len(nodes))
	for _, n := range nodes {
		for _, p := range n.Pods {
			if p.Reschedulable {
				origin[p] = n
			}
		}
	}
	return origin
}

// apply makes the change part of the world: its nodes are gone, its pods where it puts them. What it buys is not there
// yet: it takes its part of the limits and nobody goes there.
func (w *world) apply(c *change) {
	names := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		names[i] = n.Name
	}
	w.moving = append(w.moving, w.movingOf(c))
	pools := w.snap.Pools
	w.snap = w.snap.Without(names...).Bound(c.seats)
	w.snap.Groups, w.snap.Rejected = nil, nil
	w.snap.Pools = charged(pools, c.claims)
	w.bought = append(w.bought[:len(w.bought):len(w.bought)], c.claims...)
	for _, s := range c.seats {
		w.taken[s.Node] = true
	}
}

// charged are the pools with the usage of claims that are to be created: the largest of their types.
func charged(pools []*model.Pool, claims []plan.NewClaim) []*model.Pool {
	return recounted(pools, claims, func(p *model.Pool, most quantity.Vector) {
		p.Used = p.Used.Add(most)
		p.Nodes++
	})
}

// discharged takes back what charged did for the claims.
func discharged(pools []*model.Pool, claims []plan.NewClaim) []*model.Pool {
	return recounted(pools, claims, func(p *model.Pool, most quantity.Vector) {
		p.Used = p.Used.Sub(most)
		p.Nodes--
	})
}

// recounted are the pools with a copy of each that something is bought from, counted anew for each claim.
func recounted(pools []*model.Pool, claims []plan.NewClaim, count func(*model.Pool, quantity.Vector)) []*model.Pool {
	if len(claims) == 0 {
		return pools
	}
	pools = slices.Clone(pools)
	for i := range claims {
		at := slices.IndexFunc(pools, func(p *model.Pool) bool { return p.Name == claims[i].Pool })
		if at < 0 {
			continue
		}
		fresh := *pools[at]
		most := fresh.Used[:0:0]
		for _, o := range claims[i].Options {
			if t, known := fresh.Types.Lookup(o.Type); known {
				most = most.Max(fresh.Types.Total[t])
			}
		}
		count(&fresh, most)
		pools[at] = &fresh
	}
	return pools
}

// cost of a node that is there, nano-USD per hour: its price and what its pool's nodes cost beyond it. A launching claim
// counts at the dearest that it may become.
func (w *world) cost(n *model.Node) int64 { return n.Price + w.opts.beyond(w.snap, n) }

func (w *world) nodePrice(name string) int64 {
	if pool := w.snap.Pool(name); pool != nil {
		return w.opts.Placement.NodePriceOf(pool.PoolSpec)
	}
	return 0
}

// economics of the pool that a node belongs to.
func (w *world) economics(n *model.Node) Economics { return w.opts.economics(w.snap, n) }
