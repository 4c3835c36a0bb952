package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// judgeLimits returns the remainder of each pool's limits after the plan.
func (j *judge) judgeLimits() map[string]amounts {
	used, bought := map[string]amounts{}, map[string]bool{}
	count := func(pool string, capacity amounts) {
		if used[pool] == nil {
			used[pool] = amounts{}
		}
		used[pool].add(capacity)
		used[pool].add(amounts{resourceNodes: 1000})
	}
	for _, n := range j.existing {
		count(n.labels[workload.LabelPool], n.capacity)
	}
	for _, n := range j.added {
		if n.pool != nil && n.capacity != nil {
			count(n.pool.name, n.capacity)
			bought[n.pool.name] = true
		}
	}
	room := map[string]amounts{}
	for _, p := range j.poolOrder {
		room[p.name] = amounts{}
		for name, limit := range p.limits {
			room[p.name][name] = limit - used[p.name][name]
			if room[p.name][name] < 0 && bought[p.name] {
				j.problem("limit", fmt.Sprintf("%s: %s %g of %g", p.name, name, float64(used[p.name][name])/1000, float64(limit)/1000))
			}
		}
	}
	return room
}

// judgeWeights warns about pods on a pool although a pool with a higher weight could have held them alone, within its
// limits.
func (j *judge) judgeWeights(room map[string]amounts) {
	type question struct {
		weight int32
		shape  string
	}
	known := map[question]bool{}
	for _, n := range j.added {
		if n.pool == nil {
			continue
		}
		for _, p := range n.pods {
			q := question{n.pool.weight, p.shape}
			if _, ok := known[q]; !ok {
				known[q] = slices.ContainsFunc(j.poolOrder, func(heavier *pool) bool {
					return heavier.weight > n.pool.weight && j.couldHold(heavier, p, room[heavier.name], soft)
				})
			}
			if known[q] {
				j.warn("lighterPool", 1)
			}
		}
	}
}

func (j *judge) judgeTotals() {
	extra := NodePrice * float64(len(j.added))
	claimed := j.Price
	if said := j.answer.PricePerHour; said != nil {
		claimed = *said
		if math.Abs(claimed-j.Price) > tolerance*j.Price {
			j.problem("total price", fmt.Sprintf("pricePerHour says %g, the catalog %.5f", claimed, j.Price))
		}
	}
	if cost := j.answer.CostPerHour; cost != nil && math.Abs(*cost-claimed-extra) > 0.01*extra+1e-6*claimed {
		j.problem("total cost", fmt.Sprintf("costPerHour says %g, not %g and %.3f for %d nodes", *cost, claimed, extra, len(j.added)))
	}
}

// MedianOptions returns the median number of instance types that new nodes may become, 0 without nodes.
func (a *Answer) MedianOptions() int {
	if len(a.Nodes) == 0 {
		return 0
	}
	lengths := make([]int, len(a.Nodes))
	for i := range a.Nodes {
		lengths[i] = len(a.Nodes[i].InstanceTypes)
	}
	slices.SortFunc(lengths, cmp.Compare)
	return lengths[len(lengths)/2]
}
