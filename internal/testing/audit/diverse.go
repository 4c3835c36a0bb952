package audit

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// minValues checks that what is available for the claim has at least as many values of a label as the pool requires,
// unless the claim states that minValues was relaxed. One value is always there.
func (j *judge) minValues(pool *model.PoolSpec, c *plan.NewClaim, outcomes []outcome) {
	if c.MinValuesRelaxed {
		return
	}
	for _, r := range pool.Requirements {
		if r.MinValues <= 1 {
			continue
		}
		values := map[string]bool{}
		for _, o := range outcomes {
			if o.offering.Available {
				for _, v := range o.values(canonical(r.Key)) {
					values[v.text] = true
				}
			}
		}
		if len(values) < r.MinValues {
			j.blame("minValues", c.Name, "has %d values of %s, pool %s wants %d", len(values), r.Key, pool.Name, r.MinValues)
		}
	}
}

// reservations checks that the number of claims that can be launched only on reserved capacity does not exceed the
// capacity of the reservations, and that the others could not be within it.
func (j *judge) reservations(claims []plan.NewClaim) {
	left := map[string]int{}
	for _, pool := range j.snap.Pools {
		if pool.PoolSpec.Catalog == nil {
			continue
		}
		for i := range pool.PoolSpec.Catalog.Types {
			for _, o := range pool.PoolSpec.Catalog.Types[i].Offerings {
				if n, known := left[o.ReservationID]; o.ReservationID != "" && o.Available && (!known || o.ReservationCount < n) {
					left[o.ReservationID] = o.ReservationCount
				}
			}
		}
	}
	if len(left) == 0 {
		return
	}
	for _, n := range j.snap.Nodes {
		if n.Stage != model.Launching || n.Deleting {
			continue
		}
		_, outcomes := j.inFlightOutcomes(n)
		if ids := reservedOnly(outcomes, true); len(ids) > 0 {
			left[ids[0]]--
		}
	}
	for i := range claims {
		c := &claims[i]
		pool := j.snap.Pool(c.Pool)
		if pool == nil {
			continue
		}
		ids := reservedOnly(j.outcomesOf(c, pool.PoolSpec.Catalog), false)
		if len(ids) == 0 {
			continue
		}
		at := slices.IndexFunc(ids, func(id string) bool { return left[id] > 0 })
		if at < 0 {
			j.blame("reservation", c.Name, "can only be launched on reservations %v, which are used up", ids)
			continue
		}
		left[ids[at]]--
	}
	for i := range claims {
		c := &claims[i]
		if pool := j.snap.Pool(c.Pool); pool != nil && len(c.Options) > 0 && reservedOnly(j.outcomesOf(c, pool.PoolSpec.Catalog), false) == nil {
			j.unused(c, pool.PoolSpec, left)
		}
	}
}

// reservedOnly returns the IDs of the reservations that the available outcomes use. It returns nil if one available
// outcome uses no reservation. A claim in flight may be launched where no further machine is available.
func reservedOnly(outcomes []outcome, inFlight bool) []string {
	var ids []string
	for _, o := range outcomes {
		switch {
		case !o.offering.Available && !inFlight:
		case o.offering.ReservationID == "":
			return nil
		case !slices.Contains(ids, o.offering.ReservationID):
			ids = append(ids, o.offering.ReservationID)
		}
	}
	return ids
}
