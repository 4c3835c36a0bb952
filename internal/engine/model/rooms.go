package model

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Rooms is the room for pods on the nodes of one row, net of the daemons that these nodes run. A daemon runs where its
// selector holds, and labels are decided at different times: those of the pool and the type are fixed, the zone and the
// capacity type are those of the offering, and a label that the pool leaves open is decided by the pods. So the room is
// a function of the row, the type and the class of offerings. A daemon counts unless these labels exclude it.
//
// Representation: classes of offerings that no daemon tells apart share one Room. Usually there is one Room for all.
type Rooms struct {
	types *TypeIndex
	// of is the Room of each class that the row admits, nil for the others; rooms lists the different ones.
	of    []*Room
	rooms []*Room
	// keys are the labels of offerings that daemons name.
	keys []label.Key
}

// Room is the room on nodes of offerings that no daemon tells apart, by type.
type Room struct {
	// Net is what a node of the type can allocate, less the requests of its daemons. Daemons is the sum of these requests.
	Net, Daemons []quantity.Vector
	// ports are the host ports of the daemons; nil if none has any.
	ports [][]HostPort
	// atLeast[r] holds which types have at least a given amount of r, by Net.
	atLeast []suffixSets
}

// suffixSets holds, for ascending distinct amounts, the set of types that have at least that much.
type suffixSets struct {
	amounts []int64
	sets    []bitset.Set
}

// roomsOf is what nodes have in common whose rooms are computed.
type roomsOf struct {
	row     label.Row
	taints  []Taint
	daemons []*Daemon
	// shown are labels that the nodes get later.
	shown shown
}

// newRooms computes the rooms of the nodes, for the types of the set.
func newRooms(x *TypeIndex, nodes roomsOf, set bitset.Set) *Rooms {
	row := nodes.row
	nodes.daemons = slices.DeleteFunc(slices.Clone(nodes.daemons), func(d *Daemon) bool {
		_, no := Untolerated(nodes.taints, d.Tolerations)
		return no
	})
	daemons := nodes.daemons
	r := &Rooms{types: x, keys: x.offeringKeys(daemons), of: make([]*Room, len(x.Classes))}
	known := map[string]*Room{}
	for i := range x.Classes {
		if !x.Classes[i].Admits(x.space, row) {
			continue
		}
		pins := x.Classes[i].atomsOf(r.keys)
		if known[pins] == nil {
			at := slices.Clone(row)
			for _, k := range r.keys {
				if atom := x.Classes[i].atom(k); atom >= 0 {
					x.space.SetOnly(at, k, atom)
				}
			}
			nodes.row = at
			known[pins] = newRoom(x, nodes, set)
			r.rooms = append(r.rooms, known[pins])
		}
		r.of[i] = known[pins]
	}
	if len(r.rooms) == 0 {
		nodes.row = row
		r.rooms = append(r.rooms, newRoom(x, nodes, set))
	}
	return r
}

// offeringKeys returns the labels of offerings that some daemon names.
func (x *TypeIndex) offeringKeys(daemons []*Daemon) []label.Key {
	return slices.DeleteFunc(namedKeys(x.space, daemons), func(k label.Key) bool {
		return !slices.ContainsFunc(x.Classes, func(c OfferClass) bool { return c.atom(k) >= 0 })
	})
}

// namedKeys returns the labels by which some daemon selects nodes.
func namedKeys(space *label.Space, daemons []*Daemon) []label.Key {
	var keys []label.Key
	all := space.All()
	for k := label.Key(0); int(k) < space.Len(); k++ {
		if slices.ContainsFunc(daemons, func(d *Daemon) bool {
			return slices.ContainsFunc(d.Rows, func(row label.Row) bool { return !space.EqualKey(row, all, k) })
		}) {
			keys = append(keys, k)
		}
	}
	return keys
}

// atomsOf identifies the labels of the class for the keys.
func (c *OfferClass) atomsOf(keys []label.Key) string {
	var id []byte
	for _, k := range keys {
		id = binary.AppendVarint(id, int64(c.atom(k)))
	}
	return string(id)
}

// atom returns the atom that the class has for the key, or -1.
func (c *OfferClass) atom(key label.Key) int {
	at := slices.IndexFunc(c.atoms, func(a classAtom) bool { return a.key == key })
	if at < 0 {
		return -1
	}
	return c.atoms[at].atom
}

func newRoom(x *TypeIndex, nodes roomsOf, set bitset.Set) *Room {
	row, daemons := nodes.row, nodes.daemons
	r := &Room{Net: slices.Clone(x.Usable), Daemons: make([]quantity.Vector, x.Len())}
	if slices.ContainsFunc(daemons, func(d *Daemon) bool { return len(d.HostPorts) > 0 }) {
		r.ports = make([][]HostPort, x.Len())
	}
	of := make(label.Row, x.space.Words())
	for t := range set.All() {
		if !x.space.And(of, row, x.Rows[t]) {
			continue
		}
		nodes.shown.add(x.space, of, x.Catalog.Types[t].Name)
		for _, d := range daemons {
			if !d.selects(x.space, of) {
				continue
			}
			r.Daemons[t] = r.Daemons[t].Add(d.Requests)
			if len(d.HostPorts) > 0 {
				r.ports[t] = append(r.ports[t], d.HostPorts...)
			}
		}
		r.Net[t] = r.Net[t].Sub(r.Daemons[t])
	}
	return r
}

// index makes withAtLeast possible among the types of the set, for so many resources.
func (r *Rooms) index(resources int, among bitset.Set) {
	for _, room := range r.rooms {
		for i := range resources {
			room.atLeast = append(room.atLeast, newSuffixSets(room.Net, quantity.Resource(i), among))
		}
	}
}

// Of returns the room on nodes of the class of offerings, which the row admits.
func (r *Rooms) Of(class int) *Room { return r.of[class] }

// Differ reports whether daemons tell classes of offerings apart.
func (r *Rooms) Differ() bool { return len(r.rooms) > 1 }

// PortsFree reports whether no daemon on a node of the type uses one of the ports.
func (r *Room) PortsFree(t int, ports []HostPort) bool {
	if r.ports == nil {
		return true
	}
	return !slices.ContainsFunc(ports, func(port HostPort) bool { return slices.ContainsFunc(r.ports[t], port.Conflicts) })
}

// MorePorts reports whether the daemons on a node of type t use a host port that those on a node of type u in the other
// room do not use.
func (r *Room) MorePorts(t int, other *Room, u int) bool {
	return r.ports != nil && slices.ContainsFunc(r.ports[t], func(port HostPort) bool { return other.PortsFree(u, []HostPort{port}) })
}

// Possible returns the rooms that a node of the row may have, which the classes decide that the row admits.
func (r *Rooms) Possible(row label.Row) PossibleRooms {
	w := PossibleRooms{types: r.types, rooms: r.rooms}
	if !r.Differ() {
		return w
	}
	w.rooms, w.offered = nil, nil
	for i := range r.types.Classes {
		c := &r.types.Classes[i]
		if !c.Admits(r.types.space, row) {
			continue
		}
		at := slices.Index(w.rooms, r.of[i])
		if at < 0 {
			at = len(w.rooms)
			w.rooms, w.offered = append(w.rooms, r.of[i]), append(w.offered, bitset.New(r.types.Len()))
		}
		w.offered[at].OrWith(c.offered)
	}
	if len(w.rooms) == 0 {
		return PossibleRooms{types: r.types, rooms: r.rooms}
	}
	return w
}

// PossibleRooms is a list of rooms that a node may have: the cloud decides which.
type PossibleRooms struct {
	types *TypeIndex
	rooms []*Room
	// offered are, by room, the types that have an offering there, available or not; nil if each room may have all.
	offered []bitset.Set
}

// of returns the rooms that a node of the type may have.
func (w PossibleRooms) of(t int) []*Room {
	if w.offered == nil {
		return w.rooms
	}
	var rooms []*Room
	for i, room := range w.rooms {
		if w.offered[i].Has(t) {
			rooms = append(rooms, room)
		}
	}
	if len(rooms) == 0 {
		return w.rooms
	}
	return rooms
}

// WithAtLeast keeps in set the types that have at least need in each of their rooms. It returns a resource that leaves no
// type, or -1.
func (w PossibleRooms) WithAtLeast(set bitset.Set, need quantity.Vector) quantity.Resource {
	if len(w.rooms) == 1 {
		return w.rooms[0].withAtLeast(set, need)
	}
	last := quantity.Resource(-1)
	for t := range set.Clone().All() {
		for _, room := range w.of(t) {
			for r, n := range need {
				if n > 0 && room.Net[t].At(quantity.Resource(r)) < n {
					set.Remove(t)
					last = max(last, quantity.Resource(r))
					break
				}
			}
		}
	}
	if set.Empty() {
		return last
	}
	return -1
}

func (r *Room) withAtLeast(set bitset.Set, need quantity.Vector) quantity.Resource {
	for i, n := range need {
		if n <= 0 {
			continue
		}
		if i >= len(r.atLeast) {
			clear(set)
			return quantity.Resource(i)
		}
		s := &r.atLeast[i]
		at, _ := slices.BinarySearch(s.amounts, n)
		if at == len(s.amounts) {
			clear(set)
			return quantity.Resource(i)
		}
		set.AndWith(s.sets[at])
		if set.Empty() {
			return quantity.Resource(i)
		}
	}
	return -1
}

// Least returns the room that a node of the type has in any case.
func (w PossibleRooms) Least(t int) quantity.Vector {
	rooms := w.of(t)
	least := rooms[0].Net[t]
	for _, room := range rooms[1:] {
		least = least.Min(room.Net[t])
	}
	return least
}

// Most returns the greatest amount of the resource that a node of the type may have.
func (w PossibleRooms) Most(t int, resource quantity.Resource) int64 {
	rooms := w.of(t)
	most := rooms[0].Net[t].At(resource)
	for _, room := range rooms[1:] {
		most = max(most, room.Net[t].At(resource))
	}
	return most
}

// Daemons returns the sums of the requests of the daemons that a node of the type may run: the least and the greatest
// amount of each resource.
func (w PossibleRooms) Daemons(t int) (least, most quantity.Vector) {
	rooms := w.of(t)
	least, most = rooms[0].Daemons[t], rooms[0].Daemons[t]
	for _, room := range rooms[1:] {
		least, most = least.Min(room.Daemons[t]), most.Max(room.Daemons[t])
	}
	return least, most
}

// PortsFree reports whether no daemon uses one of the ports on a node of the type, whichever room it has.
func (w PossibleRooms) PortsFree(t int, ports []HostPort) bool {
	return len(ports) == 0 || !slices.ContainsFunc(w.of(t), func(room *Room) bool { return !room.PortsFree(t, ports) })
}

// SomePortsFree reports whether there is a room of the type in which no daemon uses one of the ports.
func (w PossibleRooms) SomePortsFree(t int, ports []HostPort) bool {
	return slices.ContainsFunc(w.of(t), func(room *Room) bool { return room.PortsFree(t, ports) })
}

// Ports returns the host ports that daemons may use on a node of the type.
func (w PossibleRooms) Ports(t int) []HostPort {
	var ports []HostPort
	for _, room := range w.of(t) {
		if room.ports != nil {
			ports = append(ports, room.ports[t]...)
		}
	}
	return ports
}

// Narrow returns the row of a node of the type and the class, narrowed to the offerings whose room is sufficient. The
// room of the class itself has to be. The result is the row itself if every room that the node may have is sufficient.
// Of the labels that daemons name, as many values as possible stay open.
func (r *Rooms) Narrow(row label.Row, t, class int, sufficient func(*Room) bool) label.Row {
	sufficientRow := func(row label.Row) bool {
		return !slices.ContainsFunc(r.Possible(row).of(t), func(room *Room) bool { return !sufficient(room) })
	}
	if !r.Differ() || sufficientRow(row) {
		return row
	}
	narrow, space, own := slices.Clone(row), r.types.space, &r.types.Classes[class]
	for _, k := range r.keys {
		from, to := space.Span(k)
		for i := range r.types.Classes {
			if at := r.types.Classes[i].atom(k); at >= 0 && at != own.atom(k) && r.of[i] != nil && r.differOnly(i, class, k) && !sufficient(r.of[i]) {
				bitset.Set(narrow[from:to]).Remove(at)
			}
		}
	}
	for i := 0; i < len(r.keys) && !sufficientRow(narrow); i++ {
		if at := own.atom(r.keys[i]); at >= 0 {
			space.SetOnly(narrow, r.keys[i], at)
		}
	}
	return narrow
}

// differOnly reports whether the classes differ in no label that daemons name but that of the key.
func (r *Rooms) differOnly(a, b int, key label.Key) bool {
	for _, k := range r.keys {
		if k != key && r.types.Classes[a].atom(k) != r.types.Classes[b].atom(k) {
			return false
		}
	}
	return true
}

func newSuffixSets(net []quantity.Vector, r quantity.Resource, among bitset.Set) suffixSets {
	order := slices.Collect(among.All())
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(net[b].At(r), net[a].At(r)), cmp.Compare(a, b))
	})
	var s suffixSets
	set := bitset.New(len(net))
	for i, t := range order {
		set.Add(t)
		if i+1 == len(order) || net[order[i+1]].At(r) != net[t].At(r) {
			s.amounts = append(s.amounts, net[t].At(r))
			s.sets = append(s.sets, set.Clone())
		}
	}
	slices.Reverse(s.amounts)
	slices.Reverse(s.sets)
	return s
}
