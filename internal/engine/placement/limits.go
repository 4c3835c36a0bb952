package placement

import (
	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// largest returns, per resource, the most that one of the types has on nodes of the row: the amount that a limit counts.
func (ps *poolState) largest(kinds bitset.Set, row label.Row) quantity.Vector {
	var most quantity.Vector
	for t := range kinds.All() {
		most = most.Raise(ps.spec.Types.Total[t])
	}
	if ps.usd < 0 {
		return most
	}
	return ps.withPrice(most, ps.spec.Types.HighestPrice(row, kinds.All()))
}

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

// limited reports whether limits of the pool or quotas apply to resources of its nodes.
func (ps *poolState) limited() bool { return len(ps.scarceList) > 0 || ps.usd >= 0 }

// scarce reports whether the pool has any limit or reservation.
func (ps *poolState) scarce() bool {
	return ps.limited() || ps.nodes != model.NoLimit || len(ps.counting) > 0 || len(ps.reservations.left) > 0
}
