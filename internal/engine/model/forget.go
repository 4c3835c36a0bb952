package model

import (
	"maps"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// What must be frozen anew when shared state changes, and what is released.
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
	if (b.dead <= fewMarks || 2*b.dead <= len(b.marks)) && b.unmentioned <= fewMentions {
		return
	}
	b.marks, b.users, b.markNumbers, b.topology = nil, nil, map[string]int{}, map[string]int{}
	b.dead, b.unmentioned, b.counted = 0, 0, 0
	b.values, b.selectors = valueTable{}, nil
	b.mentions = newMentions()
	for _, signature := range slices.Sorted(maps.Keys(b.shapes)) {
		s := b.shapes[signature]
		shape := *s.Shape
		shape.SpreadMarks, shape.TermMarks, shape.CarrierMarks = nil, nil, nil
		s.Shape, s.marked = &shape, false
		if s.aside == nil {
			b.mentionShape(&shape)
		}
		b.markShape(s)
	}
	for uid, record := range b.pods {
		b.pods[uid] = b.replace(record)
	}
	for _, c := range b.classes {
		c.current, c.upTo = nil, 0
	}
	for _, n := range b.nodes {
		b.mentionNode(n.spec)
	}
	for _, p := range b.pools {
		b.offer(p.spec.Requirements)
	}
	for _, q := range b.quotas {
		b.offer(q.Selector)
	}
	for _, d := range b.daemons {
		if d.mentioned {
			b.mention(d.spec.Alternatives...)
		}
	}
	for c := range b.types {
		b.mentionOffers(c)
	}
	b.rejectedDirty = true
}

// release removes a shape whose last pod is gone.
func (b *Builder) release(s *shapeRecord) {
	delete(b.shapes, s.Signature)
	if !s.exceeds(mostOfOne) {
		b.terms -= s.terms
		b.between -= s.between
		b.asides -= bit(s.aside != nil)
		b.shapesChanged = true
	}
	b.giveBack(s)
	b.uses.ask(-1, s.names)
	b.releaseMentions(s.Alternatives...)
	b.releaseMentions(s.VolumeAlternatives...)
	for _, p := range s.Preferred {
		b.releaseMentions(p.Requirements)
	}
}

// releaseMentions counts the mentions of requirements that are gone.
func (b *Builder) releaseMentions(alternatives ...[]label.Requirement) {
	for _, reqs := range alternatives {
		for _, r := range reqs {
			b.unmentioned += max(1, len(r.Values))
		}
	}
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

// forgetRows marks everything that holds a row as dirty.
func (b *Builder) forgetRows() {
	b.daemonsDirty, b.poolsDirty = true, true
	for _, d := range b.daemons {
		d.frozen = nil
	}
	for c := range b.types {
		b.types[c] = nil
	}
	for name := range b.nodes {
		b.dirtyNodes[name] = true
	}
	b.forgetGroups()
}

func (b *Builder) forgetGroups() {
	for signature, shape := range b.shapes {
		if shape.groups != nil {
			b.dirtyShapes[signature] = shape
		}
	}
}

// noticeVolumes freezes everything anew when a driver is seen for the first time: a node or type without a limit for
// its volumes has room for any number, and its vector must contain that.
func (b *Builder) noticeVolumes() {
	n := 0
	for r := range b.resources.Len() {
		if IsVolumeResource(b.resources.Name(quantity.Resource(r))) {
			n++
		}
	}
	if n != b.volumes {
		b.volumes = n
		b.forgetRows()
	}
}

// noticeMarks regroups and recounts the pods that new marks select.
func (b *Builder) noticeMarks() {
	if b.counted == len(b.marks) {
		return
	}
	b.counted = len(b.marks)
	moved := false
	for _, c := range b.classes {
		before := c.current
		m := b.match(c)
		if before == nil {
			before = unmarked
		}
		c.moved = m.all().key != before.all().key
		moved = moved || c.moved
	}
	if !moved {
		return
	}
	isMoved := func(p *Pod) bool { return p.class.moved }
	for name, n := range b.nodes {
		if n.frozen != nil && slices.ContainsFunc(n.frozen.Pods, isMoved) {
			b.dirtyNodes[name] = true
		}
	}
	for signature, s := range b.shapes {
		if slices.ContainsFunc(s.pending, isMoved) {
			b.dirtyShapes[signature] = s
		}
	}
}
