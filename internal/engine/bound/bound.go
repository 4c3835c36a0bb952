package bound

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Options of a bound.
type Options struct {
	// NodePrice is what a new node costs beyond its price, nano-USD per hour. It counts in Cost alone.
	NodePrice int64
	// Pods are those that the bound is about; nil for all pending pods. A caller who has a plan names the pods that it
	// places. Pods that no node for sale could hold are left out: they may be in need of a node that exists.
	Pods func(*model.Pod) bool
	// Work bounds the arithmetic, in operations (about a nanosecond each); 0 means ProductionWork.
	Work int64
}

// ProductionWork keeps the bound of ten thousand mixed pods within about two seconds.
const ProductionWork = 1_500_000_000

// Answer is what any plan must at least add.
type Answer struct {
	// Price, nano-USD per hour: of the new nodes, each at its cheapest offering. Cost counts the price of nodes as such too.
	Price, Cost int64
	// OfPrice and OfCost prove them.
	OfPrice, OfCost Certificate
}

// Certificate proves a bound: no node that is for sale can hold pods that are worth more than it costs, so that whoever
// places all pods pays at least their worth, but for what fits what is there.
type Certificate struct {
	// NodePrice that a node costs beyond its price, nano-USD per hour.
	NodePrice int64
	// Worth of the pods, by group.
	Worth []Worth
	// Credit is the most that existing nodes and reservations can hold, in worth beyond their price, nano-USD per hour.
	Credit int64
}

// Worth is what each of some pods of a group is worth.
type Worth struct {
	Group *model.Group
	// Count of the group's pods that the bound is about.
	Count int64
	// Each, nano-USD per hour.
	Each int64
}

// Total is the bound that the certificate proves, nano-USD per hour.
func (c *Certificate) Total() int64 {
	total := -c.Credit
	for _, w := range c.Worth {
		total += w.Count * w.Each
	}
	return max(0, total)
}

// Of bounds what any plan for the pods adds to the snapshot.
func Of(snap *model.Snapshot, opts Options) Answer {
	if opts.Work == 0 {
		opts.Work = ProductionWork
	}
	p := newProblem(snap, opts.Pods)
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
