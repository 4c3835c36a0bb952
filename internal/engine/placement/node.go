package placement

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement/tally"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// place is the common part of nodes and bins: free capacity, counts of pods by mark, and exclusive resources in use.
type place struct {
	free quantity.Vector
	// shared reports that free is the node's own vector, which must be copied before a change.
	shared bool
	tally  tally.Tally
	ports  []model.HostPort
	claims []string
	placed []placedPods
}

// placedPods are the pods of a group that were added to one place in one step.
type placedPods struct {
	pending *pendingGroup
	pods    []*model.Pod
}

// target is a node of the snapshot that accepts pods.
type target struct {
	place
	node *model.Node
	// index is its index in the run's list of nodes.
	at int
	// row and taints are copies of the node's, because every group reads them for every node.
	row    label.Row
	taints []model.Taint
	// daemons are the daemons that matter and are certain to run on the node.
	daemons []daemonPod
}

// existingNodes are the nodes of the snapshot that accept pods.
type existingNodes struct {
	snap     *model.Snapshot
	counters *counters
	fit      *fitChecker
	budget   *budget
	closed   func(*model.Node) bool
	// list are those that have the cpu and memory of some pod to place, or a reservation: no pod is placed on others.
	list []*target
	// slack is the free cpu and memory of each of the nodes.
	slack []model.Slack
	// partitions caches the indexes of list by their atoms on some keys, see nodesBy; tuplesBy the atoms, see tuples.
	partitions map[string]map[string]*[]int
	tuplesBy   map[string]map[string][]int
}

// accepts reports whether the node accepts pods. Nodes that are being removed do not, nor do those that are closed.
func (e *existingNodes) accepts(n *model.Node) bool {
	return !n.Deleting && !n.Disrupted && (e.closed == nil || !e.closed(n))
}

// open lists the nodes. The cache has memory for them.
func (e *existingNodes) open(opts *Options, cache *Cache) {
	e.closed = opts.Closed
	var nodes []*model.Node
	wants, nominated := e.wants()
	for _, n := range e.snap.Nodes {
		asked := opts.AskNodes || len(n.Reservations) > 0 || wants.someFits(n.Slack()) || nominated[n.Name]
		if asked && e.accepts(n) {
			nodes = append(nodes, n)
		}
	}
	var slab []target
	slab, e.list, e.slack = cache.targets(len(nodes))
	for i, n := range nodes {
		t := &slab[i]
		t.placed = nil
		t.open(n)
		t.at = i
		e.list, e.slack = append(e.list, t), append(e.slack, n.Slack())
	}
}

// frontier is the least amounts of cpu and memory that pods want: none of them is at least as large as another in both.
type frontier []model.Slack

// wants returns what the pods to place want, and the nodes that they are nominated to.
func (e *existingNodes) wants() (frontier, map[string]bool) {
	var all frontier
	var nominated map[string]bool
	for _, g := range e.snap.Groups {
		all = append(all, model.SlackOf(g.Requests))
		for _, p := range g.Pods {
			if p.Nominated != "" {
				if nominated == nil {
					nominated = map[string]bool{}
				}
				nominated[p.Nominated] = true
			}
		}
	}
	slices.SortFunc(all, func(a, b model.Slack) int {
		return cmp.Or(cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.Memory, b.Memory))
	})
	least := all[:0]
	for _, want := range all {
		if len(least) == 0 || want.Memory < least[len(least)-1].Memory {
			least = append(least, want)
		}
	}
	return least, nominated
}

// someFits reports whether some pod fits into the slack, as far as cpu and memory are concerned.
func (f frontier) someFits(free model.Slack) bool {
	for _, want := range f {
		if want.CPU > free.CPU {
			return false
		}
		if want.Memory <= free.Memory {
			return true
		}
	}
	return false
}

// open sets the target to the state of the node before any placement.
func (t *target) open(n *model.Node) {
	t.node, t.row, t.taints = n, n.Row, n.Taints
	t.place = place{free: n.Free(), shared: true, ports: n.Ports, claims: n.Claims, placed: t.placed}
}

// placeTallies counts the marks on the nodes, and sets their daemons, once the rules determine which marks are counted
// by hostname.
func (e *existingNodes) placeTallies() {
	for _, t := range e.list {
		t.daemons = e.counters.coming(t.node)
	}
	if len(e.counters.totals) == 0 {
		return
	}
	for _, t := range e.list {
		t.tally = e.counters.tallyOf(t.node, t.daemons)
	}
}

func prefersNot(taints []model.Taint) bool {
	return slices.ContainsFunc(taints, func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule })
}

// fill places batches on the nodes, in order.
func (e *existingNodes) fill(batches []*domainBatch) {
	for _, batch := range batches {
		want := model.SlackOf(batch.pending.group.Requests)
		if batch.domain == nil {
			for i := 0; i < len(e.list) && len(batch.left) > 0 && !e.budget.over(); i++ {
				e.fillNode(batch, want, i)
			}
			continue
		}
		for _, i := range batch.domain.nodes {
			if len(batch.left) == 0 || e.budget.over() {
				break
			}
			e.fillNode(batch, want, i)
		}
	}
}

// fillNode places as many pods of the batch as fit, each with the cpu and memory in want, on a node.
func (e *existingNodes) fillNode(batch *domainBatch, want model.Slack, at int) {
	if !e.slack[at].Holds(want) {
		return
	}
	n := e.list[at]
	if !batch.pending.group.Requests.Fits(n.free) {
		return
	}
	fit := e.fit.node(batch.pending, batch.rows, n)
	if fit.Count == 0 && len(batch.pending.rules.hostAffinities) > 0 && fit.Verdict.Code == plan.AffinityUnmet {
		fit = e.firstOn(batch, n)
	}
	if fit.Count > 0 {
		e.onto(batch.pending, n, batch.removeFirst(min(fit.Count, len(batch.left))))
	}
}

// firstOn makes the node the domain of pods with affinity to each other, if it holds them all.
func (e *existingNodes) firstOn(batch *domainBatch, n *target) Fit {
	fit := e.fit.place(batch.pending, &n.place, true)
	if fit.Count < len(batch.left) {
		return Fit{}
	}
	return fit
}

func (e *existingNodes) onto(pg *pendingGroup, n *target, pods []*model.Pod) {
	e.fit.put(pg, &n.place, len(pods))
	e.slack[n.at] = model.SlackOf(n.free)
	if !n.tally.Nameless {
		e.counters.addHosts(pg.rules, len(pods))
	}
	n.placed = append(n.placed, placedPods{pg, pods})
}

// remove removes the pods in gone from the place, and reports whether there were any.
func (p *place) remove(gone map[*model.Pod]bool) bool {
	removed := false
	for i, s := range p.placed {
		if slices.ContainsFunc(s.pods, func(p *model.Pod) bool { return gone[p] }) {
			removed = true
			p.placed[i].pods = slices.DeleteFunc(slices.Clone(s.pods), func(p *model.Pod) bool { return gone[p] })
		}
	}
	if removed {
		p.placed = slices.DeleteFunc(p.placed, func(s placedPods) bool { return len(s.pods) == 0 })
	}
	return removed
}

// allPods lists the pods of a place.
func (p *place) allPods() []*model.Pod {
	pods := make([]*model.Pod, 0, p.pods())
	for _, s := range p.placed {
		pods = append(pods, s.pods...)
	}
	return pods
}

// pods returns how many pods of the plan are on a place.
func (p *place) pods() int {
	count := 0
	for _, s := range p.placed {
		count += len(s.pods)
	}
	return count
}
