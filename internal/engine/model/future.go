package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Future returns the node that a claim of the pool becomes with one of the types. It returns nil if the snapshot
// lacks the information: the pool, a type, or a value in the requirements no longer exists, or the requirements of the
// pool contradict each other. The node has the minimum of the types' room net of daemons. A capacity type and zone in
// the spec's labels are taken as certain.
func (s *Snapshot) Future(spec NodeSpec, types []string) *Node {
	pool := s.Pool(spec.Pool)
	if pool == nil || pool.Rooms == nil {
		return nil
	}
	return s.future(pool, spec, pool.Types.named(types))
}

// future is Future, of a pool that has types.
func (s *Snapshot) future(pool *Pool, spec NodeSpec, set bitset.Set) *Node {
	x := pool.Types
	// The list of types is not in the row: the space does not contain their names.
	reqs := slices.DeleteFunc(slices.Clone(spec.Requirements), func(r label.Requirement) bool { return r.Key == LabelType })
	if set.Empty() || slices.ContainsFunc(reqs, func(r label.Requirement) bool { return !s.Space.Mentioned(r) }) {
		return nil
	}
	n := &Node{NodeSpec: &spec}
	n.Row, _, _ = s.Space.Template(func(key string) bool { return x.Catalog.WellKnown[key] }, reqs)
	completeRow(s.Space, n.Row)
	for key, value := range spec.Labels {
		if k, known := s.Space.Lookup(key); known {
			s.Space.SetOnly(n.Row, k, s.Space.Atom(k, value))
		}
	}
	PinCommitment(s.Space, n.Row, "") // what it costs without: pay
	n.Row = x.Hull(n.Row, set)
	n.size(pool, set)
	n.Usable = grow(n.Usable.Clone(), len(s.Resources))
	n.Used = make(quantity.Vector, len(s.Resources))
	n.weigh()
	n.price(x, set)
	if n.cover = coverOf(offeringOf(&spec), x, using(s.Commitments, 1)); n.cover != nil {
		n.pay(n.cover)
	}
	return n
}

// size sets the node's room to the minimum of the types, and its capacity to that of the largest.
func (n *Node) size(pool *Pool, set bitset.Set) {
	first, rooms := true, pool.RoomsOf(n.Row).Possible(n.Row)
	for t := range set.All() {
		least := rooms.Least(t)
		if first {
			n.Usable, first = least, false
		}
		n.Usable = n.Usable.Min(least)
		n.Total = n.Total.Max(pool.Types.Total[t])
		n.Types = append(n.Types, pool.Types.Catalog.Types[t].Name)
		n.reservePorts(rooms.Ports(t))
	}
}

// price sets the prices of a node that may become any of the types, among the offerings that its row admits: the
// highest price, and the lowest with its type. An unavailable offering is the lowest only if none is available; ties
// are resolved by the name of the type.
func (n *Node) price(x *TypeIndex, set bitset.Set) {
	_, classes := x.Offered(n.Row)
	available := false
	for t := range set.All() {
		name := x.Catalog.Types[t].Name
		for _, i := range classes {
			c := &x.Classes[i]
			p := c.Price[t]
			if p == NoPrice {
				continue
			}
			n.Price = max(n.Price, p)
			has := c.Types.Has(t)
			switch order := cmp.Or(cmp.Compare(p, n.least.price), strings.Compare(name, n.least.kind)); {
			case available && !has:
			case n.least.kind == "" || has && !available || order < 0:
				n.least.kind, n.least.price, available = name, p, has
			}
		}
	}
	if n.least.kind == "" && len(n.Types) > 0 {
		n.least.kind = n.Types[0]
	}
}

// With returns the snapshot with additional nodes, which count for their pools; the receiver is unchanged.
func (s *Snapshot) With(nodes ...*Node) *Snapshot {
	if len(nodes) == 0 {
		return s
	}
	what := *s
	add := func(list []*Node, compare func(a, b *Node) int) []*Node {
		return merge(list, slices.Clone(nodes), func(*Node) bool { return false }, compare)
	}
	what.Nodes = add(s.Nodes, compareNodes)
	what.named = add(s.named, compareNames)
	what.claimed = add(s.claimed, compareClaims)
	what.Ledger, what.Commitments = s.Ledger.With(nodes...), using(s.Commitments, 1, nodes...)
	return &what
}
