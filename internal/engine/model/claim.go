package model

import (
	"encoding/binary"
	"fmt"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Claims in flight: nodes that may still become any of their types.

// encodeClaim encodes a claim that is not launched. It may become any of its types in any of its zones and capacity
// types, so it has the room of the smallest net of daemons, costs as much as the most expensive, and counts against
// limits as the largest.
func (f *freezer) encodeClaim(n *Node, types *TypeIndex, daemons []*Daemon) {
	wellKnown := func(string) bool { return false }
	if types != nil {
		wellKnown = func(key string) bool { return types.Catalog.WellKnown[key] }
	}
	n.Row, _, _ = f.shared.space.Template(wellKnown, n.Requirements)
	completeRow(f.shared.space, n.Row)
	for key, value := range n.Labels {
		if k, known := f.shared.space.Lookup(key); known {
			f.shared.space.SetOnly(n.Row, k, f.shared.space.Atom(k, value))
		}
	}
	PinCommitment(f.shared.space, n.Row, "") // what it costs without: pay
	if types != nil {
		f.settleCustom(n, wellKnown)
	}
	var set bitset.Set
	if types != nil {
		set = types.Compatible(n.Row)
		f.keepNamed(set, types, n.Requirements)
	}
	requests := f.shared.resources.Vector(n.Requests)
	if set.Empty() {
		n.Total, n.Usable = requests, f.shared.capacity(n.Requests)
		f.reserveDaemons(n, daemons)
		return
	}
	n.Row = types.Hull(n.Row, set)
	rooms := f.claimRooms(types, n, daemons, set).Possible(n.Row)
	n.Usable = leastUsable(rooms, set, requests)
	for t := range set.All() {
		n.Types = append(n.Types, types.Catalog.Types[t].Name)
		n.reservePorts(rooms.Ports(t))
		n.Total = n.Total.Max(types.Total[t])
	}
	n.price(types, set)
}

// settleCustom sets to absent the custom labels that the claim neither carries nor requires: its node will not have
// them.
func (f *freezer) settleCustom(n *Node, wellKnown func(string) bool) {
	for _, r := range n.Requirements {
		k, known := f.shared.space.Lookup(r.Key)
		_, carried := n.Labels[r.Key]
		if known && !carried && !wellKnown(r.Key) && !OnEveryNode(r.Key) && f.shared.space.AllowsAbsent(n.Row, k) {
			f.shared.space.SetOnly(n.Row, k, f.shared.space.Absent(k))
		}
	}
}

// claimRooms returns the rooms of a claim. Claims that daemons cannot tell apart share them within a snapshot.
func (f *freezer) claimRooms(types *TypeIndex, n *Node, daemons []*Daemon, set bitset.Set) *Rooms {
	var key []byte
	for _, words := range [][]uint64{set, n.Row} {
		for _, w := range words {
			key = binary.LittleEndian.AppendUint64(key, w)
		}
	}
	for _, t := range n.Taints {
		key = fmt.Appendf(key, "%q %q %d", t.Key, t.Value, t.Effect)
	}
	shown := f.shownOf(n.Pool)
	at := claimRoomsKey{types, string(key) + shown.id()}
	if f.roomsOfClaims[at] == nil {
		f.roomsOfClaims[at] = newRooms(types, roomsOf{n.Row, n.Taints, daemons, shown}, set)
	}
	return f.roomsOfClaims[at]
}

// shownOf returns what nodes of the pool show.
func (f *freezer) shownOf(pool string) shown {
	if p := f.from.pools[pool]; p != nil {
		return p.shown
	}
	return nil
}

// claimRoomsKey identifies claims with the same rooms.
type claimRoomsKey struct {
	types *TypeIndex
	claim string
}

// leastUsable returns the minimum of the types' room net of daemons. The daemons are counted by type and offering:
// daemons that run only on large types must not reduce the room of the small ones. The machine will satisfy the
// requests, whatever the current catalog says about its types.
func leastUsable(rooms PossibleRooms, set bitset.Set, requests quantity.Vector) quantity.Vector {
	var least, most quantity.Vector
	first := true
	for t := range set.All() {
		_, daemons := rooms.Daemons(t)
		most = most.Max(daemons)
		left := rooms.Least(t)
		if first {
			least, first = left, false
		}
		least = least.Min(left)
	}
	return least.Max(requests.Sub(most))
}

// OnEveryNode reports whether each node of a pool has the label by the time that it runs pods, without any pool or
// claim that defines it.
func OnEveryNode(key string) bool {
	return key == LabelHostname || key == LabelRegistered || key == LabelInitialized
}

// completeRow gives a planned node the labels of OnEveryNode: every kubelet sets a hostname, whose value is unknown, and
// registration and initialization set theirs.
func completeRow(space *label.Space, row label.Row) {
	const unknown = "\x00" // not a valid label value
	if k, known := space.Lookup(LabelHostname); known {
		space.SetOnly(row, k, space.Atom(k, unknown))
	}
	initializeRow(space, row)
}

// initializeRow gives a node the labels that registration and initialization set.
func initializeRow(space *label.Space, row label.Row) {
	for _, key := range []string{LabelRegistered, LabelInitialized} {
		if k, known := space.Lookup(key); known {
			space.SetOnly(row, k, space.Atom(k, "true"))
		}
	}
}

// keepNamed removes the types that are not in the claim's own list. The row does not contain the list because most of
// its names are mentioned nowhere else.
func (f *freezer) keepNamed(set bitset.Set, types *TypeIndex, reqs []label.Requirement) {
	for _, r := range reqs {
		if r.Key != LabelType || r.Operator != label.In {
			continue
		}
		named := make(map[string]bool, len(r.Values))
		for _, v := range r.Values {
			named[v] = true
		}
		for t := range set.Clone().All() {
			if !named[types.Catalog.Types[t].Name] {
				set.Remove(t)
			}
		}
	}
}
