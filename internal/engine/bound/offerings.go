package bound

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Available capacity: offerings of the pools' types, and free resources on existing nodes.

// addOfferings adds the offerings of the pools. Of the offerings of a type that accept the same specs and have the same
// room, only the cheapest counts. Reserved offerings become a limited supply.
func (p *problem) addOfferings() {
	reserved := map[string]*limitedSupply{}
	for _, pool := range p.snap.Pools {
		if pool.Blocked != nil || !pool.Valid || pool.Types == nil || !p.within(pool, nil) {
			continue
		}
		p.addOfferingsOf(pool, p.accepted(pool), reserved)
	}
}

// accepted returns, by offering class and type of the pool, the specs that may use it.
func (p *problem) accepted(pool *model.Pool) [][]bitset.Set {
	x := pool.Types
	sets := make([][]bitset.Set, len(x.Classes))
	for i := range sets {
		sets[i] = make([]bitset.Set, x.Len())
	}
	both := make(label.Row, p.snap.Space.Words())
	for s, spec := range p.specs {
		if _, no := model.Untolerated(pool.Taints, spec.tolerations); no {
			continue
		}
		for _, row := range spec.rows {
			if !p.snap.Space.And(both, pool.Start, row) {
				continue
			}
			types := x.Compatible(both)
			types.AndWith(pool.Eligible)
			for i := range x.Classes {
				if !x.Classes[i].Admits(p.snap.Space, both) {
					continue
				}
				for t := range types.All() {
					if !x.Classes[i].Types.Has(t) {
						continue
					}
					if sets[i][t] == nil {
						sets[i][t] = bitset.New(len(p.specs))
					}
					sets[i][t].Add(s)
				}
			}
		}
	}
	return sets
}

func (p *problem) addOfferingsOf(pool *model.Pool, accepted [][]bitset.Set, reserved map[string]*limitedSupply) {
	x := pool.Types
	for t := range x.Len() {
		if !p.within(pool, x.Total[t]) {
			continue
		}
		first := len(p.kinds)
		for i := range x.Classes {
			if accepted[i][t] == nil {
				continue
			}
			k := &kind{price: x.Classes[i].Price[t], free: pool.MostRoom(t, i), specs: accepted[i][t]}
			if x.Classes[i].ReservationID != "" {
				p.reserve(k, pool.Types, i, t, reserved)
				continue
			}
			at := slices.IndexFunc(p.kinds[first:], func(q *kind) bool { return q.specs.Equal(k.specs) && slices.Equal(q.free, k.free) })
			switch {
			case at < 0:
				p.kinds = append(p.kinds, k)
			case k.price < p.kinds[first+at].price:
				p.kinds[first+at] = k
			}
		}
	}
}

// within reports whether one node with the capacity stays within the limits of the pool, given its current usage.
func (p *problem) within(pool *model.Pool, total quantity.Vector) bool {
	ledger := p.snap.Ledger
	return ledger.Admit(model.Use{Accounts: ledger.Own(pool.Name), Total: total, Nodes: 1})
}

func reservationCount(t *model.InstanceType, id string) int64 {
	most := 0
	for _, o := range t.Offerings {
		if o.ReservationID == id && o.Available {
			most = max(most, o.ReservationCount)
		}
	}
	return int64(most)
}

// reserve adds a node of a class and type to the limited supply of its reservation, in nodes, or of its commitment, in
// units. Of equal nodes in several zones, the cheapest counts.
func (p *problem) reserve(k *kind, x *model.TypeIndex, class, t int, reserved map[string]*limitedSupply) {
	c := &x.Classes[class]
	s := reserved[c.ReservationID]
	if s == nil {
		s = &limitedSupply{committed: c.Units > 0}
		reserved[c.ReservationID] = s
		p.limited = append(p.limited, s)
	}
	if !s.committed {
		s.count = max(s.count, reservationCount(&x.Catalog.Types[t], c.ReservationID))
		s.kinds = append(s.kinds, k)
		return
	}
	for _, m := range p.snap.Commitments {
		if m.ID == c.ReservationID {
			s.count = m.Left()
		}
	}
	k.units = c.NodeUnits(t)
	at := slices.IndexFunc(s.kinds, func(q *kind) bool {
		return q.units == k.units && q.specs.Equal(k.specs) && slices.Equal(q.free, k.free)
	})
	switch {
	case at < 0:
		s.kinds = append(s.kinds, k)
	case k.price < s.kinds[at].price:
		s.kinds[at] = k
	}
}

// keep adds the free resources of existing nodes, except those that are being removed.
func (p *problem) keep() {
	for _, n := range p.snap.Nodes {
		if n.Deleting || n.Disrupted {
			continue
		}
		k := &kind{free: n.Free(), specs: p.acceptedBy(n)}
		if !k.specs.Empty() {
			p.limited = append(p.limited, &limitedSupply{count: 1, owned: true, kinds: []*kind{k}})
		}
	}
}

// acceptedBy returns the specs that may use an existing node.
func (p *problem) acceptedBy(n *model.Node) bitset.Set {
	accepted := bitset.New(len(p.specs))
	for s, spec := range p.specs {
		if _, no := model.Untolerated(n.Taints, spec.tolerations); no {
			continue
		}
		if slices.ContainsFunc(spec.rows, func(row label.Row) bool { return p.snap.Space.Compatible(row, n.Row) }) {
			accepted.Add(s)
		}
	}
	return accepted
}
