package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// Commitments: a part of the fleet costs less than the list price, up to an amount that is committed to the cloud (Savings
// Plans, reserved instances, a discount of a contract). An offering that a commitment covers is in the catalog twice: at
// its list price, and at that of the commitment, as a reservation whose nodes take more or fewer of its units. A planned
// node is one or the other by FieldCommitment, which no pod and no node has.
//
// Existing machines use commitments in the order of their creation, whatever the order in which they are added: a younger
// machine never changes the price of an older one. The last one may be covered in part. A machine that is being deleted
// uses none, as it counts for no limit.

// FieldCommitment is a key of the label space, not of any object: the commitment that a planned node is bought with.
const FieldCommitment = "field:commitment"

const commitmentPrefix = "commitment/"

// CommitmentID returns the ReservationID of the offerings of a commitment. Commitments are used by rank, which has at most
// four digits.
func CommitmentID(rank int, name string) string {
	const digits = "0123456789"
	text := []byte(commitmentPrefix + "0000/")
	for at := len(commitmentPrefix) + 3; at >= len(commitmentPrefix); at-- {
		text[at] = digits[rank%10]
		rank /= 10
	}
	return string(text) + name
}

// CommitmentName returns the name of the commitment with the ID, and false for the ID of a reservation.
func CommitmentName(id string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(id, commitmentPrefix)
	if !ok || len(rest) < 5 {
		return "", false
	}
	return rest[5:], true
}

// Commitment is how much of a commitment the machines of a snapshot use.
type Commitment struct {
	// ID is the ReservationID of its offerings.
	ID string
	// PerPrice says that the units are nano-USD per hour, at the price at which the commitment is used up. They are
	// millicores otherwise.
	PerPrice bool
	// Limit and Used are in units.
	Limit, Used int64
	// Machines is how many machines use it.
	Machines int
}

// Left returns what is not used.
func (c *Commitment) Left() int64 { return max(0, c.Limit-c.Used) }

// cover is what a machine pays.
type cover struct {
	kind  string
	price int64
	// uses are the units that it takes, by ID.
	uses map[string]int64
}

func (c *cover) equal(d *cover) bool {
	if c == nil || d == nil {
		return c == d
	}
	return c.price == d.price && maps.Equal(c.uses, d.uses)
}

// NodeUnits returns how many units of the class's commitment a machine of the type takes.
func (c *OfferClass) NodeUnits(t int) int64 {
	if c.PerPrice > 0 {
		return c.Price[t] * c.PerPrice
	}
	return c.Units
}

// UnitsOf returns how many units of the reservation or commitment a node of the type takes.
func (x *TypeIndex) UnitsOf(id, typeName string) int64 {
	t, known := x.Lookup(typeName)
	for i := range x.Classes {
		if c := &x.Classes[i]; known && c.ReservationID == id && c.Price[t] != NoPrice {
			return max(1, c.Units)
		}
	}
	return 0
}

// freezeCommitments assigns the machines to the commitments, and marks those as dirty whose price changes.
func (f *freezer) freezeCommitments(s *Snapshot) {
	before := f.covers
	f.covers, s.Commitments = nil, f.commitments()
	if len(s.Commitments) > 0 {
		f.covers = f.cover(s.Commitments)
	}
	if len(before)+len(f.covers) == 0 {
		return
	}
	for name, n := range f.from.nodes {
		if !before[name].equal(f.covers[name]) && n.frozen != nil {
			f.dirtyNodes[name] = true
		}
	}
}

// commitments returns those of all catalogs, by ID, with nothing used.
func (f *freezer) commitments() []*Commitment {
	byID := map[string]*Commitment{}
	for _, x := range f.offered {
		for i := range x.Classes {
			if c := &x.Classes[i]; c.Units > 0 && byID[c.ReservationID] == nil {
				byID[c.ReservationID] = &Commitment{ID: c.ReservationID, PerPrice: c.PerPrice > 0, Limit: c.Limit}
			}
		}
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b *Commitment) int { return strings.Compare(a.ID, b.ID) })
}

// cover returns what each machine pays that commitments cover.
func (f *freezer) cover(commitments []*Commitment) map[string]*cover {
	records := slices.SortedFunc(maps.Values(f.from.nodes), func(a, b *nodeRecord) int {
		return cmp.Or(a.spec.Created.Compare(b.spec.Created), strings.Compare(a.spec.Name, b.spec.Name))
	})
	covers := map[string]*cover{}
	for _, n := range records {
		pool := f.from.pools[n.spec.Pool]
		if n.spec.Deleting || n.spec.Claim == "" || pool == nil || pool.frozen == nil || pool.frozen.Types == nil {
			continue
		}
		if c := coverOf(offeringOf(n.spec), pool.frozen.Types, commitments); c != nil {
			covers[n.spec.Name] = c
		}
	}
	return covers
}

// coverOf takes what a machine of one of the offerings needs from the commitments; nil if none covers it.
func coverOf(at zonalOfferings, x *TypeIndex, commitments []*Commitment) *cover {
	t, known := x.Lookup(at.instanceType)
	if !known {
		return nil
	}
	list, uses, rest := int64(0), map[string]int64{}, 1.0
	paid := 0.0
	for i := range x.Classes {
		c := &x.Classes[i]
		if c.CapacityType != at.capacityType || len(at.zones) > 0 && !slices.Contains(at.zones, c.Zone) || c.Price[t] == NoPrice {
			continue
		}
		if c.Units == 0 {
			list = max(list, c.Price[t])
			continue
		}
		k := slices.IndexFunc(commitments, func(m *Commitment) bool { return m.ID == c.ReservationID })
		need := int64(float64(rest * float64(c.NodeUnits(t))))
		took := min(need, commitments[k].Left())
		if took <= 0 || uses[c.ReservationID] > 0 { // of several zones, the first one counts
			continue
		}
		commitments[k].Used += took
		commitments[k].Machines++
		uses[c.ReservationID] = took
		share := float64(rest * float64(float64(took)/float64(need)))
		paid, rest = paid+float64(share*float64(c.Price[t])), rest-share
	}
	if len(uses) == 0 {
		return nil
	}
	return &cover{at.instanceType, int64(paid + float64(max(0, rest)*float64(list)) + 0.5), uses}
}

// zonalOfferings are the offerings of a type in one of the zones. No zones are all.
type zonalOfferings struct {
	instanceType, capacityType string
	zones                      []string
}

// offeringOf returns what the machine is; of a claim in flight, what is cheapest for it, if it is bought in one capacity
// type.
func offeringOf(spec *NodeSpec) zonalOfferings {
	if spec.Stage != Launching {
		at := zonalOfferings{instanceType: spec.Labels[LabelType], capacityType: spec.Labels[LabelCapacityType]}
		if zone := spec.Labels[LabelZone]; zone != "" {
			at.zones = []string{zone}
		}
		return at
	}
	var at zonalOfferings
	for _, r := range spec.Requirements {
		switch {
		case r.Operator != label.In || len(r.Values) == 0:
		case r.Key == LabelType:
			at.instanceType = r.Values[0]
		case r.Key == LabelCapacityType && len(r.Values) == 1:
			at.capacityType = r.Values[0]
		case r.Key == LabelZone:
			at.zones = r.Values
		}
	}
	return at
}

// Uses returns the units of commitments that the machine takes, by ID.
func (n *Node) Uses() map[string]int64 {
	if n.cover == nil {
		return nil
	}
	return n.cover.uses
}

// using returns a copy of the commitments with the units of the nodes added (+1) or given back (-1).
func using(list []*Commitment, sign int64, nodes ...*Node) []*Commitment {
	if len(list) == 0 {
		return nil
	}
	own := make([]*Commitment, len(list))
	for i, c := range list {
		changed := *c
		for _, n := range nodes {
			if units := n.Uses()[c.ID]; units > 0 {
				changed.Used, changed.Machines = changed.Used+sign*units, changed.Machines+int(sign)
			}
		}
		own[i] = &changed
	}
	return own
}

// pay sets the price of a machine that commitments cover, one of the model too (Future), whose list of types has its own
// type. For a claim in flight, that is the least it may cost.
func (n *Node) pay(c *cover) {
	n.least.kind, n.least.price = c.kind, c.price
	if n.Stage != Launching {
		n.Price = c.price
	}
}

// PricesWithout returns, by claim, the prices of the nodes, nano-USD per hour, when the machines gone have left to them
// what they use of commitments: the nodes use it in their order. A claim in flight has the highest price that it may have.
func (s *Snapshot) PricesWithout(gone, nodes []*Node) map[string]int64 {
	left, prices := using(s.Commitments, -1, slices.Concat(gone, nodes)...), make(map[string]int64, len(nodes))
	for _, n := range nodes {
		prices[n.Claim] = n.Price
		if pool := s.Pool(n.Pool); len(left) > 0 && pool != nil && pool.Types != nil {
			prices[n.Claim] = n.priceWith(pool.Types, left)
		}
	}
	return prices
}

// priceWith returns the price of the node with what is left of commitments, and takes what the node uses.
func (n *Node) priceWith(x *TypeIndex, left []*Commitment) (highest int64) {
	at, types, listed := offeringOf(n.NodeSpec), n.Types, n.Price
	if n.Stage != Launching {
		types = []string{at.instanceType}
		if t, known := x.Lookup(at.instanceType); known {
			listed = x.PriceOf(t, n.Labels[LabelZone], at.capacityType)
		}
	}
	for _, name := range types {
		price := listed
		if c := coverOf(zonalOfferings{name, at.capacityType, at.zones}, x, using(left, 1)); c != nil {
			price = c.price
		}
		highest = max(highest, price)
	}
	coverOf(at, x, left)
	return highest
}

// PinCommitment narrows the row to nodes that are bought with the commitment of the ID, or with none if it is not one.
func PinCommitment(space *label.Space, row label.Row, id string) {
	k, known := space.Lookup(FieldCommitment)
	name, committed := CommitmentName(id)
	switch {
	case !known:
	case !committed:
		space.SetOnly(row, k, space.Absent(k))
	default:
		space.SetOnly(row, k, space.Atom(k, name))
	}
}
