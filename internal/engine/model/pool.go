package model

import (
	"cmp"
	"encoding/binary"
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
	// deciding are the rows of daemons that name one of the decided labels.
	deciding []label.Row
	// shown are labels that new nodes will have, for daemons.
	shown shown
	// resources is how many resources there are.
	resources int
}

// NoLimit represents a limit that is not set.
const NoLimit = -1

func comparePools(a, b *Pool) int {
	return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(b.Name, a.Name))
}

// poolEncoder encodes pools. Pools whose nodes have equal room share their rooms.
type poolEncoder struct {
	shared  *interner
	daemons []*Daemon
	rooms   map[roomsKey]*Rooms
}

func (e *poolEncoder) encode(record *poolRecord, types *TypeIndex) *Pool {
	spec := record.spec
	p := &Pool{PoolSpec: spec, Types: types, shown: record.shown}
	wellKnown := func(string) bool { return false }
	if spec.Catalog != nil {
		wellKnown = func(key string) bool { return spec.Catalog.WellKnown[key] }
	}
	p.Start, p.Contradiction, p.Valid = e.shared.space.Template(wellKnown, spec.Requirements)
	completeRow(e.shared.space, p.Start)
	if !p.Valid || types == nil {
		return p
	}
	p.Eligible = types.Compatible(p.Start)
	p.daemons, p.resources = e.daemons, e.shared.resources.Len()
	key := e.roomsKey(p)
	if e.rooms[key] == nil {
		e.rooms[key] = p.roomsOf(p.Start)
	}
	p.Rooms = e.rooms[key]
	p.decided = slices.DeleteFunc(namedKeys(e.shared.space, e.daemons), func(k label.Key) bool { return !p.leavesOpen(k) })
	p.rowsThatDecide(e.daemons)
	return p
}

// roomsKey identifies the pools of one snapshot that have equal rooms: with the same daemons, types and classes of
// offerings, and with the same values of the labels that the daemons name. So the taints of idle pools and the names of
// pools usually make no difference, and many pools cost little more than a few.
type roomsKey struct {
	types *TypeIndex
	of    string
}

func (e *poolEncoder) roomsKey(p *Pool) roomsKey {
	running, admitted := bitset.New(len(e.daemons)), bitset.New(len(p.Types.Classes))
	var daemons []*Daemon
	for i, d := range e.daemons {
		if _, no := Untolerated(p.Taints, d.Tolerations); !no {
			running.Add(i)
			daemons = append(daemons, d)
		}
	}
	for i := range p.Types.Classes {
		if p.Types.Classes[i].Admits(e.shared.space, p.Start) {
			admitted.Add(i)
		}
	}
	words := slices.Concat(bitset.Set{uint64(p.resources)}, running, admitted, p.Eligible)
	for _, k := range namedKeys(e.shared.space, daemons) {
		from, to := e.shared.space.Span(k)
		words = append(words, p.Start[from:to]...)
	}
	key := make([]byte, 0, 8*len(words))
	for _, w := range words {
		key = binary.LittleEndian.AppendUint64(key, w)
	}
	return roomsKey{p.Types, string(key) + p.shown.id()}
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

// rowsThatDecide lists the rows of the daemons that name a decided label.
func (p *Pool) rowsThatDecide(daemons []*Daemon) {
	if len(p.decided) == 0 {
		return
	}
	space, all := p.Types.space, p.Types.space.All()
	for _, d := range daemons {
		if _, no := Untolerated(p.Taints, d.Tolerations); no {
			continue
		}
		for _, row := range d.Rows {
			if slices.ContainsFunc(p.decided, func(k label.Key) bool { return !space.EqualKey(row, all, k) }) {
				p.deciding = append(p.deciding, row)
			}
		}
	}
}

// Decided identifies the daemons that a row, within Start, excludes by labels that the pods on a node decide: rows with
// the same result have the same rooms. It is empty for most pools.
func (p *Pool) Decided(row label.Row) bitset.Set {
	if len(p.decided) == 0 {
		return nil
	}
	excluded := bitset.New(len(p.deciding))
	for i, r := range p.deciding {
		if slices.ContainsFunc(p.decided, func(k label.Key) bool { return p.disjoint(r, row, k) }) {
			excluded.Add(i)
		}
	}
	return excluded
}

func (p *Pool) disjoint(a, b label.Row, k label.Key) bool {
	from, to := p.Types.space.Span(k)
	return !bitset.Set(a[from:to]).Intersects(bitset.Set(b[from:to]))
}

// mostDecisions is the number of rows up to which Decisions names them all.
const mostDecisions = 16

// Decisions returns the row and, if it leaves labels open that decide which daemons run, its parts in which these are
// decided: the node may have room there that is not certain while the label is open. If there are more than a few such
// parts, it returns the row alone.
func (p *Pool) Decisions(row label.Row) []label.Row {
	parts := []label.Row{row}
	for _, k := range p.decided {
		var finer []label.Row
		for _, part := range parts {
			finer = append(finer, p.partsBy(part, k)...)
		}
		if parts = finer; len(parts) > mostDecisions {
			return []label.Row{row}
		}
	}
	if len(parts) == 1 {
		return parts
	}
	return append([]label.Row{row}, parts...)
}

// partsBy divides the row by the values of the label that no daemon tells apart. It does not if requirements cannot
// describe the parts: the claim would leave the label open.
func (p *Pool) partsBy(row label.Row, k label.Key) []label.Row {
	space := p.Types.space
	from, to := space.Span(k)
	var parts []label.Row
	var known []bitset.Set
	for atom := range space.Atoms(k) {
		if !space.HasAtom(row, k, atom) {
			continue
		}
		excluded := bitset.New(len(p.deciding))
		for i, r := range p.deciding {
			if !space.HasAtom(r, k, atom) {
				excluded.Add(i)
			}
		}
		at := slices.IndexFunc(known, excluded.Equal)
		if at < 0 {
			at = len(known)
			part := slices.Clone(row)
			clear(part[from:to])
			known, parts = append(known, excluded), append(parts, part)
		}
		bitset.Set(parts[at][from:to]).Add(atom)
	}
	if slices.ContainsFunc(parts, func(part label.Row) bool { return !space.Describable(part, k) }) {
		return []label.Row{row}
	}
	return parts
}

// RoomsOf returns the room for pods on nodes of a row within Start. Rows with equal Decided have equal rooms.
func (p *Pool) RoomsOf(row label.Row) *Rooms {
	if decided := p.Decided(row); decided.Equal(p.Decided(p.Start)) {
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
	rooms := newRooms(p.Types, roomsOf{row, p.Taints, p.daemons, p.shown}, p.Eligible)
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
