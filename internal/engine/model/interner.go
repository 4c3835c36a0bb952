package model

import (
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// interner holds what objects have in common, once: label keys and values, names of resources, instance types, the shapes
// and the classes of pods, and the marks by which pods are counted. It numbers them, counts their uses, and says which
// shapes are admitted. It has no record of a node or pool, and of pods only those that are pending, by shape.
type interner struct {
	mentions *label.Mentions
	space    *label.Space
	// topology holds how often shapes use a label key as topology key. The domains of newKeys are not mentioned yet.
	topology map[string]int
	newKeys  []string

	resources *quantity.Table
	// uses says by what the names of resources are used; unsized holds the shapes that name a resource without a number
	// and are in no snapshot yet; volumes is the number of resources that count volumes.
	uses    resourceUse
	unsized []*shapeRecord
	volumes int

	types map[*Catalog]*TypeIndex
	// typeKeys are the labels that catalogs define.
	typeKeys map[*Catalog]map[string]bool
	// taints are those of nodes and pools.
	taints taintUse

	shapes  map[string]*shapeRecord
	classes map[string]*class
	// marks, how often shapes use each of them, and their numbers by canonical form.
	marks       []Mark
	users       []int
	markNumbers map[string]int
	// selectors holds the compiled selectors of the marks; see selection.go.
	selectors      []compiled
	newestSelector string
	values         valueTable
	// dead counts the marks that no shape uses; unmentioned is an upper bound of the mentions whose shapes are gone.
	dead, unmentioned int

	// terms counts the alternatives and preferences of all shapes beyond the free ones, between the constraints
	// between pods, except those of shapes that are above the limit of one. fresh holds the shapes that are not
	// mentioned yet. asides counts the shapes for which there is no room beside the others; shapesChanged says that
	// there may be some now.
	terms         int
	between       int
	fresh         []*shapeRecord
	asides        int
	shapesChanged bool

	signature []byte
	classKey  []byte
	labelKeys []string
}

func newInterner() *interner {
	return &interner{
		mentions: newMentions(), topology: map[string]int{}, resources: quantity.NewTable(), uses: newResourceUse(),
		types: map[*Catalog]*TypeIndex{}, typeKeys: map[*Catalog]map[string]bool{}, taints: taintUse{counts: map[Taint]int{}},
		shapes: map[string]*shapeRecord{}, classes: map[string]*class{}, markNumbers: map[string]int{}, values: valueTable{},
	}
}

// shapeRecord is a shape with its pending pods.
type shapeRecord struct {
	*Shape
	request
	refs int
	// priced is the cost of the shape's groups (admit.go). marked says that its marks are interned, partly that only
	// those of a shape that is set aside are.
	priced
	marked, partly bool
	// groups holds the frozen groups of the pending pods of the shape.
	groups []*Group
	// pending holds the pending pods, each at its own index.
	pending []*Pod
}

// newMentions returns mentions of the keys that the engine gives a meaning to.
func newMentions() *label.Mentions {
	m := label.NewMentions()
	for _, key := range []string{LabelPool, LabelCapacityType, LabelType, LabelZone, LabelHostname} {
		m.Key(key)
	}
	for _, key := range []string{FieldName, LabelRegistered, LabelInitialized} {
		m.Carry(key)
	}
	return m
}

// intern returns the shape of the pod, a new one if it is the first of its kind.
func (in *interner) intern(spec *PodSpec) *shapeRecord {
	in.signature = appendSignature(in.signature[:0], spec)
	if known := in.shapes[string(in.signature)]; known != nil {
		return known
	}
	shape := &shapeRecord{Shape: &Shape{
		Signature: string(in.signature), Namespace: spec.Namespace, Virtual: spec.Virtual, Priority: spec.Priority,
		Alternatives: spec.Alternatives, VolumeAlternatives: spec.VolumeAlternatives,
		Preferred: spec.Preferred, Spread: spec.Spread, Terms: spec.Terms,
		HostPorts: spec.HostPorts,
	}}
	for _, v := range spec.Volumes {
		if v.Shared {
			shape.Shared = append(shape.Shared, v)
		}
	}
	shape.request = newRequest(amountsWithVolumes(spec), shape.Shared)
	in.uses.ask(1, shape.names)
	if shape.Requests, shape.Unknown = in.sized(&shape.request); len(shape.Unknown) > 0 {
		in.unsized = append(in.unsized, shape)
	}
	in.weigh(shape)
	in.shapes[shape.Signature] = shape
	return shape
}

func (in *interner) mentionShape(s *Shape) {
	in.mention(s.Alternatives...)
	in.mention(s.VolumeAlternatives...)
	for _, p := range s.Preferred {
		in.mention(p.Requirements)
	}
}

func (in *interner) mention(alternatives ...[]label.Requirement) {
	for _, reqs := range alternatives {
		for _, r := range reqs {
			in.mentions.Requirement(r)
		}
	}
}

// release removes a shape whose last pod is gone.
func (in *interner) release(s *shapeRecord) {
	delete(in.shapes, s.Signature)
	if !s.exceeds(mostOfOne) {
		in.terms -= s.terms
		in.between -= s.between
		in.asides -= bit(s.aside != nil)
		in.shapesChanged = true
	}
	in.giveBack(s)
	in.uses.ask(-1, s.names)
	in.releaseMentions(s.Alternatives...)
	in.releaseMentions(s.VolumeAlternatives...)
	for _, p := range s.Preferred {
		in.releaseMentions(p.Requirements)
	}
}

// releaseMentions counts the mentions of requirements that are gone.
func (in *interner) releaseMentions(alternatives ...[]label.Requirement) {
	for _, reqs := range alternatives {
		for _, r := range reqs {
			in.unmentioned += max(1, len(r.Values))
		}
	}
}

// releaseDomains counts the mentions of a node that is gone.
func (in *interner) releaseDomains(labels map[string]string) {
	for key := range in.topology {
		if _, has := labels[key]; has {
			in.unmentioned++
		}
	}
}

// dropClass removes the class of its last pod.
func (in *interner) dropClass(pod *Pod) {
	spec := PodSpec{Namespace: pod.Namespace, Labels: pod.Labels, Tolerations: pod.Tolerations}
	in.classOf(&spec)
	delete(in.classes, string(in.classKey))
}
