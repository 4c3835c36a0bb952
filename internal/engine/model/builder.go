package model

import (
	"slices"
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
	pdbs    map[string]*PDBSpec
	types   map[*Catalogue]*TypeIndex

	// marks, how often shapes use each, their numbers by canonical form, and how many the frozen lists have taken into
	// account; topology is how often shapes use a label key as topology key.
	marks       []Mark
	users       []int
	markNumbers map[string]int
	counted     int
	topology    map[string]int
	// selectors are those of the marks, compiled; see selection.go.
	selectors      []compiled
	newestSelector string
	values         valueTable
	classes        map[string]*class
	// dead marks are used by no shape; unmentioned is how many mentions went with their shapes, at most.
	dead, unmentioned int
	// terms is how many alternatives and preferences all shapes have beyond a few, between how many constraints between pods; fresh are
	// the shapes that were not admitted yet; shapesChanged says that shapes that were set aside may be admitted now, of which
	// there are so many.
	terms         int
	between       int
	fresh         []*shapeRecord
	asides        int
	shapesChanged bool
	// volumes is how many resources count volumes.
	volumes int

	dirtyNodes    map[string]bool
	dirtyShapes   map[string]*shapeRecord
	rejectedDirty bool
	poolsDirty    bool
	daemonsDirty  bool
	pdbsDirty     bool

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
	// cost is what the shape's groups cost (admit.go); aside is why none are made, nil if they are. marked says that its marks
	// are interned, partly that these are the few of a shape that is set aside.
	cost
	aside          *Rejection
	marked, partly bool
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
		resources: quantity.NewTable(), mentions: newMentions(),
		pods: map[string]podRecord{}, shapes: map[string]*shapeRecord{}, nodes: map[string]*nodeRecord{},
		strays: map[string]map[string]*Pod{}, pools: map[string]*poolRecord{}, daemons: map[string]*daemonRecord{},
		pdbs:  map[string]*PDBSpec{},
		types: map[*Catalogue]*TypeIndex{}, dirtyNodes: map[string]bool{}, dirtyShapes: map[string]*shapeRecord{},
		last: &Snapshot{}, markNumbers: map[string]int{}, topology: map[string]int{}, classes: map[string]*class{}, values: valueTable{},
	}
	return b
}

// newMentions are of the keys that have a meaning here.
func newMentions() *label.Mentions {
	m := label.NewMentions()
	for _, key := range []string{LabelPool, LabelCapacityType, LabelType, LabelZone, LabelHostname} {
		m.Key(key)
	}
	return m
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
	for key := range b.topology {
		if _, has := n.spec.Labels[key]; has {
			b.unmentioned++
		}
	}
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
	}
	b.mentionOffers(c)
}

func (b *Builder) mentionOffers(c *Catalogue) {
	if c == nil {
		return
	}
	for i := range c.Types {
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
	b.admit()
	b.forget()
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
	b.freezePDBs(&s)
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
