package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// dropTaken removes the types on which a daemon may use one of the host ports, on nodes of the row.
func (ps *poolState) dropTaken(set bitset.Set, row label.Row, ports []model.HostPort) {
	if len(ports) == 0 {
		return
	}
	rooms := ps.possibleRooms(row)
	for t := range set.Clone().All() {
		if !rooms.PortsFree(t, ports) {
			set.Remove(t)
		}
	}
}

// dropLarger keeps the types that are, in the limited resources, no larger than the chosen one: the limit counts the
// largest type of the list.
func (ps *poolState) dropLarger(set bitset.Set, chosen quantity.Vector) {
	for t := range set.Clone().All() {
		total := ps.spec.Types.Total[t]
		for _, r := range ps.scarceList {
			if total.At(r) > chosen.At(r) {
				set.Remove(t)
			}
		}
	}
}

// bounded reports whether limits of the pool or quotas count its nodes or their resources.
func (ps *poolState) bounded() bool { return len(ps.own) > 0 }

// withoutLimits returns a copy of the fleet for a what-if that ignores the limits of these pools, and all quotas.
func (f *fleet) withoutLimits(pools []*poolState) *fleet {
	c := f.clone(pools...)
	for _, ps := range c.same(pools) {
		ps.limitRules = limitRules{snap: f.snap}
	}
	return c
}

// within returns a copy of the fleet with the bins that were opened without regard to limits, each narrowed to what the
// limits permit. It returns nil if they do not permit all of them.
func (f *fleet) within(pools []*poolState, result *fleet, from int) *fleet {
	if c := f.withinAs(pools, result, from, false); c != nil || !slices.ContainsFunc(pools, (*poolState).widens) {
		return c
	}
	return f.withinAs(pools, result, from, true)
}

// widens reports whether the limits may count more for a claim than for its cheapest node.
func (ps *poolState) widens() bool { return len(ps.counting) > 0 || ps.limitsPrice }

// withinAs is within; narrow makes each bin one offering, because the limits count all that a claim may become.
func (f *fleet) withinAs(pools []*poolState, result *fleet, from int, narrow bool) *fleet {
	c := f.clone(pools...)
	*c.reservations = *result.reservations
	copy(c.counters.totals, result.counters.totals)
	for _, b := range result.bins[from:] {
		if b = c.limitedTo(b, narrow); b == nil {
			return nil
		}
		c.bins = append(c.bins, b)
	}
	return c
}

// limitedTo returns the bin with the types that the limits permit, charged to them, or nil if there are none.
func (f *fleet) limitedTo(b *bin, narrow bool) *bin {
	ps, own := f.poolOf(b), *b
	kinds := b.kinds
	if own.row = slices.Clone(b.row); ps.limited() {
		ps.becomeSmaller(&own, kinds)
		kinds = f.withinLimits(ps, &own, kinds, own.kind)
	}
	if narrow {
		own.kinds, own.use = f.narrowed(ps, &own)
	} else {
		own.kinds, own.use = f.withinQuotas(ps, &own, kinds)
	}
	if f.unsuitable(&own, own.kinds, own.row) || !f.ledger.Admit(own.use) {
		return nil
	}
	if !own.kinds.Equal(b.kinds) || !f.snap.Space.Equal(own.row, b.row) {
		own.lowest, own.free = ps.lowestPrice(own.kinds, own.row), f.widest(&own).Sub(own.used)
	}
	f.ledger.Charge(own.use)
	return &own
}

// limited reports whether limits of the pool or quotas apply to resources of its nodes.
func (ps *poolState) limited() bool { return len(ps.scarceList) > 0 || ps.limitsPrice }

// scarce reports whether the pool has any limit or reservation.
func (ps *poolState) scarce() bool {
	return ps.bounded() || len(ps.reservations.left) > 0
}

// Where limits do not suffice for all pods, what uses them up has a price as well: then larger nodes win over more nodes
// under a limit on nodes, and nodes with little unused memory under a limit on memory. The last order opens the nodes
// that hold the most pods, the smallest pods first.
// The first order is tried whatever work it is.
var scarceOrders = []packOrder{{scarcity: 16}, {scarcity: 4}, {scarcity: 1}, {scarcity: 0.25}, {scarcity: 1e6},
	{scarcity: 1e6, count: true, compare: smallPodsFirst}}

// left returns what the limit of the pool on the resource leaves, and whether there is one.
func (ps *poolState) left(r quantity.Resource) (int64, bool) {
	for _, line := range ps.ledger.Lines(ps.own...) {
		if line.Name != model.ResourceNodes && line.Resource == r {
			return line.Left(), true
		}
	}
	return 0, false
}

// exceeded reports whether the limits of the pools, however they are used, cannot hold what the candidates request.
func exceeded(pools []*poolState, cands []*packCandidate) bool {
	var asked quantity.Vector
	for _, cand := range cands {
		asked = asked.Add(cand.pending.group.Requests.Scaled(int64(len(cand.left))))
	}
	for r := range asked {
		left := int64(0)
		for _, ps := range pools {
			own, limited := ps.left(quantity.Resource(r))
			if !limited {
				left = math.MaxInt64
				break
			}
			left += own
		}
		if asked[r] > left {
			return true
		}
	}
	return false
}

// smallPodsFirst puts pods first that request extended resources, as every order does, and then small ones.
func smallPodsFirst(a, b *packCandidate) int {
	p, q := a.pending.group, b.pending.group
	return cmp.Or(cmp.Compare(q.Priority, p.Priority), compareExtended(q.Requests, p.Requests), compareSize(p.Requests, q.Requests))
}

// scarcity is the price of what limits leave, in a packing.
type scarcity struct {
	// whole is the price of all that an account leaves, nano-USD per hour.
	whole float64
	// began is the ledger at the beginning.
	began model.Ledger
}

// price returns the price of what a node of the offering uses of the limits, nano-USD per hour; 0 for nil.
func (s *scarcity) price(ps *poolState, o *offer, p typeOffering) float64 {
	if s == nil {
		return 0
	}
	return float64(s.whole * s.began.Part(ps.use(ps.accountsOfOffering(o, p), p)))
}
