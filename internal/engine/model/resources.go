package model

import (
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Which resources have a number.
//
// Every number makes the vectors of all nodes, instance types and shapes longer, and a pod may request any number of
// resources. So a resource that is only asked for, by pods and DaemonSets, and that no node, instance type, claim or
// limit of a pool names, has a number only as long as there are few of them. If there are more, they share one, of which
// no node has anything: what asks for one of them fits nowhere, until a node or an instance type with the name is added.
// Volumes of a driver without a limit need no number: any number of them fits.
//
// Resources are numbered in the order of their names, independently of the order in which objects were added: sums of
// floats, ties and "the first resource that is short" depend on the numbers, and the same state must give the same
// plan. A new name usually sorts last or is added with the first snapshot. Otherwise the builder numbers everything
// again, which costs as much as a cold start and happens once per name.

// The numbers of resources that are asked for and that no node has, and of those that nothing names any more.
const (
	fewAbsent = 16
	fewUnused = 16
)

// Unknown is the name in Snapshot.Resources that all resources share that are only asked for. It is not a valid name of
// a resource.
const Unknown = "(unknown)"

// knownResources is the number of resources that every table begins with; their numbers are fixed.
const knownResources = int(quantity.Pods) + 1

// resourceUse counts by what the names of resources are used, other than those with a fixed number.
type resourceUse struct {
	// offered counts the nodes, claims, catalogs and limits of pools, asked the shapes and DaemonSets.
	offered, asked map[string]int
	// absent is how many names are asked for and not offered.
	absent  int
	changed bool
}

func newResourceUse() resourceUse {
	return resourceUse{offered: map[string]int{}, asked: map[string]int{}}
}

// sharesAbsent reports whether the resources that are only asked for share a number.
func (u *resourceUse) sharesAbsent() bool { return u.absent > fewAbsent }

// offer counts the names in the lists, once more or once less.
func (u *resourceUse) offer(by int, lists ...[]quantity.Amount) {
	for _, list := range lists {
		for i := range list {
			if name := list[i].Name; !isFixedResource(name) && u.count(u.offered, name, by) && u.asked[name] > 0 {
				u.absent -= by
			}
		}
	}
}

// ask counts the names, once more or once less.
func (u *resourceUse) ask(by int, names []string) {
	for _, name := range names {
		if u.count(u.asked, name, by) && u.offered[name] == 0 {
			u.absent += by
		}
	}
}

// count reports whether the use of the name begins or ends.
func (u *resourceUse) count(uses map[string]int, name string, by int) bool {
	before := uses[name]
	if before+by > 0 {
		uses[name] = before + by
		u.changed = u.changed || before == 0
		return before == 0
	}
	delete(uses, name)
	u.changed = true
	return true
}

// wanted returns the names that need a number, sorted.
func (u *resourceUse) wanted() []string {
	names := make([]string, 0, len(u.offered)+fewAbsent)
	for name := range u.offered {
		names = append(names, name)
	}
	if u.sharesAbsent() {
		names = append(names, Unknown)
	} else {
		for name := range u.asked {
			if u.offered[name] == 0 {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func isFixedResource(name string) bool {
	return name == "cpu" || name == "memory" || name == "ephemeral-storage" || name == "pods"
}

// request is what a shape or a DaemonSet asks for.
type request struct {
	// fixed are the amounts of the resources with a fixed number, rare those of the others, by name.
	fixed quantity.Vector
	rare  []quantity.Amount
	// names are those of rare and of the shared volumes.
	names []string
}

func newRequest(amounts []quantity.Amount, shared []Volume) request {
	q := request{}
	all := quantity.NewTable()
	v := all.Vector(amounts)
	q.fixed = v[:knownResources:knownResources]
	if len(v) > knownResources {
		q.rare = slices.DeleteFunc(all.Amounts(v), func(a quantity.Amount) bool { return isFixedResource(a.Name) })
		slices.SortFunc(q.rare, func(a, b quantity.Amount) int { return strings.Compare(a.Name, b.Name) })
		for i := range q.rare {
			q.names = append(q.names, q.rare[i].Name)
		}
	}
	for _, v := range shared {
		if v.Driver != "" {
			q.names = append(q.names, VolumeResource(v.Driver))
		}
	}
	slices.Sort(q.names)
	q.names = slices.Compact(q.names)
	return q
}

// sized returns the request as a vector, and the amounts of the resources without a number of their own.
func (b *Builder) sized(q *request) (quantity.Vector, []quantity.Amount) {
	if len(q.rare) == 0 {
		return grow(q.fixed.Clone(), b.resources.Len()), nil
	}
	shared, sharesAbsent := b.resources.Lookup(Unknown)
	amounts := make([]quantity.Amount, 0, len(q.rare))
	var unknown []quantity.Amount
	for _, a := range q.rare {
		if _, known := b.resources.Lookup(a.Name); known {
			amounts = append(amounts, a)
			continue
		}
		unknown = append(unknown, a)
		if sharesAbsent && !IsVolumeResource(a.Name) {
			amounts = append(amounts, quantity.Amount{Name: b.resources.Name(shared), Value: a.Value})
		}
	}
	v := b.resources.Vector(amounts)
	copy(v, q.fixed)
	return v, unknown
}

// names returns the names of all resources, by number.
func (b *Builder) names() []string {
	names := make([]string, b.resources.Len())
	for r := range names {
		names[r] = b.resources.Name(quantity.Resource(r))
	}
	return names
}

// number gives numbers to the resources that need one, in the order of their names.
func (b *Builder) number() {
	if b.uses.changed {
		b.uses.changed = false
		if have, want := b.names()[knownResources:], b.uses.wanted(); !b.suffices(have, want) {
			_, shared := slices.BinarySearch(have, Unknown)
			if len(want) > len(have) && slices.Equal(have, want[:len(have)]) && !shared {
				for _, name := range want[len(have):] {
					b.resources.Intern(name)
				}
			} else {
				b.renumber(want)
			}
		}
	}
	b.size()
}

// suffices reports whether the numbered names may stay: they contain the wanted ones, and a few that nothing uses.
func (b *Builder) suffices(have, want []string) bool {
	if len(have) < len(want) || len(have) > len(want)+fewUnused {
		return false
	}
	next := 0
	for _, name := range have {
		switch {
		case next < len(want) && want[next] == name:
			next++
		case name == Unknown || b.uses.asked[name] > 0:
			return false
		}
	}
	return next == len(want)
}

// size computes the requests of new shapes again, which no snapshot contains yet.
func (b *Builder) size() {
	changed := map[*Shape]bool{}
	for _, s := range b.unsized {
		requests, unknown := b.sized(&s.request)
		if len(requests) != len(s.Requests) || !requests.Equal(s.Requests) { // no usage may be shorter than a request in it
			changed[s.Shape] = true
		}
		s.Requests, s.Unknown = requests, unknown
	}
	b.unsized = nil
	if len(changed) == 0 {
		return
	}
	for _, n := range b.nodes {
		for _, pod := range n.pods {
			if changed[pod.Shape] {
				b.sum(n)
				break
			}
		}
	}
}

// sum computes the usage of a node from that of its pods.
func (b *Builder) sum(n *nodeRecord) {
	n.used = make(quantity.Vector, b.resources.Len())
	for _, pod := range n.pods {
		pod.AddUse(n.used, 1)
	}
}

// renumber numbers the names anew. Data that snapshots share is replaced, not written.
func (b *Builder) renumber(names []string) {
	b.resources = quantity.NewTable()
	for _, name := range names {
		b.resources.Intern(name)
	}
	for _, s := range b.shapes {
		shape := *s.Shape
		shape.Requests, shape.Unknown = b.sized(&s.request)
		s.Shape = &shape
	}
	b.unsized = nil
	for uid, record := range b.pods {
		b.pods[uid] = b.replace(record)
	}
	for _, n := range b.nodes {
		b.sum(n)
	}
	b.forgetRows()
	b.rejectedDirty = true
}

// replace gives the pod the current form of its shape.
func (b *Builder) replace(record podRecord) podRecord {
	pod := *record.pod
	shape := b.shapes[pod.Signature]
	pod.Shape = shape.Shape
	record.pod = &pod
	switch {
	case pod.state == Bound && b.nodes[pod.Node] != nil:
		b.nodes[pod.Node].pods[pod.UID] = &pod
	case pod.state == Bound:
		b.strays[pod.Node][pod.UID] = &pod
	case pod.Rejected == nil:
		shape.pending[record.at] = &pod
	}
	return record
}
