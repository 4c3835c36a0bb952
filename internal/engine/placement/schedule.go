package placement

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Options of a run. The zero value is what production uses.
type Options struct {
	// NodePrice is what a node costs beyond its price, nano-USD per hour: agents with a licence per node, daemons, one
	// more thing that can break. 0 means ProductionNodePrice, a negative value none.
	NodePrice int64
	// PodCap bounds how many pods of one group may share a bin; 0 means no bound. It is where per-bin caps of topology
	// rules enter.
	PodCap int
}

// ProductionNodePrice is 0.005 USD per hour.
const ProductionNodePrice = 5 * model.Nano / 1000

func (o Options) nodePrice() int64 {
	switch {
	case o.NodePrice == 0:
		return ProductionNodePrice
	case o.NodePrice < 0:
		return 0
	}
	return o.NodePrice
}

// Schedule answers the pending pods of the snapshot. It depends on nothing but its arguments: the same snapshot gives
// the same plan.
func Schedule(snap *model.Snapshot, opts Options) *plan.Provision {
	r := &run{snap: snap, opts: opts, result: &plan.Provision{}}
	r.queue()
	if len(r.work) > 0 {
		r.openNodes()
		r.keepPromises()
		r.fillNodes()
		r.buy()
	}
	r.listPlacements()
	r.refuse()
	return r.result
}

// run is one call of Schedule.
type run struct {
	snap    *model.Snapshot
	opts    Options
	work    []*work
	nodes   []*target
	pools   []*market
	names   map[string]bool
	scratch scratch
	result  *plan.Provision
}

// work is a group with the pods that still need a place.
type work struct {
	group *model.Group
	left  []*model.Pod
}

// take hands out n pods.
func (w *work) take(n int) []*model.Pod {
	pods := w.left[:n:n]
	w.left = w.left[n:]
	return pods
}

// queue orders the groups: higher priority first, then the larger, because what is large is hard to place.
func (r *run) queue() {
	for _, g := range r.snap.Groups {
		r.work = append(r.work, &work{group: g, left: g.Pods})
	}
	slices.SortFunc(r.work, func(a, b *work) int {
		return cmp.Or(cmp.Compare(b.group.Priority, a.group.Priority), compareSize(b.group.Requests, a.group.Requests),
			strings.Compare(a.group.Signature, b.group.Signature))
	})
}

// compareSize orders requests by extended resources first (scarce), then cpu, then memory.
func compareSize(a, b quantity.Vector) int {
	for i := max(len(a), len(b)) - 1; i > int(quantity.Pods); i-- {
		if c := cmp.Compare(a.At(quantity.Resource(i)), b.At(quantity.Resource(i))); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(a.At(quantity.CPU), b.At(quantity.CPU)), cmp.Compare(a.At(quantity.Memory), b.At(quantity.Memory)))
}

// listPlacements writes down what went onto nodes of the snapshot.
func (r *run) listPlacements() {
	for _, t := range r.nodes {
		if len(t.pods) > 0 {
			r.result.Placed = append(r.result.Placed, plan.Placement{Node: t.node.Name, Pods: t.pods})
		}
	}
}

// refuse writes down who has no place, and why.
func (r *run) refuse() {
	for _, p := range r.snap.Rejected {
		if p.Rejected.Silent {
			continue
		}
		code := plan.PodInvalid
		if p.Rejected.Unsupported {
			code = plan.PodUnsupported
		}
		r.result.Refused = append(r.result.Refused, plan.Refusal{
			Pods: []*model.Pod{p}, Verdict: plan.Verdict{Code: code, Rejection: p.Rejected}})
	}
	for _, w := range r.work {
		if len(w.left) > 0 {
			r.result.Refused = append(r.result.Refused, r.verdicts(w))
		}
	}
}
