package audit

import (
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// highestPrice returns the highest price of the outcomes.
func highestPrice(outcomes []outcome) int64 {
	var most int64
	for _, o := range outcomes {
		most = max(most, o.offering.Price)
	}
	return most
}

// quotas checks that the claims of a plan, each as its largest and most expensive outcome, are within every CapacityQuota
// that counts one of their outcomes.
func (j *judge) quotas(claims []plan.NewClaim) {
	j.quotaUse = map[string]*account{}
	for _, q := range j.snap.Quotas {
		a := j.quotaAccount(q.QuotaSpec)
		j.quotaUse[q.Name] = a
		for i := range claims {
			c := &claims[i]
			pool := j.snap.Pool(c.Pool)
			if pool == nil || pool.Catalog == nil {
				continue
			}
			outcomes := j.outcomesOf(c, pool.Catalog)
			if !mayCount(q.Selector, outcomes) {
				continue
			}
			most := largestOf(nil, outcomes)
			a.used.add(most)
			a.nodes++
			j.within("quota", q.Name, c.Name, q.Limits, most, a)
		}
	}
}

// refusedByQuota reports whether a quota that may count the outcome has no room for it beside the claims of the plan.
func (j *judge) refusedByQuota(o outcome) bool {
	most := largestOf(nil, []outcome{o})
	for _, q := range j.snap.Quotas {
		if !mayCount(q.Selector, []outcome{o}) {
			continue
		}
		for _, limit := range q.Limits {
			a := j.quotaUse[q.Name]
			if limit.Name == model.ResourceNodes && a.nodes >= limit.Value ||
				most[limit.Name] > 0 && a.used[limit.Name]+most[limit.Name] > limit.Value {
				return true
			}
		}
	}
	return false
}

// within blames the claim if the limits are exceeded with it. A resource that it lacks is not its fault.
func (j *judge) within(kind, name, claim string, limits []quantity.Amount, most amounts, a *account) {
	for _, limit := range limits {
		switch {
		case limit.Name == model.ResourceNodes:
			if a.nodes > limit.Value {
				j.blame(kind, name, "may have %d nodes, %s is number %d", limit.Value, claim, a.nodes)
			}
		case most[limit.Name] > 0 && a.used[limit.Name] > limit.Value:
			j.blame(kind, name, "may have %d of %s, with %s it has %d", limit.Value, limit.Name, claim, a.used[limit.Name])
		}
	}
}

// quotaAccount returns what the nodes of the snapshot use of a quota.
func (j *judge) quotaAccount(q *model.QuotaSpec) *account {
	a := &account{used: amounts{}}
	for _, n := range j.snap.Nodes {
		if n.Deleting {
			continue
		}
		if n.Stage != model.Launching {
			if counts(q.Selector, n.Labels) {
				a.nodes++
				a.used.add(amountsOf(n.NodeSpec.Capacity))
				a.used[model.ResourceUSD] += n.Price
			}
			continue
		}
		pool := j.snap.Pool(n.Pool)
		if pool == nil || pool.Catalog == nil {
			continue
		}
		outcomes := j.promise(n.NodeSpec.Requirements, n.NodeSpec.Labels, n.NodeSpec.Requests, pool.Catalog).outcomes()
		if mayCount(q.Selector, outcomes) {
			a.nodes++
			a.used.add(largestOf(n.NodeSpec.Requests, outcomes))
		}
	}
	return a
}

// largestOf returns, per resource, the most of the requests and the outcomes.
func largestOf(requests []quantity.Amount, outcomes []outcome) amounts {
	most := amountsOf(requests)
	for _, o := range outcomes {
		most.raise(amountsOf(o.kind.Capacity))
	}
	most[model.ResourceUSD] = highestPrice(outcomes)
	return most
}

// counts reports whether the selector selects a node with the labels.
func counts(selector []label.Requirement, labels map[string]string) bool {
	for _, r := range selector {
		text, has := labels[r.Key]
		if len(allowed(selector, canonical(r.Key), []value{{text, has}})) == 0 {
			return false
		}
	}
	return true
}

// mayCount reports whether the selector may select one of the outcomes.
func mayCount(selector []label.Requirement, outcomes []outcome) bool {
	for _, o := range outcomes {
		both := append(append([]label.Requirement{}, o.other...), selector...)
		selected := true
		for _, r := range selector {
			key := canonical(r.Key)
			selected = selected && len(allowed(both, key, o.decided(key))) > 0
		}
		if selected {
			return true
		}
	}
	return false
}
