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

// grow returns v extended by zeros to n resources.
func grow(v quantity.Vector, n int) quantity.Vector {
	for len(v) < n {
		v = append(v, 0)
	}
	return v
}

// sized returns the request as a vector, and the amounts of the resources without a number of their own.
func (in *interner) sized(q *request) (quantity.Vector, []quantity.Amount) {
	if len(q.rare) == 0 {
		return grow(q.fixed.Clone(), in.resources.Len()), nil
	}
	shared, sharesAbsent := in.resources.Lookup(Unknown)
	amounts := make([]quantity.Amount, 0, len(q.rare))
	var unknown []quantity.Amount
	for _, a := range q.rare {
		if _, known := in.resources.Lookup(a.Name); known {
			amounts = append(amounts, a)
			continue
		}
		unknown = append(unknown, a)
		if sharesAbsent && !IsVolumeResource(a.Name) {
			amounts = append(amounts, quantity.Amount{Name: in.resources.Name(shared), Value: a.Value})
		}
	}
	v := in.resources.Vector(amounts)
	copy(v, q.fixed)
	return v, unknown
}

// names returns the names of all resources, by number.
func (in *interner) names() []string {
	names := make([]string, in.resources.Len())
	for r := range names {
		names[r] = in.resources.Name(quantity.Resource(r))
	}
	return names
}

// capacity returns the vector of a node's or type's amounts. Volumes without a limit are unlimited.
func (in *interner) capacity(amounts []quantity.Amount) quantity.Vector {
	v := in.resources.Vector(amounts)
	if in.volumes == 0 {
		return v
	}
	v = grow(v, in.resources.Len())
	for r := range v {
		if name := in.resources.Name(quantity.Resource(r)); IsVolumeResource(name) && !says(amounts, name) {
			v[r] = unlimited
		}
	}
	return v
}

func says(amounts []quantity.Amount, name string) bool {
	return slices.ContainsFunc(amounts, func(a quantity.Amount) bool { return a.Name == name })
}

// withShared adds the shared volumes of the pods, each once.
func (in *interner) withShared(used quantity.Vector, pods []*Pod) quantity.Vector {
	var seen map[string]bool
	for _, p := range pods {
		for _, v := range p.Shared {
			if v.Driver == "" || seen[v.Claim] {
				continue
			}
			if seen == nil {
				seen = map[string]bool{}
			}
			seen[v.Claim] = true
			if r, known := in.resources.Lookup(VolumeResource(v.Driver)); known {
				used = grow(used, int(r)+1)
				used[r]++
			}
		}
	}
	return used
}

// number gives numbers to the resources that need one, in the order of their names. It reports whether all have others now.
func (in *interner) number() (renumbered bool) {
	if !in.uses.changed {
		return false
	}
	in.uses.changed = false
	have, want := in.names()[knownResources:], in.uses.wanted()
	if in.suffices(have, want) {
		return false
	}
	_, shared := slices.BinarySearch(have, Unknown)
	if len(want) <= len(have) || !slices.Equal(have, want[:len(have)]) || shared {
		in.renumber(want)
		return true
	}
	for _, name := range want[len(have):] {
		in.resources.Intern(name)
	}
	return false
}

// suffices reports whether the numbered names may stay: they contain the wanted ones, and a few that nothing uses.
func (in *interner) suffices(have, want []string) bool {
	if len(have) < len(want) || len(have) > len(want)+fewUnused {
		return false
	}
	next := 0
	for _, name := range have {
		switch {
		case next < len(want) && want[next] == name:
			next++
		case name == Unknown || in.uses.asked[name] > 0:
			return false
		}
	}
	return next == len(want)
}

// size computes the requests of new shapes again, which no snapshot contains yet. It returns those that have changed.
func (in *interner) size() (changed map[*Shape]bool) {
	for _, s := range in.unsized {
		requests, unknown := in.sized(&s.request)
		if len(requests) != len(s.Requests) || !requests.Equal(s.Requests) { // no usage may be shorter than a request in it
			if changed == nil {
				changed = map[*Shape]bool{}
			}
			changed[s.Shape] = true
		}
		s.Requests, s.Unknown = requests, unknown
	}
	in.unsized = nil
	return changed
}

// renumber numbers the names anew. Data that snapshots share is replaced, not written.
func (in *interner) renumber(names []string) {
	in.resources = quantity.NewTable()
	for _, name := range names {
		in.resources.Intern(name)
	}
	for _, s := range in.shapes {
		shape := *s.Shape
		shape.Requests, shape.Unknown = in.sized(&s.request)
		s.Shape = &shape
	}
	in.unsized = nil
}

// size sums the usage of nodes again whose pods have other requests than before.
func (b *Builder) size() {
	renumbered := b.shared.number()
	if renumbered {
		for uid, record := range b.pods {
			b.pods[uid] = b.replace(record)
		}
		b.freezer.forgetRows()
		b.freezer.rejectedDirty = true
	}
	changed := b.shared.size()
	if len(changed) == 0 && !renumbered {
		return
	}
	for _, n := range b.nodes {
		if renumbered || n.hasAny(changed) {
			b.sum(n)
		}
	}
}

func (n *nodeRecord) hasAny(shapes map[*Shape]bool) bool {
	for _, pod := range n.pods {
		if shapes[pod.Shape] {
			return true
		}
	}
	return false
}

// sum computes the usage of a node from that of its pods.
func (b *Builder) sum(n *nodeRecord) {
	n.used = make(quantity.Vector, b.shared.resources.Len())
	for _, pod := range n.pods {
		pod.AddUse(n.used, 1)
	}
}

// replace gives the pod the current form of its shape.
func (b *Builder) replace(record podRecord) podRecord {
	pod := *record.pod
	shape := b.shared.shapes[pod.Signature]
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
