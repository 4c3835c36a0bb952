package model

import "github.com/karpenter-go/karpenter/internal/engine/quantity"

// Pods are interned as shapes and classes, and are on nodes, strays, pending or rejected.

// UpsertPod adds or replaces the pod.
func (b *Builder) UpsertPod(spec PodSpec) {
	b.DeletePod(spec.UID)
	b.version++
	var reduced quantity.Vector
	if spec.State == Bound && spec.Successor != nil {
		reduced = newRequest(spec.Successor, nil).fixed.Sub(newRequest(spec.Requests, nil).fixed)
		spec.Requests = spec.Successor
	}
	shape := b.shared.intern(&spec)
	shape.refs++
	rejected := spec.Rejected
	if rejected == nil {
		rejected = shape.aside
	}
	class := b.shared.classOf(&spec)
	pod := &Pod{
		Shape: shape.Shape, UID: spec.UID, Name: spec.Name, Created: spec.Created, Node: spec.Node, Nominated: spec.Nominated,
		Rejected: rejected, rejectedByBuilder: rejected != spec.Rejected, NoNewNode: spec.NoNewNode, Controller: spec.Controller,
		Daemon: spec.Daemon, Reschedulable: spec.Reschedulable,
		EvictionCost: spec.EvictionCost, ProtectedUntil: spec.ProtectedUntil, state: spec.State,
		Labels: spec.Labels, Tolerations: class.tolerations, Terminating: spec.Terminating, Ready: spec.Ready,
		class: class, reduced: reduced,
	}
	class.refs++
	record := podRecord{pod: pod}
	switch {
	case spec.State == Bound:
		b.bind(pod)
	case rejected != nil:
		b.freezer.rejectedDirty = true
	default:
		record.at = len(shape.pending)
		shape.pending = append(shape.pending, pod)
		b.freezer.dirtyShapes[shape.Signature] = shape
	}
	b.pods[spec.UID] = record
}

// DeletePod removes the pod. It does nothing for an unknown pod.
func (b *Builder) DeletePod(uid string) {
	record, known := b.pods[uid]
	if !known {
		return
	}
	b.version++
	delete(b.pods, uid)
	pod := record.pod
	shape := b.shared.shapes[pod.Signature]
	switch {
	case pod.state == Bound:
		b.unbind(pod)
	case pod.Rejected != nil:
		b.freezer.rejectedDirty = true
	default:
		b.drop(shape, record.at)
		b.freezer.dirtyShapes[shape.Signature] = shape
	}
	if shape.refs--; shape.refs == 0 {
		b.shared.release(shape)
	}
	if pod.class.refs--; pod.class.refs == 0 {
		b.shared.dropClass(pod)
	}
}

// drop removes a pod from the pending pods of its shape; the last one moves to its index.
func (b *Builder) drop(s *shapeRecord, at int) {
	end := len(s.pending) - 1
	if last := s.pending[end]; at < end {
		s.pending[at] = last
		b.pods[last.UID] = podRecord{last, at}
	}
	s.pending[end] = nil
	s.pending = s.pending[:end]
}

func (b *Builder) bind(pod *Pod) {
	n := b.nodes[pod.Node]
	if n == nil {
		if b.strays[pod.Node] == nil {
			b.strays[pod.Node] = map[string]*Pod{}
		}
		b.strays[pod.Node][pod.UID] = pod
		return
	}
	n.pods[pod.UID] = pod
	n.used = grow(n.used, len(pod.Requests))
	pod.AddUse(n.used, 1)
	b.freezer.dirtyNodes[pod.Node] = true
}

func (b *Builder) unbind(pod *Pod) {
	if n := b.nodes[pod.Node]; n != nil {
		delete(n.pods, pod.UID)
		pod.AddUse(n.used, -1)
		b.freezer.dirtyNodes[pod.Node] = true
		return
	}
	delete(b.strays[pod.Node], pod.UID)
	if len(b.strays[pod.Node]) == 0 {
		delete(b.strays, pod.Node)
	}
}
