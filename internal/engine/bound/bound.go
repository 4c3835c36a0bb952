package bound

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Options configures a bound.
type Options struct {
	// NodePrice is the cost of a new node in addition to its price, nano-USD per hour. Only Answer.Cost includes it.
	NodePrice int64
	// Pods selects the pods that the bound is about; nil selects all pending pods. A caller with a plan selects the
	// pods that the plan places. Pods that fit no available node type are ignored: they may need an existing node.
	Pods func(*model.Pod) bool
	// Held are nodes that the snapshot lacks (Snapshot.Without) and that a plan may keep, each at its price
	// (model.Node.LeastPrice) and NodePrice, with the selected ones of its pods or others.
	Held []*model.Node
	// Work limits the arithmetic, in operations (about a nanosecond each); 0 means ProductionWork.
	Work int64
}

// ProductionWork limits the bound of ten thousand mixed pods to about two seconds.
const ProductionWork = 1_500_000_000

// Answer is the least cost that any plan adds.
type Answer struct {
	// Price, nano-USD per hour, is that of the new nodes, each at its cheapest offering. Cost also includes NodePrice
	// for each node.
	Price, Cost int64
	// OfPrice and OfCost are their certificates.
	OfPrice, OfCost Certificate
}

// Certificate proves a bound: no available node can hold pods that are worth more than the node costs. Any plan that
// places all pods therefore costs at least their worth, minus the worth of the pods that fit on existing capacity.
type Certificate struct {
	// NodePrice is the cost of a node in addition to its price, nano-USD per hour.
	NodePrice int64
	// Worth holds the worth of the pods, by group.
	Worth []Worth
	// Credit is an upper bound of the worth of the pods that existing nodes, reservations and commitments can hold, beyond
	// the price of these nodes, nano-USD per hour.
	Credit int64
}

// Worth is the worth of pods of a group.
type Worth struct {
	Group *model.Group
	// Count is the number of the group's pods that have this worth.
	Count int64
	// Each is the worth of one pod, nano-USD per hour.
	Each int64
}

// Total returns the bound that the certificate proves, nano-USD per hour.
func (c *Certificate) Total() int64 {
	total := -c.Credit
	for _, w := range c.Worth {
		total += w.Count * w.Each
	}
	return max(0, total)
}

// Of returns a lower bound of the cost that any plan for the pods adds to the snapshot.
func Of(snap *model.Snapshot, opts Options) Answer {
	if opts.Work == 0 {
		opts.Work = ProductionWork
	}
	p := newProblem(snap, opts)
	if len(p.items) == 0 {
		return Answer{OfCost: Certificate{NodePrice: opts.NodePrice}}
	}
	var a Answer
	s := newSearch(p, opts.NodePrice, opts.Work*3/5)
	a.OfCost = s.run()
	a.OfPrice = a.OfCost
	if opts.NodePrice != 0 {
		s.reprice(0, opts.Work*2/5)
		a.OfPrice = s.run()
	}
	a.Price, a.Cost = a.OfPrice.Total(), a.OfCost.Total()
	a.Cost = max(a.Cost, a.Price)
	return a
}
