package guard

import (
	"maps"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
)

// Dropped is a claim of a plan that must not be created (any more), and the reason.
type Dropped struct {
	Claim   string
	Pool    string
	Verdict plan.Verdict
}

// CheckProvision returns the part of a plan that is still valid on this, newer, snapshot: the pools exist and are
// ready, their limits (including the number of nodes) permit the largest type of every claim, and the pods are still
// pending or on a node that is being removed (see Ahead), or are virtual pods that still exist. A pod may have taken the
// place of the virtual pod of a workload: that one is valid as long as the workload has pending or virtual pods. The
// invalid part is dropped. The next plan decides about its pods. Of the plan of virtual pods, the claims are returned.
func CheckProvision(snap *model.Snapshot, p *plan.Provision) (*plan.Provision, []Dropped) {
	c := provisionCheck{snap: snap, pending: reserve.Pending(snap), rooms: map[string]*room{}, workloads: map[string]bool{}}
	maps.Copy(c.pending, snap.VirtualPods())
	for _, pod := range c.pending {
		c.workloads[pod.Controller.UID] = true
	}
	kept := &plan.Provision{Refused: p.Refused, Claims: c.claims(p.Claims)}
	if p.Virtual != nil {
		kept.Virtual = &plan.Provision{Claims: c.claims(p.Virtual.Claims)}
	}
	for _, placed := range p.Placed {
		n := snap.Node(placed.Node)
		if n == nil || n.Deleting || plan.Leaving(n.NodeSpec) {
			continue
		}
		if pods := c.stillPending(placed.Pods); len(pods) > 0 {
			kept.Placed = append(kept.Placed, plan.Placement{Node: placed.Node, Pods: pods})
		}
	}
	return kept, c.dropped
}

// PoolChanged returns the rejection for a claim that was planned for another generation of its pool.
func PoolChanged() *model.Rejection {
	return &model.Rejection{Field: "metadata.generation", Reason: "the pool has changed since the plan was made"}
}

type provisionCheck struct {
	snap    *model.Snapshot
	pending map[string]*model.Pod
	// workloads are the UIDs of the controllers of pending and virtual pods.
	workloads map[string]bool
	rooms     map[string]*room
	dropped   []Dropped
}

// room is the remainder of the limits of a pool or a quota while claims are subtracted from it.
type room struct {
	used  quantity.Vector
	nodes int64
	types map[string]*model.InstanceType
}

func (c *provisionCheck) stillPending(pods []*model.Pod) []*model.Pod {
	gone := func(p *model.Pod) bool {
		return c.pending[p.UID] == nil && !(p.Virtual == model.VirtualReplica && c.workloads[p.Controller.UID])
	}
	if !slices.ContainsFunc(pods, gone) {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), gone)
}

// claims returns the claims that are valid, and records the others.
func (c *provisionCheck) claims(planned []plan.NewClaim) []plan.NewClaim {
	var valid []plan.NewClaim
	for _, claim := range planned {
		if v := c.claim(&claim); !v.OK() {
			c.dropped = append(c.dropped, Dropped{Claim: claim.Name, Pool: claim.Pool, Verdict: v})
			continue
		}
		valid = append(valid, claim)
	}
	return valid
}

// claim checks one claim and, when it is valid, subtracts it from the pool's limits.
func (c *provisionCheck) claim(claim *plan.NewClaim) plan.Verdict {
	pool, v := c.pool(claim)
	if !v.OK() {
		return v
	}
	if there := c.snap.Claim(claim.Name); there != nil {
		if there.Deleting {
			return plan.Verdict{Code: plan.NodeLeaving, Node: there.Name}
		}
		return plan.Verdict{} // created already, before a crash; the pool's usage includes it
	}
	claim.Pods = c.stillPending(claim.Pods)
	if len(claim.Pods) == 0 {
		return plan.Verdict{Code: plan.PodGone}
	}
	return c.takeLimits(pool, claim)
}

// Limits are what the limits of pools and the quotas of a snapshot leave while claims are launched one after the other.
type Limits struct{ check provisionCheck }

// NewLimits returns the limits with nothing launched.
func NewLimits(snap *model.Snapshot) *Limits {
	return &Limits{provisionCheck{snap: snap, rooms: map[string]*room{}}}
}

// Take subtracts a claim of the pool from the limits, or returns the verdict that forbids it.
func (l *Limits) Take(pool *model.Pool, claim *plan.NewClaim) plan.Verdict {
	return l.check.takeLimits(pool, claim)
}

// pool returns the claim's pool, if nodes may be launched from it and its generation is the one the claim was planned
// for.
func (c *provisionCheck) pool(claim *plan.NewClaim) (*model.Pool, plan.Verdict) {
	pool := c.snap.Pool(claim.Pool)
	switch {
	case pool == nil || pool.UID != claim.PoolUID:
		return nil, plan.Verdict{Code: plan.PoolGone}
	case pool.Blocked != nil && !pool.Standing():
		return nil, plan.Verdict{Code: plan.PoolBlocked, Rejection: pool.Blocked}
	case !claim.OfGeneration(pool.Generation):
		return nil, plan.Verdict{Code: plan.PoolBlocked, Rejection: PoolChanged()}
	}
	return pool, plan.Verdict{}
}

// replacements checks the claims that a command launches and, when all of them are valid, subtracts them from the
// pools' limits. A claim made from the template alone lists no types and counts as a node only.
func (c *provisionCheck) replacements(missing []plan.NewClaim) plan.Verdict {
	before := make(map[string]room, len(c.rooms))
	for name, r := range c.rooms {
		before[name] = *r
	}
	for i := range missing {
		pool, v := c.pool(&missing[i])
		if v.OK() {
			v = c.takeLimits(pool, &missing[i])
		}
		if !v.OK() {
			for name, r := range c.rooms {
				if was, known := before[name]; known {
					*r = was
				} else {
					delete(c.rooms, name)
				}
			}
			return v
		}
	}
	return plan.Verdict{}
}

func (c *provisionCheck) takeLimits(pool *model.Pool, claim *plan.NewClaim) plan.Verdict {
	r := c.room(pool)
	if pool.NodeLimit >= 0 && r.nodes+1 > pool.NodeLimit {
		return plan.Verdict{Code: plan.NodeLimitReached, Have: pool.NodeLimit}
	}
	if len(pool.Limits)+len(c.snap.Quotas) == 0 {
		r.nodes++
		return plan.Verdict{}
	}
	use, row := c.use(r, pool, claim)
	if over, left, exceeded := model.Exceeded(pool.Limit, r.used, use); exceeded {
		return plan.Verdict{Code: plan.LimitReached, Resource: over, Need: use.At(over), Have: left}
	}
	rooms := []*room{r}
	for _, q := range c.snap.Quotas {
		if !q.Counts(c.snap.Space, row) {
			continue
		}
		of := c.quotaRoom(q)
		if q.NodeLimit >= 0 && of.nodes+1 > q.NodeLimit {
			return plan.Verdict{Code: plan.QuotaReached, Quota: q.Name, Name: model.ResourceNodes, Need: 1, Have: max(0, q.NodeLimit-of.nodes)}
		}
		if over, left, exceeded := model.Exceeded(q.Limit, of.used, use); exceeded {
			return plan.Verdict{Code: plan.QuotaReached, Quota: q.Name, Name: c.snap.Resources[over], Need: use.At(over), Have: left}
		}
		rooms = append(rooms, of)
	}
	for _, taken := range rooms {
		taken.used, taken.nodes = taken.used.Add(use), taken.nodes+1
	}
	return plan.Verdict{}
}

// use returns what limits and quotas count for the claim, and the labels that its node may get. A claim that may become
// several types counts as the largest and most expensive.
func (c *provisionCheck) use(r *room, pool *model.Pool, claim *plan.NewClaim) (quantity.Vector, label.Row) {
	types := c.typesOf(pool, claim)
	most, use := r.largest(types), make(quantity.Vector, len(c.snap.Resources))
	for index, name := range c.snap.Resources {
		use[index] = most[name]
	}
	usd, limited := c.snap.LimitsUSD()
	if !limited && len(c.snap.Quotas) == 0 {
		return use, pool.Start
	}
	n := c.snap.Future(claim.FutureSpec(c.snap), types)
	if n == nil {
		return use, pool.Start
	}
	if limited {
		use[usd] = n.Price
	}
	return use, n.Row
}

// typesOf returns the types that the claim may become. A claim that lists none may become any type of its pool; pools of
// such claims limit the number of nodes only, so that it matters for quotas.
func (c *provisionCheck) typesOf(pool *model.Pool, claim *plan.NewClaim) []string {
	types := claim.Types()
	if len(types) > 0 || len(c.snap.Quotas) == 0 || pool.Types == nil {
		return types
	}
	for t := range pool.Eligible.All() {
		types = append(types, pool.Types.Catalog.Types[t].Name)
	}
	return types
}

// quotaRoom returns the room of a quota. No pool has such a name.
func (c *provisionCheck) quotaRoom(q *model.Quota) *room {
	key := "quota/" + q.Name
	if c.rooms[key] == nil {
		c.rooms[key] = &room{used: q.Used, nodes: int64(q.Nodes)}
	}
	return c.rooms[key]
}

func (c *provisionCheck) room(pool *model.Pool) *room {
	r := c.rooms[pool.Name]
	if r == nil {
		r = &room{used: pool.Used, nodes: int64(pool.Nodes), types: map[string]*model.InstanceType{}}
		if pool.Catalog != nil {
			for i := range pool.Catalog.Types {
				r.types[pool.Catalog.Types[i].Name] = &pool.Catalog.Types[i]
			}
		}
		c.rooms[pool.Name] = r
	}
	return r
}

// largest returns the largest capacity per resource over the types, because the cloud may select any of them.
func (r *room) largest(types []string) map[string]int64 {
	most := map[string]int64{}
	for _, name := range types {
		t := r.types[name]
		if t == nil {
			continue
		}
		for _, a := range t.Capacity {
			most[a.Name] = max(most[a.Name], a.Value)
		}
	}
	return most
}
