package placement

import (
	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Memory keeps what the runs of one question after the other have in common, so that the next costs less: what pools sell
// to whom, and the room for notes about nodes. It changes no answer. The snapshots must be derived from one another
// (Without, Bound, With): they share the label space and what pools sell. The zero value is empty; it is not safe for
// concurrent use.
type Memory struct {
	goods map[*model.PoolSpec]*goods
	slab  []target
	nodes []*target
	slack []model.Slack
}

// goods are what a pool sells, and what was found out about it.
type goods struct {
	special    bitset.Set
	minimums   []minimum
	offers     map[string]*offer
	priceLists map[string][]purchase
	// reserved: some offering is of a reservation, so that what is for sale changes within a run.
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

// goodsOf are the goods of a pool; nil remembers nothing.
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

// targets is room for notes about so many nodes, for a list of them, and for what they have free.
func (m *Memory) targets(n int) ([]target, []*target, []model.Slack) {
	if m == nil {
		return make([]target, n), make([]*target, 0, n), make([]model.Slack, 0, n)
	}
	if len(m.slab) < n {
		m.slab, m.nodes, m.slack = make([]target, n), make([]*target, 0, n), make([]model.Slack, 0, n)
	}
	return m.slab[:n], m.nodes[:0], m.slack[:0]
}
