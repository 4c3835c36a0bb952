package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// refund returns a charged capacity to the limits.
func (ps *poolState) refund(total quantity.Vector) {
	for r, left := range ps.remaining {
		if left != model.NoLimit {
			ps.remaining[r] = left + total.At(quantity.Resource(r))
		}
	}
}

// largest returns, per resource, the most that one of the types has: the amount that a limit counts.
func (ps *poolState) largest(kinds bitset.Set) quantity.Vector {
	var most quantity.Vector
	for t := range kinds.All() {
		most = most.Raise(ps.spec.Types.Total[t])
	}
	return most
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
		for r, left := range ps.remaining {
			if left != model.NoLimit && total.At(quantity.Resource(r)) > chosen.At(quantity.Resource(r)) {
				set.Remove(t)
			}
		}
	}
}

// limited reports whether the pool has limits on resources.
func (ps *poolState) limited() bool {
	return slices.ContainsFunc(ps.remaining, func(n int64) bool { return n != model.NoLimit })
}

// within reports whether a node with that capacity is within the limits, and returns the first exceeded resource.
func (ps *poolState) within(total quantity.Vector) (quantity.Resource, bool) {
	for r, left := range ps.remaining {
		if left != model.NoLimit && total.At(quantity.Resource(r)) > left {
			return quantity.Resource(r), false
		}
	}
	return 0, true
}

// charge subtracts a node's capacity from the limits.
func (ps *poolState) charge(total quantity.Vector) {
	for r, left := range ps.remaining {
		if left != model.NoLimit {
			ps.remaining[r] = max(0, left-total.At(quantity.Resource(r)))
		}
	}
	if ps.nodes != model.NoLimit {
		ps.nodes--
	}
}

// scarce reports whether the pool has any limit or reservation.
func (ps *poolState) scarce() bool {
	return ps.limited() || ps.nodes != model.NoLimit || len(ps.reservations.left) > 0
}
