package disruption

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Creations holds the recent creations of claims for static pools. It is in memory only, and the zero value is empty.
//
// A claim that fails early (its launch was refused, for example) frees its name, and the next claim of the pool would
// get the same name. It is not created again for some time, so that a pool without available nodes does not cause
// constant launches.
//
// The creation of a claim that no snapshot shows may also have lost its reply only. Then the claim exists, and Static
// still counts it as missing. If the name of another claim has become free meanwhile, the missing claim gets that name,
// and a second claim would be created. So such a creation holds back one claim of its pool, whatever the name.
type Creations struct {
	byName map[string]creation
}

type creation struct {
	// pool is the UID of the pool.
	pool string
	at   time.Time
}

// Admit returns the claims that may be created now, and records their creation. The snapshot is the one that the claims
// were decided on, and pause is how long a creation holds back another one.
func (c *Creations) Admit(snap *model.Snapshot, claims []plan.NewClaim, now time.Time, pause time.Duration) []plan.NewClaim {
	unseen := map[string]int{}
	for name, made := range c.byName {
		switch {
		case now.Sub(made.at) >= pause:
			delete(c.byName, name)
		case snap.Claim(name) == nil:
			unseen[made.pool]++
		}
	}
	held := func(n plan.NewClaim) bool {
		unseen[n.PoolUID]--
		return unseen[n.PoolUID] >= 0
	}
	admitted := slices.DeleteFunc(slices.Clone(claims), func(n plan.NewClaim) bool {
		_, again := c.byName[n.Name]
		return again && held(n)
	})
	admitted = slices.DeleteFunc(admitted, held)
	if c.byName == nil {
		c.byName = map[string]creation{}
	}
	for i := range admitted {
		c.byName[admitted[i].Name] = creation{admitted[i].PoolUID, now}
	}
	return admitted
}
