package disruption

import (
	"maps"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// StaticLaunch is the reason of pauses (package pause) of a static pool whose claims fail. The scope is the pool.
const StaticLaunch = "StaticLaunch"

// creationMemory is how long a claim that is gone is remembered while its pool creates no other one.
const creationMemory = time.Hour

// Creations holds when the claims of static pools were created, by name, until their nodes are initialized. It is in
// memory only, and the zero value is empty. A claim that is gone has failed if the pool is to create one again.
type Creations struct{ made map[string]creation }

type creation struct {
	pool string
	at   time.Time
}

// Admit removes the claims of paused pools from the decision, and records the creation of the others. It returns the
// writes of pauses that begin, because a claim has failed, or end, because a node has been initialized.
func (c *Creations) Admit(snap *model.Snapshot, s *Standing) []plan.Action {
	pauses, creates := map[string]pause.Pause{}, map[string]bool{}
	for _, pool := range snap.Pools {
		if pool.Static {
			pauses[pool.Name] = pool.Pauses.Of(pause.Key{Reason: StaticLaunch, Scope: pool.Name})
		}
	}
	for _, n := range s.Create {
		creates[n.Pool] = true
	}
	for _, n := range s.Surplus {
		delete(c.made, n.Claim)
	}
	var actions []plan.Action
	for _, name := range slices.Sorted(maps.Keys(c.made)) {
		made := c.made[name]
		before, static := pauses[made.pool]
		n := snap.Claim(name)
		switch {
		case !static:
		case n != nil && n.Stage == model.Initialized:
			if before.Failures > 0 && n.InitializedAt.After(before.At) {
				actions = append(actions, plan.EndPause{Pool: made.pool, UID: snap.Pool(made.pool).UID, Key: before.Key})
				pauses[made.pool] = pause.Pause{Key: before.Key}
			}
		case n != nil, !creates[made.pool] && snap.Now.Sub(made.at) < creationMemory:
			continue
		case creates[made.pool] && !before.Covers(made.at) && snap.Now.Sub(made.at) < creationMemory:
			before.Name = "launches of static nodes"
			p := before.Fail(made.at, snap.Now, 0, "claim "+name+" was deleted before its node was initialized")
			actions = append(actions, plan.SetPause{Pool: made.pool, UID: snap.Pool(made.pool).UID, Pause: p})
			pauses[made.pool] = p
		}
		delete(c.made, name)
	}
	if c.made == nil {
		c.made = map[string]creation{}
	}
	s.Create = slices.DeleteFunc(s.Create, func(n plan.NewClaim) bool { return pauses[n.Pool].Active(snap.Now) })
	for _, n := range s.Create {
		c.made[n.Name] = creation{n.Pool, snap.Now}
	}
	return actions
}
