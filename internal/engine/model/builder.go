package model

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// A Builder takes the world one event at a time and freezes it into Snapshots.
//
// Representation: a record per pod, node, pool and DaemonSet; shapes of pods and resource and label names interned; on
// every node record the sum of what its pods use. What a Snapshot handed out is never written again: a record whose
// frozen form is out of date is in the dirty list and gets a new one at the next Snapshot; lists are copied when a
// member changed. When the set of mentioned label values grew, every row is out of date and all is frozen anew.
//
// A Builder is not safe for concurrent use.
type Builder struct {
	resources *quantity.Table
	mentions  *label.Mentions
	space     *label.Space
	version   uint64

	pods   map[string]podRecord
	shapes map[string]*shapeRecord
	nodes  map[string]*nodeRecord
	// strays are pods bound to nodes that are not known, by node name.
	strays  map[string]map[string]*Pod
	pools   map[string]*poolRecord
	daemons map[string]*daemonRecord
	types   map[*Catalogue]*TypeIndex

	// marks, their numbers by canonical form, how many the frozen lists have taken into account, and the label keys that
	// are used as topology keys.
	marks       []Mark
	markNumbers map[string]int
	counted     int
	topology    map[string]bool
	classes     map[string]*class
	// volumes is how many resources count volumes.
	volumes int

	dirtyNodes    map[string]bool
	dirtyShapes   map[string]*shapeRecord
	rejectedDirty bool
	poolsDirty    bool
	daemonsDirty  bool

	// last is the snapshot handed out last; its lists are shared where nothing changed.
	last      *Snapshot
	signature []byte
	classKey  []byte
	labelKeys []string
}

// podRecord is a pod and, while it waits, its place among those of its shape that do.
type podRecord struct {
	pod *Pod
	at  int
}

type shapeRecord struct {
	*Shape
	refs int
	// groups are the frozen groups of the pending pods of the shape.
	groups []*Group
	// pending are the pods that wait, each at its own place.
	pending []*Pod
}

type nodeRecord struct {
	spec   *NodeSpec
	pods   map[string]*Pod
	used   quantity.Vector
	frozen *Node
	// counted is the pool whose usage the frozen node is part of, nil if none.
	counted *poolRecord
}

type poolRecord struct {
	spec   *PoolSpec
	frozen *Pool
	used   quantity.Vector
	nodes  int
	dirty  bool
}

type daemonRecord struct {
	spec   *DaemonSpec
	frozen *Daemon
}

// NewBuilder returns an empty world.
func NewBuilder() *Builder {
	b := &Builder{
		resources: quantity.NewTable(), mentions: label.NewMentions(),
		pods: map[string]podRecord{}, shapes: map[string]*shapeRecord{}, nodes: map[string]*nodeRecord{},
		strays: map[string]map[string]*Pod{}, pools: map[string]*poolRecord{}, daemons: map[string]*daemonRecord{},
		types: map[*Catalogue]*TypeIndex{}, dirtyNodes: map[string]bool{}, dirtyShapes: map[string]*shapeRecord{},
		last: &Snapshot{}, markNumbers: map[string]int{}, topology: map[string]bool{}, classes: map[string]*class{},
	}
	for _, key := range []string{LabelPool, LabelCapacityType, LabelType, LabelZone, LabelHostname} {
		b.mentions.Key(key)
	}
	return b
}

// Expect makes room for so many pods that are about to come.
func (b *Builder) Expect(pods int) {
	if len(b.pods) == 0 {
		b.pods = make(map[string]podRecord, pods)
	}
}

// UpsertPod adds the pod or replaces what was known of it.
func (b *Builder) UpsertPod(spec PodSpec) {
	b.DeletePod(spec.UID)
	b.version++
	shape := b.intern(&spec)
	shape.refs++
	pod := &Pod{
		Shape: shape.Shape, UID: spec.UID, Name: spec.Name, Created: spec.Created, Node: spec.Node, Nominated: spec.Nominated,
		Rejected: spec.Rejected, Controller: spec.Controller, Daemon: spec.Daemon, Reschedulable: spec.Reschedulable,
		EvictionCost: spec.EvictionCost, ProtectedUntil: spec.ProtectedUntil, state: spec.State,
		Labels: spec.Labels, Terminating: spec.Terminating, class: b.classOf(&spec),
	}
	pod.class.refs++
	record := podRecord{pod: pod}
	switch {
	case spec.State == Bound:
		b.bind(pod)
	case spec.Rejected != nil:
		b.rejectedDirty = true
	default:
		record.at = len(shape.pending)
		shape.pending = append(shape.pending, pod)
		b.dirtyShapes[shape.Signature] = shape
	}
	b.pods[spec.UID] = record
}

// DeletePod forgets the pod; nothing happens when it is not known.
func (b *Builder) DeletePod(uid string) {
	record, known := b.pods[uid]
	if !known {
		return
	}
	b.version++
	delete(b.pods, uid)
	pod := record.pod
	shape := b.shapes[pod.Signature]
	switch {
	case pod.state == Bound:
		b.unbind(pod)
	case pod.Rejected != nil:
		b.rejectedDirty = true
	default:
		b.drop(shape, record.at)
		b.dirtyShapes[shape.Signature] = shape
	}
	if shape.refs--; shape.refs == 0 {
		delete(b.shapes, shape.Signature)
	}
	if pod.class.refs--; pod.class.refs == 0 {
		b.dropClass(pod)
	}
}

// drop takes a pod out of those of its shape that wait; the last one takes its place.
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
	n.used.AddScaled(pod.Requests, 1)
	b.dirtyNodes[pod.Node] = true
}

func (b *Builder) unbind(pod *Pod) {
	if n := b.nodes[pod.Node]; n != nil {
		delete(n.pods, pod.UID)
		n.used.AddScaled(pod.Requests, -1)
		b.dirtyNodes[pod.Node] = true
		return
	}
	delete(b.strays[pod.Node], pod.UID)
	if len(b.strays[pod.Node]) == 0 {
		delete(b.strays, pod.Node)
	}
}

// grow returns v with room for n resources; what is added is zero.
func grow(v quantity.Vector, n int) quantity.Vector {
	for len(v) < n {
		v = append(v, 0)
	}
	return v
}

// intern returns the shape of the pod, a new one if it is the first of its kind.
func (b *Builder) intern(spec *PodSpec) *shapeRecord {
	b.signature = appendSignature(b.signature[:0], spec)
	if known := b.shapes[string(b.signature)]; known != nil {
		return known
	}
	shape := &shapeRecord{Shape: &Shape{
		Signature: string(b.signature), Namespace: spec.Namespace, Priority: spec.Priority,
		Requests: b.resources.Vector(amountsWithVolumes(spec)), Alternatives: spec.Alternatives, Tolerations: spec.Tolerations,
		VolumeAlternatives: spec.VolumeAlternatives, Preferred: spec.Preferred, Spread: spec.Spread, Terms: spec.Terms,
		HostPorts: spec.HostPorts,
	}}
	for _, v := range spec.Volumes {
		if v.Shared {
			shape.Shared = append(shape.Shared, v)
			if v.Driver != "" {
				b.resources.Intern(VolumeResource(v.Driver))
			}
		}
	}
	b.mention(spec.Alternatives...)
	b.mention(spec.VolumeAlternatives...)
	for _, p := range spec.Preferred {
		b.mention(p.Requirements)
	}
	b.markShape(shape.Shape)
	b.shapes[shape.Signature] = shape
	return shape
}

func (b *Builder) mention(alternatives ...[]label.Requirement) {
	for _, reqs := range alternatives {
		for _, r := range reqs {
			b.mentions.Requirement(r)
		}
	}
}

// UpsertNode adds the node or replaces what was known of it. Pods that were bound to its name before it was known
// are now on it.
func (b *Builder) UpsertNode(spec NodeSpec) {
	b.version++
	b.mention(spec.Requirements)
	b.hear(spec.Capacity, spec.Allocatable, spec.Requests)
	b.dirtyNodes[spec.Name] = true
	for key := range b.topology {
		b.mentionDomain(key, spec.Labels)
	}
	if n := b.nodes[spec.Name]; n != nil {
		n.spec = &spec
		return
	}
	b.nodes[spec.Name] = &nodeRecord{spec: &spec, pods: map[string]*Pod{}}
	strays := b.strays[spec.Name]
	delete(b.strays, spec.Name)
	for _, pod := range strays {
		b.bind(pod)
	}
}

// DeleteNode forgets the node; its pods wait for a node of the name.
func (b *Builder) DeleteNode(name string) {
	n := b.nodes[name]
	if n == nil {
		return
	}
	b.version++
	delete(b.nodes, name)
	b.dirtyNodes[name] = true
	n.uncount()
	for _, pod := range n.pods {
		b.bind(pod)
	}
}

// UpsertPool adds the pool or replaces what was known of it.
func (b *Builder) UpsertPool(spec PoolSpec) {
	b.version++
	b.poolsDirty = true
	b.mention(spec.Requirements)
	for _, limit := range spec.Limits {
		if limit.Name != ResourceNodes {
			b.resources.Intern(limit.Name)
		}
	}
	if spec.Catalogue != nil {
		b.mentionCatalogue(spec.Catalogue)
	}
	p := b.pools[spec.Name]
	if p == nil {
		p = &poolRecord{}
		b.pools[spec.Name] = p
	}
	if p.spec == nil || p.spec.Catalogue != spec.Catalogue {
		b.dirtyNodesOf(spec.Name)
	}
	p.spec, p.dirty = &spec, true
}

// mentionCatalogue makes every zone, capacity type and reservation on offer an atom of its own: bins are pinned to
// them.
func (b *Builder) mentionCatalogue(c *Catalogue) {
	if _, known := b.types[c]; known {
		return
	}
	b.types[c] = nil
	for key := range b.topology {
		b.mentionTypes(key, c)
	}
	for i := range c.Types {
		b.hear(c.Types[i].Capacity, c.Types[i].Allocatable)
		for _, o := range c.Types[i].Offerings {
			b.mentions.Value(LabelZone, o.Zone)
			b.mentions.Value(LabelCapacityType, o.CapacityType)
			for _, r := range o.Requirements {
				b.mentions.Requirement(r)
			}
		}
	}
}

// DeletePool forgets the pool.
func (b *Builder) DeletePool(name string) {
	if _, known := b.pools[name]; !known {
		return
	}
	b.version++
	b.poolsDirty = true
	delete(b.pools, name)
	b.dirtyNodesOf(name)
}

// dirtyNodesOf marks the nodes whose prices and types come from the pool's catalogue.
func (b *Builder) dirtyNodesOf(pool string) {
	for name, n := range b.nodes {
		if n.spec.Pool == pool {
			b.dirtyNodes[name] = true
		}
	}
}

// UpsertDaemon adds the DaemonSet or replaces what was known of it.
func (b *Builder) UpsertDaemon(spec DaemonSpec) {
	b.version++
	b.daemonsDirty = true
	b.mention(spec.Alternatives...)
	b.hear(spec.Requests)
	b.daemons[spec.UID] = &daemonRecord{spec: &spec}
}

// DeleteDaemon forgets the DaemonSet.
func (b *Builder) DeleteDaemon(uid string) {
	if _, known := b.daemons[uid]; known {
		b.version++
		b.daemonsDirty = true
		delete(b.daemons, uid)
	}
}

// Snapshot freezes the world as it is at now.
func (b *Builder) Snapshot(now time.Time) *Snapshot {
	b.renumber()
	if space := b.mentions.Space(); space != b.space {
		b.space = space
		b.forgetRows()
	}
	b.noticeVolumes()
	b.noticeMarks()
	s := *b.last
	s.Now, s.Version, s.Space = now, b.version, b.space
	b.freezeDaemons(&s)
	b.freezePools()
	b.freezeNodes(&s)
	b.freezeUsage(&s)
	b.freezeGroups(&s)
	b.freezeRejected(&s)
	s.Resources, s.Marks = b.resourceNames(), b.marks
	b.last = &s
	return &s
}

func (b *Builder) resourceNames() []string {
	if names := b.names(); !slices.Equal(names, b.last.Resources) {
		return names
	}
	return b.last.Resources
}

// forgetRows marks everything that holds a row.
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

// noticeVolumes freezes everything anew when a driver was heard of first: what does not limit its volumes has room for
// any number, and its vector must say so.
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

// noticeMarks regroups the pending pods and counts the bound ones when there are new marks.
func (b *Builder) noticeMarks() {
	if b.counted == len(b.marks) {
		return
	}
	b.counted = len(b.marks)
	b.forgetGroups()
	for name := range b.nodes {
		b.dirtyNodes[name] = true
	}
}

// capacity is the vector of what a node or type has: volumes it says nothing about are unlimited.
func (b *Builder) capacity(amounts []quantity.Amount) quantity.Vector {
	v := b.resources.Vector(amounts)
	if b.volumes == 0 {
		return v
	}
	v = grow(v, b.resources.Len())
	for r := range v {
		if name := b.resources.Name(quantity.Resource(r)); IsVolumeResource(name) && !says(amounts, name) {
			v[r] = unlimited
		}
	}
	return v
}

func says(amounts []quantity.Amount, name string) bool {
	return slices.ContainsFunc(amounts, func(a quantity.Amount) bool { return a.Name == name })
}

// dropClass forgets a class that the pod was the last of.
func (b *Builder) dropClass(pod *Pod) {
	spec := PodSpec{Namespace: pod.Namespace, Labels: pod.Labels}
	b.classOf(&spec)
	delete(b.classes, string(b.classKey))
}

func (b *Builder) freezeDaemons(s *Snapshot) {
	if !b.daemonsDirty {
		return
	}
	b.daemonsDirty, b.poolsDirty = false, true
	for _, p := range b.pools {
		p.dirty = true
	}
	s.Daemons = make([]*Daemon, 0, len(b.daemons))
	for _, d := range b.daemons {
		if d.frozen == nil {
			rows, _ := encodeAlternatives(b.space, d.spec.Alternatives)
			d.frozen = &Daemon{DaemonSpec: d.spec, Rows: rows, Requests: b.resources.Vector(d.spec.Requests)}
		}
		s.Daemons = append(s.Daemons, d.frozen)
	}
	slices.SortFunc(s.Daemons, func(a, b *Daemon) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
	for name, n := range b.nodes {
		if n.spec.Stage != Initialized {
			b.dirtyNodes[name] = true
		}
	}
}

// encodeAlternatives encodes terms of which any one suffices. Terms that contradict themselves are left out; when none
// is left the key of the first contradiction is returned.
func encodeAlternatives(space *label.Space, alternatives [][]label.Requirement) ([]label.Row, label.Key) {
	if len(alternatives) == 0 {
		return []label.Row{space.All()}, 0
	}
	var rows []label.Row
	var contradiction label.Key
	for i, reqs := range alternatives {
		row, key, ok := space.Encode(reqs)
		if ok {
			rows = append(rows, row)
		} else if i == 0 {
			contradiction = key
		}
	}
	return rows, contradiction
}
