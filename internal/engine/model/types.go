package model

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TypeIndex finds the instance types with given properties in one catalog and one label space.
//
// Representation: types are numbered as in the catalog. Each label key that some type constrains has a posting list
// from atom to the set of types that may carry it, so that narrowing a key is an OR over its atoms and an AND.
// Offerings are grouped into classes: all offerings of one zone, capacity type, reservation and further requirements
// are one class, with the set of types that have it available and their prices. A row admits a handful of classes;
// the available types are the OR of their sets. Cost: words of the type set times atoms of the narrowed key.
type TypeIndex struct {
	Catalog *Catalog
	Rows    []label.Row
	Usable  []quantity.Vector
	Total   []quantity.Vector
	Classes []OfferClass
	// postings[key][atom]; nil for a key that no type constrains.
	postings [][]bitset.Set
	space    *label.Space
	byName   map[string]int
	// shifted are the zones that are being avoided.
	shifted []string
}

// OfferClass is one zone, capacity type, reservation and set of further labels, over all types.
type OfferClass struct {
	Zone          string
	CapacityType  string
	ReservationID string
	// Units, Limit and PerPrice are those of the offerings.
	Units, Limit int64
	PerPrice     int64
	// Types for which the offering is available.
	Types bitset.Set
	// Price by type, nano-USD per hour; NoPrice if the type has no such offering (available or not).
	Price []int64
	// offered are the types with a price.
	offered bitset.Set
	atoms   []classAtom
	// further are the labels of the offerings beside zone and capacity type.
	further []label.Requirement
}

// NoPrice represents an offering that does not exist.
const NoPrice = math.MaxInt64

type classAtom struct {
	key  label.Key
	atom int
}

// Len returns the number of types.
func (x *TypeIndex) Len() int { return len(x.Rows) }

// Admits reports whether the class is compatible with the row.
func (c *OfferClass) Admits(space *label.Space, row label.Row) bool {
	for _, a := range c.atoms {
		if !space.HasAtom(row, a.key, a.atom) {
			return false
		}
	}
	return true
}

// Pin narrows the row to the class.
func (c *OfferClass) Pin(space *label.Space, row label.Row) {
	for _, a := range c.atoms {
		space.SetOnly(row, a.key, a.atom)
	}
}

// PinKey narrows the row to the class in some keys only.
func (c *OfferClass) PinKey(space *label.Space, row label.Row, keys ...string) {
	for _, a := range c.atoms {
		if slices.Contains(keys, space.Name(a.key)) {
			space.SetOnly(row, a.key, a.atom)
		}
	}
}

// Hull returns the row narrowed to what a node of one of the types can be: the labels of the types, and those of
// their offerings that the row admits, available or not. It returns the row unchanged if the result would be empty.
func (x *TypeIndex) Hull(row label.Row, set bitset.Set) label.Row {
	union := make(label.Row, len(row))
	for t := range set.All() {
		for w, bits := range x.Rows[t] {
			union[w] |= bits
		}
	}
	pinned := map[label.Key]int{}
	offered := make(label.Row, len(row))
	classes := 0
	for i := range x.Classes {
		c := &x.Classes[i]
		if !c.Admits(x.space, row) || !c.offered.Intersects(set) {
			continue
		}
		classes++
		for _, a := range c.atoms {
			setAtom(x.space, offered, a.key, a.atom)
			pinned[a.key]++
		}
	}
	for key, n := range pinned {
		if n == classes {
			from, to := x.space.Span(key)
			copy(union[from:to], offered[from:to])
		}
	}
	hull := make(label.Row, len(row))
	if !x.space.And(hull, row, union) {
		return row
	}
	return hull
}

// Narrow removes from set the types without any value that the row allows on key k, and reports whether any type is
// left.
func (x *TypeIndex) Narrow(set bitset.Set, row label.Row, k label.Key) bool {
	posting := x.postings[k]
	if posting == nil {
		return !set.Empty()
	}
	any := false
	for w := range set {
		var keep uint64
		for atom, types := range posting {
			if types != nil && x.space.HasAtom(row, k, atom) {
				keep |= types[w]
			}
		}
		set[w] &= keep
		any = any || set[w] != 0
	}
	return any
}

// Having returns the types of the set that may have the atom of key k.
func (x *TypeIndex) Having(set bitset.Set, k label.Key, atom int) bitset.Set {
	posting := x.postings[k]
	if posting == nil {
		return set
	}
	kept := bitset.New(x.Len())
	if posting[atom] != nil {
		bitset.And(kept, set, posting[atom])
	}
	return kept
}

// KeepAtoms removes from the atoms of key k those that no type of the set may have.
func (x *TypeIndex) KeepAtoms(atoms, set bitset.Set, k label.Key) {
	if x.postings[k] == nil {
		return
	}
	from, to := x.space.Span(k)
	union := make(bitset.Set, to-from)
	for t := range set.All() {
		union.OrWith(bitset.Set(x.Rows[t][from:to]))
	}
	atoms.AndWith(union)
}

// Keep returns the classes of the list that permit the atom of key k.
func (x *TypeIndex) Keep(classes []int, k label.Key, atom int) []int {
	denies := func(i int) bool {
		return slices.ContainsFunc(x.Classes[i].atoms, func(a classAtom) bool { return a.key == k && a.atom != atom })
	}
	if !slices.ContainsFunc(classes, denies) {
		return classes
	}
	return slices.DeleteFunc(slices.Clone(classes), denies)
}

// Compatible returns the types whose labels are compatible with the row. It ignores offerings.
func (x *TypeIndex) Compatible(row label.Row) bitset.Set {
	set := bitset.Full(x.Len())
	for k := range x.postings {
		x.Narrow(set, row, label.Key(k))
	}
	return set
}

// Offered returns the types that have an available offering compatible with the row, and the offering classes that
// are compatible with the row.
func (x *TypeIndex) Offered(row label.Row) (set bitset.Set, classes []int) {
	set = bitset.New(x.Len())
	for i := range x.Classes {
		if c := &x.Classes[i]; c.Admits(x.space, row) {
			set.OrWith(c.Types)
			classes = append(classes, i)
		}
	}
	return set, classes
}

// Cheapest returns the cheapest available offering of a type among the classes: its class, or -1.
func (x *TypeIndex) Cheapest(t int, classes []int) int {
	best := -1
	for _, i := range classes {
		if x.Classes[i].Types.Has(t) && (best < 0 || x.Classes[i].Price[t] < x.Classes[best].Price[t]) {
			best = i
		}
	}
	return best
}

// Largest returns, per resource, the most that one of the types has, and if priced is set the highest list price, nano-USD
// per hour, of one of them in the offerings that the row admits.
func (x *TypeIndex) Largest(row label.Row, types bitset.Set, priced bool) (total quantity.Vector, price int64) {
	for t := range types.All() {
		total = total.Raise(x.Total[t])
	}
	if !priced {
		return total, 0
	}
	_, classes := x.Offered(row)
	for t := range types.All() {
		for _, i := range classes {
			if x.Classes[i].Price[t] != NoPrice {
				price = max(price, x.ListPrice(t, i))
			}
		}
	}
	return total, price
}

// named returns the types with the names.
func (x *TypeIndex) named(names []string) bitset.Set {
	set := bitset.New(x.Len())
	for _, name := range names {
		if t, known := x.Lookup(name); known {
			set.Add(t)
		}
	}
	return set
}

// Lookup returns the number of the type of that name.
func (x *TypeIndex) Lookup(name string) (int, bool) {
	at, known := x.byName[name]
	return at, known
}

// Shifted reports whether the zone is being avoided as a whole (Offering.ZoneShifted).
func (x *TypeIndex) Shifted(zone string) bool { return slices.Contains(x.shifted, zone) }

// PriceOf returns the price of the offering with exactly this zone and capacity type, available or not, or 0.
func (x *TypeIndex) PriceOf(t int, zone, capacityType string) int64 {
	for i := range x.Classes {
		c := &x.Classes[i]
		if c.Zone == zone && c.CapacityType == capacityType && c.Price[t] != NoPrice {
			return c.Price[t]
		}
	}
	return 0
}

// ListPrice returns the price of a type in the class, nano-USD per hour; in one of a commitment, what the type costs there
// without it. Limits count this price: whether a commitment covers a node is known once it exists.
func (x *TypeIndex) ListPrice(t, class int) int64 {
	c := &x.Classes[class]
	if c.Units == 0 {
		return c.Price[t]
	}
	return x.PriceOf(t, c.Zone, c.CapacityType)
}

func newTypeIndex(in *interner, catalog *Catalog) *TypeIndex {
	space := in.space
	x := &TypeIndex{Catalog: catalog, space: space, postings: make([][]bitset.Set, space.Len()), byName: map[string]int{}}
	for i := range catalog.Types {
		t := &catalog.Types[i]
		if _, known := x.byName[t.Name]; !known {
			x.byName[t.Name] = i
		}
		x.Rows = append(x.Rows, encodeLabels(space, t.Requirements))
		x.Usable = append(x.Usable, in.capacity(t.Allocatable))
		x.Total = append(x.Total, in.resources.Vector(t.Capacity))
	}
	x.post()
	x.classify()
	return x
}

// encodeLabels returns the row of a type's own labels. Its values need not be mentioned by any requirement:
// unmentioned values are represented by the atom "other" or by their interval.
func encodeLabels(space *label.Space, reqs []label.Requirement) label.Row {
	row := space.All()
	for _, r := range reqs {
		k, known := space.Lookup(r.Key)
		if !known {
			continue
		}
		switch r.Operator {
		case label.In:
			clearKey(space, row, k)
			for _, v := range r.Values {
				setAtom(space, row, k, space.Atom(k, v))
			}
		case label.DoesNotExist:
			space.SetOnly(row, k, space.Absent(k))
		}
	}
	return row
}

func clearKey(space *label.Space, row label.Row, k label.Key) {
	from, to := space.Span(k)
	clear(row[from:to])
}

func setAtom(space *label.Space, row label.Row, k label.Key, atom int) {
	from, _ := space.Span(k)
	row[from+atom/64] |= 1 << (atom % 64)
}

func (x *TypeIndex) post() {
	all := x.space.All()
	for k := label.Key(0); int(k) < x.space.Len(); k++ {
		constrained := func(row label.Row) bool { return !x.space.EqualKey(row, all, k) }
		if slices.ContainsFunc(x.Rows, constrained) {
			x.postKey(k)
		}
	}
}

func (x *TypeIndex) postKey(k label.Key) {
	posting := make([]bitset.Set, x.space.Atoms(k))
	for t, row := range x.Rows {
		for atom := range posting {
			if !x.space.HasAtom(row, k, atom) {
				continue
			}
			if posting[atom] == nil {
				posting[atom] = bitset.New(len(x.Rows))
			}
			posting[atom].Add(t)
		}
	}
	x.postings[k] = posting
}

func (x *TypeIndex) classify() {
	byIdentity := map[string]int{}
	for t := range x.Catalog.Types {
		for _, o := range x.Catalog.Types[t].Offerings {
			if o.ZoneShifted && !x.Shifted(o.Zone) {
				x.shifted = append(x.shifted, o.Zone)
			}
			identity := o.Zone + "\x00" + o.CapacityType + "\x00" + o.ReservationID
			for _, r := range o.Requirements {
				identity += "\x00" + r.String()
			}
			if o.Units > 0 {
				identity += "\x00" + strconv.FormatInt(o.Units, 10)
			}
			i, known := byIdentity[identity]
			if !known {
				i = len(x.Classes)
				byIdentity[identity] = i
				x.Classes = append(x.Classes, x.newClass(o))
			}
			c := &x.Classes[i]
			c.Price[t] = min(c.Price[t], o.Price)
			c.offered.Add(t)
			if o.Available {
				c.Types.Add(t)
			}
		}
	}
	sort.SliceStable(x.Classes, func(i, j int) bool { return x.Classes[i].before(&x.Classes[j]) })
}

func (c *OfferClass) before(d *OfferClass) bool {
	if c.Zone != d.Zone {
		return c.Zone < d.Zone
	}
	if c.CapacityType != d.CapacityType {
		return c.CapacityType < d.CapacityType
	}
	if c.ReservationID != d.ReservationID {
		return c.ReservationID < d.ReservationID
	}
	return slices.CompareFunc(c.further, d.further, func(a, b label.Requirement) int {
		return strings.Compare(a.String(), b.String())
	}) < 0
}

func (x *TypeIndex) newClass(o Offering) OfferClass {
	c := OfferClass{Zone: o.Zone, CapacityType: o.CapacityType, ReservationID: o.ReservationID,
		Units: o.Units, Limit: o.Limit, PerPrice: o.PerPrice, Types: bitset.New(x.Len()), offered: bitset.New(x.Len()),
		Price: make([]int64, x.Len()), further: o.Requirements}
	for t := range c.Price {
		c.Price[t] = NoPrice
	}
	pin := func(key, value string) {
		if k, known := x.space.Lookup(key); known {
			c.atoms = append(c.atoms, classAtom{k, x.space.Atom(k, value)})
		}
	}
	pin(LabelZone, o.Zone)
	pin(LabelCapacityType, o.CapacityType)
	for _, r := range o.Requirements {
		k, known := x.space.Lookup(r.Key)
		switch {
		case !known:
		case r.Operator == label.In && len(r.Values) == 1:
			pin(r.Key, r.Values[0])
		case r.Operator == label.DoesNotExist:
			c.atoms = append(c.atoms, classAtom{k, x.space.Absent(k)})
		}
	}
	return c
}
