package disruption

import (
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// StaticLaunch is the reason of pauses (package pause) of a static pool whose claims fail. The scope is the pool.
const StaticLaunch = "StaticLaunch"

// creationMemory is how long a creation is remembered.
const creationMemory = time.Hour

// Creations holds when the claims of static pools were created, by name, until their nodes are initialized. It is in
// memory only, and the zero value is empty. Names are deterministic: a claim that is to be created again has failed.
type Creations struct{ at map[string]time.Time }

// Admit removes the claims of paused pools from the decision, and records the creation of the others. It returns the
// writes of pauses that begin, because a claim is to be created again, or end, because a node has been initialized.
func (c *Creations) Admit(snap *model.Snapshot, s *Standing) []plan.Action {
	var actions []plan.Action
	pauses := map[string]pause.Pause{}
	for _, pool := range snap.Pools {
		if pool.Static {
			pauses[pool.Name] = pool.Pauses.Of(pause.Key{Reason: StaticLaunch, Scope: pool.Name})
		}
	}
	for _, n := range snap.Nodes {
		if _, made := c.at[n.Claim]; made && n.Stage == model.Initialized {
			delete(c.at, n.Claim)
			if p := pauses[n.Pool]; p.Failures > 0 && n.InitializedAt.After(p.At) {
				actions = append(actions, plan.EndPause{Pool: n.Pool, UID: snap.Pool(n.Pool).UID, Key: p.Key})
				pauses[n.Pool] = pause.Pause{Key: p.Key}
			}
		}
	}
	if c.at == nil {
		c.at = map[string]time.Time{}
	}
	var admitted []plan.NewClaim
	for _, n := range s.Create {
		before := pauses[n.Pool]
		switch made, again := c.at[n.Name]; {
		case !again:
		case before.Covers(made):
			delete(c.at, n.Name)
		case snap.Now.Sub(made) < creationMemory:
			before.Name = "launches of static nodes"
			p := before.Fail(made, snap.Now, 0, "claim "+n.Name+" was deleted before its node was initialized")
			actions = append(actions, plan.SetPause{Pool: n.Pool, UID: n.PoolUID, Pause: p})
			pauses[n.Pool] = p
		}
		if !pauses[n.Pool].Active(snap.Now) {
			admitted = append(admitted, n)
			c.at[n.Name] = snap.Now
		}
	}
	s.Create = admitted
	return actions
}
