package awssim

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"time"
)

// epoch is how long the model keeps a pool's capacity, and a spot price, the same.
const epoch = 15 * time.Minute

// The capacity types of pools.
const (
	onDemand = "on-demand"
	spot     = "spot"
)

// pool is where capacity comes from: a type in a zone, for spot or on-demand. It is a key.
type pool struct {
	name, zone, capacity string
}

// poolState is what is not computed about a pool.
type poolState struct {
	used    int
	left    int // what Drain left, if drained
	drained bool
	refusal error // what Reject says
}

// chance is a number from 0 to 1 that depends on the seed and the words only.
func (c *Cloud) chance(words ...any) float64 {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, c.opts.Seed)
	fmt.Fprintln(h, words...)
	// The upper bits of a short FNV hash hardly differ; a multiplicative step spreads them.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

func (c *Cloud) state(p pool) *poolState {
	s := c.pools[p]
	if s == nil {
		s = &poolState{}
		c.pools[p] = s
	}
	return s
}

// size is how many instances of a pool there are at a time, used ones included. It is invented.
func (c *Cloud) size(p pool, now time.Time) int {
	t := c.types[p.name]
	if t == nil {
		return 0
	}
	n := 20_000 / float64(t.VCPU) * (0.5 + c.chance("size", p.name, p.zone))
	if t.GPU != nil || t.Neuron != nil || t.Accelerator != nil || t.Metal {
		n /= 20
	}
	if p.capacity == spot {
		n *= 0.4
	}
	if c.opts.Scarcity > 0 {
		dry := c.opts.Scarcity
		if p.capacity == onDemand {
			dry /= 10
		}
		luck := c.chance("capacity", p, now.Unix()/int64(epoch.Seconds()))
		if luck < dry {
			return 0
		}
		n *= 0.5 + luck
	}
	return min(max(int(n), 4), 5000)
}

// free is how many more instances a pool has. The lock is held.
func (c *Cloud) free(p pool, now time.Time) int {
	s := c.state(p)
	if s.drained {
		return max(s.left, 0)
	}
	return max(c.size(p, now)-s.used, 0)
}

// occupy takes one instance from a pool. The lock is held.
func (c *Cloud) occupy(p pool) {
	s := c.state(p)
	s.used++
	if s.drained {
		s.left--
	}
}

// vacate gives one back; a drained pool does not get it. The lock is held.
func (c *Cloud) vacate(p pool) { c.state(p).used-- }

// depth is how much of a pool is free, in quarters: 0 for none, 4 for nearly all. EC2 does not say how it ranks pools by
// capacity, and a rank as coarse as this lets prices decide among pools that are alike.
func (c *Cloud) depth(p pool, now time.Time) int {
	size := c.size(p, now)
	if size == 0 {
		return 0
	}
	return min((4*c.free(p, now)+size-1)/size, 4)
}

// shrinkPools interrupts the spot instances that no longer have room in their pools, the oldest first, at the start of
// each epoch.
func (c *Cloud) shrinkPools(now time.Time) {
	room := map[pool]int{}
	for p, s := range c.pools {
		if p.capacity == spot {
			room[p] = c.size(p, now) - s.used
		}
	}
	for _, i := range c.order {
		if p := i.pool(); i.CapacityType == spot && room[p] < 0 && i.alive() && !i.interrupted {
			room[p]++
			c.interrupt(i, now)
		}
	}
	c.after(now, epoch, c.shrinkPools)
}

// onDemandPrice is USD per hour: the catalogue's of the region, or of us-east-1 where it knows none, or an estimate.
func (c *Cloud) onDemandPrice(t *machineType) float64 {
	if listed := c.listedPrice(t); listed > 0 {
		return listed
	}
	estimate := 0.048 * float64(t.VCPU)
	if t.GPU != nil {
		estimate += float64(t.GPU.Count)
	}
	return estimate
}

// listedPrice is the on-demand price that the price list has, 0 if it has none.
func (c *Cloud) listedPrice(t *machineType) float64 {
	if usd := t.USD[c.opts.Region]; usd > 0 {
		return usd
	}
	return t.USD["us-east-1"]
}

// spotPrice is USD per hour in a zone at a time: 28% to 68% of the on-demand price, drifting by some percent from hour
// to hour. It is invented.
func (c *Cloud) spotPrice(t *machineType, zone string, at time.Time) float64 {
	share := 0.28 + 0.35*c.chance("spot", t.Name, zone) + 0.05*c.chance("drift", t.Name, zone, at.Unix()/3600)
	return c.onDemandPrice(t) * share
}

// price is what a pool costs.
func (c *Cloud) price(p pool, now time.Time) float64 {
	t := c.types[p.name]
	if p.capacity == spot {
		return c.spotPrice(t, p.zone, now)
	}
	return c.onDemandPrice(t)
}

// Pool is the state of one pool of capacity. Size is an invention.
type Pool struct {
	Type         string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	Free         int     `json:"free"`
	Used         int     `json:"used"`
	Price        float64 `json:"price"` // USD per hour
}

// Pools are the pools of some types (all if none are named), cheapest first.
func (c *Cloud) Pools(types ...string) []Pool {
	var pools []Pool
	c.locked(func(now time.Time) {
		for _, name := range c.names {
			if t := c.types[name]; len(types) == 0 || slices.Contains(types, name) {
				for _, z := range c.zonesOf(t) {
					for _, usage := range t.Usage {
						if usage == spot || usage == onDemand {
							p := pool{name, z.name, usage}
							pools = append(pools, Pool{name, z.name, usage, c.free(p, now), c.state(p).used, c.price(p, now)})
						}
					}
				}
			}
		}
	})
	slices.SortStableFunc(pools, func(a, b Pool) int {
		if a.Price < b.Price {
			return -1
		} else if a.Price > b.Price {
			return 1
		}
		return 0
	})
	return pools
}

// Drain leaves a pool with that many free instances; what is terminated does not come back until Refill. An empty type,
// zone or capacity type means all.
func (c *Cloud) Drain(instanceType, zone, capacityType string, left int) error {
	return c.eachPool(pool{instanceType, zone, capacityType}, func(s *poolState) { s.drained, s.left = true, left })
}

// Reject has every launch from a pool fail with an error of the caller's choice, as CreateFleet reports them per override:
// UnfulfillableCapacity, MaxFleetCountExceeded, AuthFailure.ServiceLinkedRoleCreationNotPermitted and so on.
func (c *Cloud) Reject(instanceType, zone, capacityType string, refusal Refusal) error {
	if refusal.Code == "" {
		return fmt.Errorf("rejecting launches: no error code")
	}
	return c.eachPool(pool{instanceType, zone, capacityType}, func(s *poolState) { s.refusal = refuse(refusal.Code, "%s", refusal.Message) })
}

// Refusal is an error code of AWS's with its text.
type Refusal struct{ Code, Message string }

// Refill undoes Drain and Reject.
func (c *Cloud) Refill(instanceType, zone, capacityType string) error {
	return c.eachPool(pool{instanceType, zone, capacityType}, func(s *poolState) { s.drained, s.refusal = false, nil })
}

func (c *Cloud) eachPool(like pool, do func(*poolState)) error {
	found := false
	c.locked(func(time.Time) {
		for _, name := range c.names {
			if like.name != "" && like.name != name {
				continue
			}
			for _, z := range c.zonesOf(c.types[name]) {
				for _, usage := range c.types[name].Usage {
					if (like.zone == "" || like.zone == z.name) && (like.capacity == "" || like.capacity == usage) {
						found = true
						do(c.state(pool{name, z.name, usage}))
					}
				}
			}
		}
	})
	if !found {
		return fmt.Errorf("no pool of type %q in zone %q for %q in this region", like.name, like.zone, like.capacity)
	}
	return nil
}
