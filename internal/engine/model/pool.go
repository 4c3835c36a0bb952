package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Pool is an encoded pool with its types.
type Pool struct {
	*PoolSpec
	// Start is the row that a new bin of the pool starts with. If the pool's requirements contradict each other,
	// Valid is false and Contradiction is the key.
	Start         label.Row
	Valid         bool
	Contradiction label.Key
	// Types is the index of the catalog; nil if the pool has none.
	Types *TypeIndex
	// Eligible are the types that satisfy the pool's requirements, whether or not they are available now.
	Eligible bitset.Set
	// Rooms is the room for pods on nodes of the row Start.
	Rooms *Rooms
	// daemons are those that may run on nodes of the pool. decided are the labels that they name and that neither the
	// pool nor the type nor the offering decides, but the pods on a node.
	daemons []*Daemon
	decided []label.Key
	// resources is how many resources there are.
	resources int
	// Used is the capacity of the pool's nodes that are not being deleted; Nodes is their number.
	Used  quantity.Vector
	Nodes int
	// Limit per resource, NoLimit for none; NodeLimit likewise.
	Limit     []int64
	NodeLimit int64
}

// NoLimit represents a limit that is not set.
const NoLimit = -1

// LimitOf returns the limit of a resource, NoLimit if there is none.
func (p *Pool) LimitOf(r quantity.Resource) int64 {
	if int(r) < len(p.Limit) {
		return p.Limit[r]
	}
	return NoLimit
}

func comparePools(a, b *Pool) int {
	return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(b.Name, a.Name))
}

// encodePool encodes everything except the usage, which changes with every node.
func encodePool(b *Builder, spec *PoolSpec, types *TypeIndex, daemons []*Daemon) *Pool {
	p := &Pool{PoolSpec: spec, Types: types, NodeLimit: NoLimit}
	p.setLimits(b.resources)
	wellKnown := func(string) bool { return false }
	if spec.Catalog != nil {
		wellKnown = func(key string) bool { return spec.Catalog.WellKnown[key] }
	}
	p.Start, p.Contradiction, p.Valid = b.space.Template(wellKnown, spec.Requirements)
	completeRow(b.space, p.Start)
	if !p.Valid || types == nil {
		return p
	}
	p.Eligible = types.Compatible(p.Start)
	p.daemons, p.resources = daemons, b.resources.Len()
	p.Rooms = p.roomsOf(p.Start)
	for k := label.Key(0); int(k) < b.space.Len(); k++ {
		if nameKey(b.space, daemons, k) && p.leavesOpen(k) {
			p.decided = append(p.decided, k)
		}
	}
	return p
}

func (p *Pool) setLimits(resources *quantity.Table) {
	for _, a := range p.Limits {
		if a.Name == ResourceNodes {
			p.NodeLimit = a.Value
			continue
		}
		r := resources.Intern(a.Name)
		for len(p.Limit) <= int(r) {
			p.Limit = append(p.Limit, NoLimit)
		}
		p.Limit[r] = a.Value
	}
}

// leavesOpen reports whether nodes of the pool may have several values of the label, whatever their type and offering.
func (p *Pool) leavesOpen(key label.Key) bool {
	space := p.Types.space
	if !slices.ContainsFunc(p.Types.Classes, func(c OfferClass) bool { return c.atom(key) < 0 }) {
		return false
	}
	from, to := space.Span(key)
	both := make(bitset.Set, to-from)
	for t := range p.Eligible.All() {
		bitset.And(both, bitset.Set(p.Start[from:to]), bitset.Set(p.Types.Rows[t][from:to]))
		if both.Count() > 1 {
			return true
		}
	}
	return false
}

// Decided returns the part of a row, within Start, that decides which daemons run on a node of the pool beyond pool,
// type and offering. It is empty for most pools.
func (p *Pool) Decided(row label.Row) label.Row {
	var part label.Row
	for _, k := range p.decided {
		from, to := p.Types.space.Span(k)
		part = append(part, row[from:to]...)
	}
	return part
}

// mostDecisions is the number of rows up to which Decisions names them all.
const mostDecisions = 16

// Decisions returns the row and, if it leaves labels open that decide which daemons run, the rows in which each of them
// has one of its values: the node may then have room that is not certain while the label is open. If there are more
// than a few such rows, it returns the row alone.
func (p *Pool) Decisions(row label.Row) []label.Row {
	rows := []label.Row{row}
	space := p.Types.space
	for _, k := range p.decided {
		if space.Only(row, k) >= 0 {
			continue
		}
		var decided []label.Row
		for _, one := range rows {
			for atom := range space.Atoms(k) {
				if space.HasAtom(row, k, atom) {
					fixed := slices.Clone(one)
					space.SetOnly(fixed, k, atom)
					decided = append(decided, fixed)
				}
			}
		}
		if rows = decided; len(rows) > mostDecisions {
			return []label.Row{row}
		}
	}
	if len(rows) == 1 {
		return rows
	}
	return append([]label.Row{row}, rows...)
}

// RoomsOf returns the room for pods on nodes of a row within Start. Rows with equal Decided have equal rooms.
func (p *Pool) RoomsOf(row label.Row) *Rooms {
	if slices.Equal(p.Decided(row), p.Decided(p.Start)) {
		return p.Rooms
	}
	of := slices.Clone(p.Start)
	for _, k := range p.decided {
		from, to := p.Types.space.Span(k)
		copy(of[from:to], row[from:to])
	}
	return p.roomsOf(of)
}

func (p *Pool) roomsOf(row label.Row) *Rooms {
	rooms := newRooms(p.Types, row, p.Taints, p.daemons, p.Eligible)
	rooms.index(p.resources, p.Eligible)
	return rooms
}

// MostRoom returns what a node of the type and the class has for pods at most: it counts only the daemons that run on
// every such node, whatever its pods decide.
func (p *Pool) MostRoom(t, class int) quantity.Vector {
	if len(p.decided) == 0 {
		return p.Rooms.Of(class).Net[t]
	}
	space, most := p.Types.space, p.Types.Usable[t]
	row := make(label.Row, space.Words())
	if !space.And(row, p.Start, p.Types.Rows[t]) {
		return most
	}
	p.Types.Classes[class].Pin(space, row)
	for _, d := range p.daemons {
		_, no := Untolerated(p.Taints, d.Tolerations)
		if !no && slices.ContainsFunc(d.Rows, func(r label.Row) bool { return space.Contains(r, row) }) {
			most = most.Sub(d.Requests)
		}
	}
	return most
}
