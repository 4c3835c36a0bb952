package guard

import (
	"maps"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
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
	c := provisionCheck{snap: snap, pending: reserve.Pending(snap), ledger: snap.Ledger.Clone(), workloads: map[string]bool{}}
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
	dropped   []Dropped
	// ledger counts the claims that were checked.
	ledger model.Ledger
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

// claim checks one claim and, when it is valid, charges it.
func (c *provisionCheck) claim(claim *plan.NewClaim) plan.Verdict {
	if v := poolVerdict(c.snap, claim); !v.OK() {
		return v
	}
	if there := c.snap.Claim(claim.Name); there != nil {
		if there.Deleting {
			return plan.Verdict{Code: plan.NodeLeaving, Node: there.Name}
		}
		return plan.Verdict{} // created already, before a crash; the ledger includes it
	}
	claim.Pods = c.stillPending(claim.Pods)
	if len(claim.Pods) == 0 {
		return plan.Verdict{Code: plan.PodGone}
	}
	return claim.Charge(c.snap, c.ledger)
}

// poolVerdict returns why no node may be launched for the claim from its pool: the pool must be that, in the generation,
// which the claim was planned for.
func poolVerdict(snap *model.Snapshot, claim *plan.NewClaim) plan.Verdict {
	pool := snap.Pool(claim.Pool)
	switch {
	case pool == nil || pool.UID != claim.PoolUID:
		return plan.Verdict{Code: plan.PoolGone}
	case pool.Blocked != nil && !pool.Standing():
		return plan.Verdict{Code: plan.PoolBlocked, Rejection: pool.Blocked}
	case !claim.OfGeneration(pool.Generation):
		return plan.Verdict{Code: plan.PoolBlocked, Rejection: PoolChanged()}
	}
	return plan.Verdict{}
}
