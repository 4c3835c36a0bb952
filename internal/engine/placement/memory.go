package placement

import (
	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Memory caches what consecutive runs have in common, to reduce their cost: the offers of pools, and memory for the
// state of nodes. It changes no result. The snapshots must be derived from one another (Without, Bound, With): they
// share the label space and the offers of pools. The zero value is empty. It is not safe for concurrent use.
type Memory struct {
	goods map[*model.PoolSpec]*goods
	slab  []target
	nodes []*target
	slack []model.Slack
}

// goods are the types of a pool and cached facts about them.
type goods struct {
	special    bitset.Set
	minimums   []minimum
	offers     map[string]*offer
	priceLists map[string][]purchase
	// reserved reports that some offering belongs to a reservation, so that availability changes within a run.
	reserved bool
}

func newGoods(p *model.Pool) *goods {
	g := &goods{offers: map[string]*offer{}, priceLists: map[string][]purchase{}}
	if p.Types == nil {
		return g
	}
	g.special = bitset.New(p.Types.Len())
	for t := range p.Types.Catalogue.Types {
		kind := &p.Types.Catalogue.Types[t]
		if kind.Special {
			g.special.Add(t)
		}
		for i := range kind.Offerings {
			g.reserved = g.reserved || kind.Offerings[i].ReservationID != ""
		}
	}
	g.minimums = minimumsOf(p)
	return g
}

// goodsOf returns the goods of a pool. A nil Memory caches nothing.
func (m *Memory) goodsOf(p *model.Pool) *goods {
	if m == nil {
		return newGoods(p)
	}
	known := m.goods[p.PoolSpec]
	if known == nil || known.reserved {
		known = newGoods(p)
		if m.goods == nil {
			m.goods = map[*model.PoolSpec]*goods{}
		}
		m.goods[p.PoolSpec] = known
	}
	return known
}

// targets returns memory for the state of n nodes, for a list of them, and for their free capacity.
func (m *Memory) targets(n int) ([]target, []*target, []model.Slack) {
	if m == nil {
		return make([]target, n), make([]*target, 0, n), make([]model.Slack, 0, n)
	}
	if len(m.slab) < n {
		m.slab, m.nodes, m.slack = make([]target, n), make([]*target, 0, n), make([]model.Slack, 0, n)
	}
	return m.slab[:n], m.nodes[:0], m.slack[:0]
}
