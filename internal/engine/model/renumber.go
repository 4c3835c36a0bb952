package model

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Resources are numbered in the order of their names, independently of the order in which objects were added: sums of
// floats, ties and "the first resource that is short" depend on the numbers, and the same state must give the same
// plan. A new name usually sorts last or is added with the first snapshot. Otherwise the builder numbers everything
// again, which costs as much as a cold start and happens once per name.

// knownResources is the number of resources that every table begins with; their numbers are fixed.
const knownResources = int(quantity.Pods) + 1

// hear interns the names before anything is encoded.
func (b *Builder) hear(lists ...[]quantity.Amount) {
	for _, list := range lists {
		for _, a := range list {
			b.resources.Intern(a.Name)
		}
	}
}

// names returns the names of all resources, by number.
func (b *Builder) names() []string {
	names := make([]string, b.resources.Len())
	for r := range names {
		names[r] = b.resources.Name(quantity.Resource(r))
	}
	return names
}

// renumber sorts the resources. Data that snapshots share is replaced, not written.
func (b *Builder) renumber() {
	old := b.names()
	if slices.IsSorted(old[knownResources:]) {
		return
	}
	sorted := slices.Clone(old)
	slices.Sort(sorted[knownResources:])
	b.resources = quantity.NewTable()
	for _, name := range sorted {
		b.resources.Intern(name)
	}
	moved := func(v quantity.Vector) quantity.Vector {
		to := make(quantity.Vector, len(old))
		for r, n := range v {
			at, _ := b.resources.Lookup(old[r])
			to[at] = n
		}
		return to
	}
	for _, s := range b.shapes {
		shape := *s.Shape
		shape.Requests = moved(shape.Requests)
		s.Shape = &shape
	}
	for uid, record := range b.pods {
		b.pods[uid] = b.replace(record)
	}
	for _, n := range b.nodes {
		n.uncount()
		n.used = moved(n.used)
	}
	for _, p := range b.pools {
		p.used = nil
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
