package placement

import (
	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Cache is what consecutive runs have in common, to reduce their cost: the offers of pools, and memory for the state of
// nodes. It changes no result. The snapshots must be derived from one another (Without, Bound, With): they share the
// label space and the offers of pools. The zero value is empty. A cache that was passed to a run must not be used
// again.
type Cache struct {
	offerings map[*model.PoolSpec]*offeringCache
	slab      []target
	nodes     []*target
	slack     []model.Slack
}

// offeringCache has the types of a pool and cached facts about them.
type offeringCache struct {
	special    bitset.Set
	bySize     []int
	minimums   []minimum
	offers     map[string]*offer
	rooms      map[string]*model.Rooms
	fronts     map[frontKey][]typeOffering
	priceLists map[string][]typeOffering
	// reserved reports that some offering belongs to a reservation, so that availability changes within a run.
	reserved bool
}

func newOfferingCache(p *model.Pool) *offeringCache {
	g := &offeringCache{offers: map[string]*offer{}, rooms: map[string]*model.Rooms{}, fronts: map[frontKey][]typeOffering{}, priceLists: map[string][]typeOffering{}}
	if p.Types == nil {
		return g
	}
	g.special = bitset.New(p.Types.Len())
	for t := range p.Types.Catalog.Types {
		kind := &p.Types.Catalog.Types[t]
		if kind.Special {
			g.special.Add(t)
		}
		for i := range kind.Offerings {
			g.reserved = g.reserved || kind.Offerings[i].ReservationID != ""
		}
	}
	g.minimums, g.bySize = minimumsOf(p), smallestFirst(p.Types)
	return g
}

// offeringsOf returns the offerings of a pool. A nil Cache caches nothing.
func (c *Cache) offeringsOf(p *model.Pool) *offeringCache {
	if c == nil {
		return newOfferingCache(p)
	}
	known := c.offerings[p.PoolSpec]
	if known == nil {
		known = newOfferingCache(p)
		if c.offerings == nil {
			c.offerings = map[*model.PoolSpec]*offeringCache{}
		}
		c.offerings[p.PoolSpec] = known
	}
	return known
}

// targets returns memory for the state of n nodes, for a list of them, and for their free capacity.
func (c *Cache) targets(n int) ([]target, []*target, []model.Slack) {
	if c == nil {
		return make([]target, n), make([]*target, 0, n), make([]model.Slack, 0, n)
	}
	if len(c.slab) < n {
		c.slab, c.nodes, c.slack = make([]target, n), make([]*target, 0, n), make([]model.Slack, 0, n)
	}
	return c.slab[:n], c.nodes[:0], c.slack[:0]
}
