package disruption

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
)

// projection is the projected state of the cluster after all commands in progress are carried out: nodes that are being
// removed are gone, and their pods and the pending ones are on existing nodes or claims in flight where they fit. New
// nodes for the remaining pods are the task of provisioning. Every what-if starts from this state, so that no two
// changes use the same room.
type projection struct {
	snap *model.Snapshot
	opts Options
	// taken holds nodes to which changes of this run move pods: they are kept for now.
	taken map[string]bool
	// began is the snapshot at the beginning of the run; wholes holds the totals of its pools, once computed.
	began  *model.Snapshot
	wholes map[string]scale
	// young holds the nodes to which no pod is moved, see unsettled; nil until first used.
	young map[string]bool
	// leaving holds the nodes that changes of this run remove. They count against the limits of their pools.
	leaving []*model.Node
	// moving holds the pods that changes of this run move, see placement.Moving.
	moving []placement.Moving
	// cache is that of the last what-if.
	cache placement.Cache
	// decidedClaims holds the claims that this run decided on, and those that provisioning will launch for pending pods.
	decidedClaims []plan.NewClaim
	// work is the number of evaluations of the what-ifs.
	work int
	// roomOn holds the nodes of the virtual pods that have room on existing nodes, see placeAtFirst; nil if there are no
	// virtual pods.
	roomOn map[*model.Pod]string
}

// project returns the projection of a snapshot without the nodes that are gone.
func project(snap *model.Snapshot, opts Options, gone func(*model.Node) bool) *projection {
	w := &projection{began: snap, opts: opts, taken: map[string]bool{}}
	var names []string
	for _, n := range snap.Nodes {
		if gone(n) {
			names = append(names, n.Name)
		}
	}
	after := snap
	if len(names) > 0 {
		after = snap.Without(names...)
		after.Ledger = snap.Ledger // nodes that are being removed still count against the limits
	}
	p := &plan.Provision{}
	if len(after.Groups) > 0 {
		p = placement.Schedule(after.WithReservations(reserve.Derive(after, reserve.Sources{Commands: snap, Leaving: gone})), opts.Placement)
	}
	w.work = p.Work
	w.decidedClaims = p.Claims
	for _, placed := range p.Placed {
		w.taken[placed.Node] = true
	}
	w.snap = after
	ahead := &change{assignments: p.Assignments(), groups: groupsOf(&outcome{groups: after.Groups})}
	for _, name := range names {
		ahead.nodes = append(ahead.nodes, snap.Node(name))
	}
	w.moving = []placement.Moving{w.movingOf(ahead)}
	w.snap = after.Bound(ahead.assignments)
	w.snap.Groups, w.snap.Rejected = nil, nil
	if opts.Last != nil {
		w.snap = w.snap.WithReservations(reserve.Derive(w.snap, reserve.Sources{Last: opts.Last}))
	}
	w.placeAtFirst()
	return w
}

// departing reports whether a node is being removed: it is being deleted, or in a command.
func departing(n *model.Node) bool { return n.Deleting || n.Command != "" }

// outcome is the effect of removing nodes.
type outcome struct {
	nodes  []*model.Node
	claims []plan.NewClaim
	// room holds the claims to launch for virtual pods only.
	room        []plan.NewClaim
	assignments []model.Assignment
	// groups of the pods that would move.
	groups []*model.Group
	// unplaced holds the pods that cannot run elsewhere, and their nodes.
	unplaced []unplacedPod
}

// unplacedPod is a pod that can run only on its current node, or for which pool would launch another one, or that
// follows others back into their domain of the label.
type unplacedPod struct {
	pod     *model.Pod
	node    *model.Node
	pool    string
	follows string
}

// verdict returns the verdict against moving the pod, which is one of several.
func (s unplacedPod) verdict(pods int) plan.Verdict {
	v := plan.Verdict{Code: plan.PodsHomeless, Node: s.node.Name, Have: int64(pods), Holder: &plan.Holder{Pod: s.pod.Key()}}
	switch {
	case s.pool != "":
		v.Code, v.Pool = plan.LaunchedAgain, s.pool
	case s.follows != "":
		v.Code, v.Name = plan.PodsFollow, s.follows
	}
	return v
}

// without returns the effect of removing the nodes, without moving pods to the closed ones.
func (w *projection) without(nodes []*model.Node, closed func(*model.Node) bool) *outcome {
	return w.withoutBy(nodes, closed, w.opts.Placement)
}

// withoutBy is without, where pods are placed by other options.
func (w *projection) withoutBy(nodes []*model.Node, closed func(*model.Node) bool, opts placement.Options) *outcome {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	what := w.snap.Without(names...)
	what.Ledger = w.snap.Ledger // candidates exist until their replacements do
	o := &outcome{nodes: nodes, groups: slices.Concat(what.Groups, what.Virtual)}
	origin := w.origins(nodes)
	for _, p := range what.Rejected {
		if n := origin[p]; n != nil {
			o.unplaced = append(o.unplaced, unplacedPod{pod: p, node: n})
		}
	}
	p := w.schedule(what, closed, opts)
	for _, r := range p.Refused {
		for _, pod := range r.Pods {
			if n := origin[pod]; n != nil && pod.Rejected == nil {
				o.unplaced = append(o.unplaced, unplacedPod{pod: pod, node: n})
			}
		}
	}
	o.claims, o.assignments = p.Claims, p.Assignments()
	w.placeVirtual(what, p, opts, o)
	return o
}

// schedule places the pods of a what-if, without moving pods to the closed nodes.
func (w *projection) schedule(what *model.Snapshot, closed func(*model.Node) bool, opts placement.Options) *plan.Provision {
	opts.Closed, opts.Moving, opts.DecidedClaims = closed, w.moving, w.decidedClaims
	p, cache := placement.ScheduleCached(what, opts, w.cache)
	w.cache = cache
	w.work += p.Work
	return p
}

// origins returns the current node of each pod that would have to move.
func (w *projection) origins(nodes []*model.Node) map[*model.Pod]*model.Node {
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

// apply applies the change: its nodes are gone, and its pods are on their planned nodes. Its replacements do not
// exist yet: they count against the limits and receive no pods.
func (w *projection) apply(c *change) {
	names := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		names[i] = n.Name
	}
	w.moving = append(w.moving, w.movingOf(c))
	w.leaving = append(w.leaving[:len(w.leaving):len(w.leaving)], c.nodes...)
	ledger := charged(w.snap, c.claims)
	w.snap = w.snap.Without(names...).Bound(c.assignments)
	w.snap.Groups, w.snap.Rejected, w.snap.Ledger = nil, nil, ledger
	w.placeAtFirst()
	w.decidedClaims = append(w.decidedClaims[:len(w.decidedClaims):len(w.decidedClaims)], c.claims...)
	for _, s := range c.assignments {
		w.taken[s.Node] = true
	}
}

// charged returns the ledger in which claims to create count too.
func charged(snap *model.Snapshot, claims []plan.NewClaim) model.Ledger {
	if len(claims) == 0 {
		return snap.Ledger
	}
	ledger := snap.Ledger.Clone()
	for i := range claims {
		ledger.Charge(claims[i].Use(snap))
	}
	return ledger
}

// cost returns the cost of an existing node, nano-USD per hour: its price and the price per node of its pool. A
// launching claim counts at the most expensive machine that it may become.
func (w *projection) cost(n *model.Node) int64 { return n.Price + w.opts.beyond(w.snap, n) }

func (w *projection) nodePrice(name string) int64 {
	if pool := w.snap.Pool(name); pool != nil {
		return w.opts.Placement.NodePriceOf(pool.PoolSpec)
	}
	return 0
}

// economics returns the economics of the pool of a node.
func (w *projection) economics(n *model.Node) Economics { return w.opts.economics(w.snap, n) }
