package awssim

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"time"
)

// epoch is how long the model keeps a pool's capacity and a spot price constant.
const epoch = 15 * time.Minute

// The capacity types of pools.
const (
	onDemand = "on-demand"
	spot     = "spot"
)

// pool identifies a source of capacity: a type in a zone, for spot or on-demand. It is a map key.
type pool struct {
	name, zone, capacity string
}

// poolState is the state of a pool that is not computed by the model.
type poolState struct {
	used    int
	left    int // instances left by Drain, if drained
	drained bool
	refusal error // error set by Reject
}

// chance returns a number from 0 to 1 that depends only on the seed and the words.
func (c *Cloud) chance(words ...any) float64 {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, c.opts.Seed)
	fmt.Fprintln(h, words...)
	// The upper bits of a short FNV hash hardly differ. A multiplicative step distributes them.
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

// size returns the total number of instances of a pool at a time, including used ones. The model generates it.
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

// free returns how many more instances a pool has. The caller holds the lock.
func (c *Cloud) free(p pool, now time.Time) int {
	s := c.state(p)
	if s.drained {
		return max(s.left, 0)
	}
	return max(c.size(p, now)-s.used, 0)
}

// occupy takes one instance from a pool. The caller holds the lock.
func (c *Cloud) occupy(p pool) {
	s := c.state(p)
	s.used++
	if s.drained {
		s.left--
	}
}

// vacate returns one instance to a pool. The free capacity of a drained pool does not change. The caller holds the
// lock.
func (c *Cloud) vacate(p pool) { c.state(p).used-- }

// depth returns the free part of a pool, in quarters: 0 for none, 4 for nearly all. EC2 does not publish how it ranks
// pools by capacity. With such a coarse rank, prices decide among similar pools.
func (c *Cloud) depth(p pool, now time.Time) int {
	size := c.size(p, now)
	if size == 0 {
		return 0
	}
	return min((4*c.free(p, now)+size-1)/size, 4)
}

// shrinkPools interrupts the spot instances that exceed the size of their pools, the oldest first, at the start of each
// epoch.
func (c *Cloud) shrinkPools(now time.Time) {
	left := map[pool]int{}
	for p, s := range c.pools {
		if p.capacity == spot {
			left[p] = c.size(p, now) - s.used
		}
	}
	for _, i := range c.order {
		if p := i.pool(); i.CapacityType == spot && left[p] < 0 && i.alive() && !i.interrupted {
			left[p]++
			c.interrupt(i, now)
		}
	}
	c.after(now, epoch, c.shrinkPools)
}

// onDemandPrice returns the price in USD per hour: from the catalog for the region, or for us-east-1 if it has none, or
// an estimate.
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

// listedPrice returns the on-demand price in the price list, 0 if it has none.
func (c *Cloud) listedPrice(t *machineType) float64 {
	if usd := t.USD[c.opts.Region]; usd > 0 {
		return usd
	}
	return t.USD["us-east-1"]
}

// spotPrice returns the price in USD per hour in a zone at a time: 28% to 68% of the on-demand price, changing by a few
// percent from hour to hour. The model generates it.
func (c *Cloud) spotPrice(t *machineType, zone string, at time.Time) float64 {
	share := 0.28 + 0.35*c.chance("spot", t.Name, zone) + 0.05*c.chance("drift", t.Name, zone, at.Unix()/3600)
	return c.onDemandPrice(t) * share
}

// price returns the price of a pool.
func (c *Cloud) price(p pool, now time.Time) float64 {
	t := c.types[p.name]
	if p.capacity == spot {
		return c.spotPrice(t, p.zone, now)
	}
	return c.onDemandPrice(t)
}

// Pool is the state of one pool of capacity. The model generates the numbers.
type Pool struct {
	Type         string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	Free         int     `json:"free"`
	Used         int     `json:"used"`
	Price        float64 `json:"price"` // USD per hour
}

// Pools returns the pools of the given types (all if there are none), cheapest first.
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

// Drain limits a pool to that many free instances. The capacity of terminated instances is not available again until
// Refill. An empty type, zone or capacity type means all.
func (c *Cloud) Drain(instanceType, zone, capacityType string, left int) error {
	return c.eachPool(pool{instanceType, zone, capacityType}, func(s *poolState) { s.drained, s.left = true, left })
}

// Reject makes every launch from a pool fail with the given error, as CreateFleet reports errors per override:
// UnfulfillableCapacity, MaxFleetCountExceeded, AuthFailure.ServiceLinkedRoleCreationNotPermitted and so on.
func (c *Cloud) Reject(instanceType, zone, capacityType string, refusal Refusal) error {
	if refusal.Code == "" {
		return fmt.Errorf("rejecting launches: no error code")
	}
	return c.eachPool(pool{instanceType, zone, capacityType}, func(s *poolState) { s.refusal = refuse(refusal.Code, "%s", refusal.Message) })
}

// Refusal is an AWS error code with its text.
type Refusal struct{ Code, Message string }

// Refill reverts Drain and Reject.
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
