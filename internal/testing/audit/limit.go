package audit

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// account holds the usage of a pool that counts against its limits: first that of the nodes in the snapshot, then
// that of each claim.
type account struct {
	used  amounts
	nodes int64
}

func (j *judge) account(pool *model.Pool) *account {
	a := &account{used: amounts{}}
	for _, n := range j.snap.Nodes {
		if n.Pool != pool.Name || n.Deleting && !pool.Static { // a machine of a static pool counts until it is gone
			continue
		}
		a.nodes++
		if n.Stage != model.Launching {
			a.used[model.ResourceUSD] += n.Price
			a.used.add(amountsOf(n.NodeSpec.Capacity))
			continue
		}
		most := amountsOf(n.NodeSpec.Requests)
		if pool.Catalog != nil {
			p := j.promise(n.NodeSpec.Requirements, n.NodeSpec.Labels, n.NodeSpec.Requests, pool.Catalog)
			outcomes := p.outcomes()
			for _, o := range outcomes {
				most.raise(amountsOf(o.kind.Capacity))
			}
			most[model.ResourceUSD] = highestPrice(outcomes)
		}
		a.used.add(most)
	}
	return a
}

func (a amounts) raise(b amounts) {
	for name, value := range b {
		a[name] = max(a[name], value)
	}
}

// limits adds the claim to the account, as large as the largest of its options.
func (j *judge) limits(pool *model.PoolSpec, c *plan.NewClaim, a *account) {
	a.nodes++
	most := amounts{}
	if pool.Catalog != nil {
		listed := map[string]bool{}
		for _, o := range c.Options {
			listed[o.Type] = true
		}
		for i := range pool.Catalog.Types {
			if t := &pool.Catalog.Types[i]; listed[t.Name] {
				most.raise(amountsOf(t.Capacity))
			}
		}
		most[model.ResourceUSD] = highestPrice(j.outcomesOf(c, pool.Catalog))
	}
	a.used.add(most)
	j.within("limit", pool.Name, c.Name, pool.Limits, most, a)
}
