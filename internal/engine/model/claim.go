package model

import (
	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Claims in flight: nodes that may still become any of their types.

// encodeClaim encodes a claim that is not launched. It may become any of its types in any of its zones and capacity
// types, so it has the room of the smallest net of daemons, costs as much as the most expensive, and counts against
// limits as the largest.
func (b *Builder) encodeClaim(n *Node, types *TypeIndex, daemons []*Daemon) {
	wellKnown := func(string) bool { return false }
	if types != nil {
		wellKnown = func(key string) bool { return types.Catalog.WellKnown[key] }
	}
	n.Row, _, _ = b.space.Template(wellKnown, n.Requirements)
	nameHost(b.space, n.Row)
	for key, value := range n.Labels {
		if k, known := b.space.Lookup(key); known {
			b.space.SetOnly(n.Row, k, b.space.Atom(k, value))
		}
	}
	if types != nil {
		b.settleCustom(n, wellKnown)
	}
	var set bitset.Set
	if types != nil {
		set = types.Compatible(n.Row)
		b.keepNamed(set, types, n.Requirements)
	}
	requests := b.resources.Vector(n.Requests)
	if set.Empty() {
		n.Total, n.Usable = requests, b.capacity(n.Requests)
		n.Reserved = b.reservation(n, daemons)
		b.reservePorts(n, daemons, n.Row)
		return
	}
	n.Row = types.Hull(n.Row, set)
	n.Usable = b.leastUsable(n, types, set, daemons, requests)
	for t := range set.All() {
		n.Types = append(n.Types, types.Catalog.Types[t].Name)
		b.reservePorts(n, daemons, types.Rows[t])
		n.Total = n.Total.Max(types.Total[t])
	}
	n.price(types, set)
}

// settleCustom sets to absent the custom labels that the claim neither carries nor requires: its node will not have
// them.
func (b *Builder) settleCustom(n *Node, wellKnown func(string) bool) {
	for _, r := range n.Requirements {
		k, known := b.space.Lookup(r.Key)
		_, carried := n.Labels[r.Key]
		if known && !carried && !wellKnown(r.Key) && r.Key != LabelHostname && b.space.AllowsAbsent(n.Row, k) {
			b.space.SetOnly(n.Row, k, b.space.Absent(k))
		}
	}
}

// leastUsable returns the minimum of the types' room net of daemons. The daemons are counted type by type: daemons
// that run only on large types must not reduce the room of the small ones. The machine will satisfy the requests,
// whatever the current catalog says about its types.
func (b *Builder) leastUsable(n *Node, types *TypeIndex, set bitset.Set, daemons []*Daemon, requests quantity.Vector) quantity.Vector {
	var least, most quantity.Vector
	row := make(label.Row, b.space.Words())
	first := true
	for t := range set.All() {
		var overhead quantity.Vector
		b.space.And(row, n.Row, types.Rows[t])
		for _, d := range daemons {
			if d.Admits(b.space, row, n.Taints) {
				overhead = overhead.Add(d.Requests)
			}
		}
		most = most.Max(overhead)
		left := types.Usable[t].Sub(overhead)
		if first {
			least, first = left, false
		}
		least = least.Min(left)
	}
	return least.Max(requests.Sub(most))
}

// nameHost gives a planned node a hostname with an unknown value. The pool need not define this label: every kubelet
// sets it.
func nameHost(space *label.Space, row label.Row) {
	const unknown = "\x00" // not a valid label value
	if k, known := space.Lookup(LabelHostname); known {
		space.SetOnly(row, k, space.Atom(k, unknown))
	}
}

// keepNamed removes the types that are not in the claim's own list. The row does not contain the list because most of
// its names are mentioned nowhere else.
func (b *Builder) keepNamed(set bitset.Set, types *TypeIndex, reqs []label.Requirement) {
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
