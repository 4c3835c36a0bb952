package model

import (
	"maps"
	"slices"
)

// What is released.
//
// Marks, topology keys and mentioned values are added with shapes. When the last shape that uses one is removed, it
// is kept for a while, because it often returns: a job that runs every minute costs nothing but its pods. When too
// much of the retained state is unused, everything is numbered again, which costs about as much as a first snapshot.

// The limits of unused state: the number of marks, if they are more than half of all, and of mentions.
const (
	fewMarks    = 64
	fewMentions = 4096
)

// forget numbers marks and mentions again when too many are unused.
func (b *Builder) forget() {
	if !b.shared.forgetShapes() {
		return
	}
	b.freezer.counted = 0
	for uid, record := range b.pods {
		b.pods[uid] = b.replace(record)
	}
	for _, n := range b.nodes {
		b.shared.mentionNode(n.spec)
	}
	for _, p := range b.pools {
		b.shared.offer(p.spec.Requirements)
	}
	for _, q := range b.quotas {
		b.shared.offer(q.Selector)
	}
	for _, d := range b.daemons {
		if d.mentioned {
			b.shared.mention(d.spec.Alternatives...)
		}
	}
	b.freezer.rejectedDirty = true
}

// forgetShapes numbers the marks and mentions of shapes and types again, if too many are unused.
func (in *interner) forgetShapes() bool {
	if (in.dead <= fewMarks || 2*in.dead <= len(in.marks)) && in.unmentioned <= fewMentions {
		return false
	}
	in.marks, in.users, in.markNumbers, in.topology = nil, nil, map[string]int{}, map[string]int{}
	in.dead, in.unmentioned, in.newKeys = 0, 0, nil
	in.values, in.selectors = valueTable{}, nil
	in.mentions = newMentions()
	for _, signature := range slices.Sorted(maps.Keys(in.shapes)) {
		s := in.shapes[signature]
		shape := *s.Shape
		shape.SpreadMarks, shape.TermMarks, shape.CarrierMarks = nil, nil, nil
		s.Shape, s.marked = &shape, false
		if s.aside == nil {
			in.mentionShape(&shape)
		}
		in.markShape(s)
	}
	for _, c := range in.classes {
		c.current, c.upTo = nil, 0
	}
	for c := range in.types {
		in.mentionOffers(c)
	}
	return true
}

// marks returns the marks of the shape, each as often as the shape uses it.
func (s *Shape) marks() []int {
	if len(s.SpreadMarks)+len(s.CarrierMarks) == 0 {
		return nil
	}
	all := slices.Concat(s.SpreadMarks, s.TermMarks, s.CarrierMarks)
	return slices.DeleteFunc(all, func(m int) bool { return m < 0 })
}

// topologyKeys returns the topology keys of the shape other than the hostname, each as often as the shape uses it.
func (s *Shape) topologyKeys() []string {
	var keys []string
	for i := range s.Spread {
		keys = append(keys, s.Spread[i].Key)
	}
	for i := range s.Terms {
		keys = append(keys, s.Terms[i].Key)
	}
	return slices.DeleteFunc(keys, func(key string) bool { return key == LabelHostname })
}
