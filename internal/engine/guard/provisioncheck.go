package guard

import (
	"slices"

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
// pending or on a node that is being removed (see Ahead), or are virtual pods that still exist. The invalid part is dropped. The next plan decides about its
// pods.
func CheckProvision(snap *model.Snapshot, p *plan.Provision) (*plan.Provision, []Dropped) {
	c := provisionCheck{snap: snap, pending: reserve.Pending(snap), rooms: map[string]*room{}}
	for _, g := range snap.Virtual {
		for _, pod := range g.Pods {
			c.pending[pod.UID] = pod
		}
	}
	kept := &plan.Provision{Refused: p.Refused}
	var dropped []Dropped
	for i := range p.Claims {
		claim := p.Claims[i]
		if v := c.claim(&claim); !v.OK() {
			dropped = append(dropped, Dropped{Claim: claim.Name, Pool: claim.Pool, Verdict: v})
			continue
		}
		kept.Claims = append(kept.Claims, claim)
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
	return kept, dropped
}

// PoolChanged returns the rejection for a claim that was planned for another generation of its pool.
func PoolChanged() *model.Rejection {
	return &model.Rejection{Field: "metadata.generation", Reason: "the pool has changed since the plan was made"}
}

type provisionCheck struct {
	snap    *model.Snapshot
	pending map[string]*model.Pod
	rooms   map[string]*room
}

// room is the remainder of a pool's limits while claims are subtracted from it.
type room struct {
	used  quantity.Vector
	nodes int64
	types map[string]*model.InstanceType
}

func (c *provisionCheck) stillPending(pods []*model.Pod) []*model.Pod {
	if !slices.ContainsFunc(pods, func(p *model.Pod) bool { return c.pending[p.UID] == nil }) {
		return pods
	}
	var left []*model.Pod
	for _, p := range pods {
		if c.pending[p.UID] != nil {
			left = append(left, p)
		}
	}
	return left
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
	r.nodes++
	if len(pool.Limits) == 0 {
		return plan.Verdict{}
	}
	most := r.largest(claim)
	use := quantity.Vector{}
	for index, name := range c.snap.Resources {
		resource := quantity.Resource(index)
		if limit, limited := limitOf(pool, name); limited && r.used.At(resource)+most[name] > limit {
			r.nodes--
			return plan.Verdict{Code: plan.LimitReached, Resource: resource, Need: most[name], Have: max(0, limit-r.used.At(resource))}
		}
		use = append(use, most[name])
	}
	r.used = r.used.Add(use)
	return plan.Verdict{}
}

func limitOf(pool *model.Pool, resource string) (int64, bool) {
	for _, a := range pool.Limits {
		if a.Name == resource && a.Name != model.ResourceNodes {
			return a.Value, true
		}
	}
	return 0, false
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

// largest returns the largest capacity per resource over the claim's types, because the cloud may select any of them.
func (r *room) largest(claim *plan.NewClaim) map[string]int64 {
	most := map[string]int64{}
	for _, name := range claim.Types() {
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
