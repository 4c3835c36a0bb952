package model

import (
	"bytes"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Builder holds the state of the cluster, accepts one change at a time, and freezes the state into Snapshots.
//
// Representation: a record per pod, node, pool and DaemonSet; shapes of pods and resource and label names interned;
// on every node record the sum of the usage of its pods. A Snapshot is never written after it is returned: a record
// whose frozen form is out of date is in the dirty list and gets a new one at the next Snapshot; lists are copied
// when a member changes. When the set of mentioned label values grows, every row is out of date and everything is
// frozen anew.
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
	// strays holds pods that are bound to unknown nodes, by node name.
	strays  map[string]map[string]*Pod
	pools   map[string]*poolRecord
	quotas  map[string]*QuotaSpec
	daemons map[string]*daemonRecord
	pdbs    map[string]*PDBSpec
	types   map[*Catalog]*TypeIndex
	// typeKeys are the labels that catalogs define.
	typeKeys map[*Catalog]map[string]bool
	// offered are the types of all pools, by the names of the pools. prices are those of OfferPrices.
	offered []*TypeIndex
	prices  map[machineOffering]int64

	// marks, how often shapes use each of them, their numbers by canonical form, and how many of them the frozen
	// lists include. topology holds how often shapes use a label key as topology key.
	marks       []Mark
	users       []int
	markNumbers map[string]int
	counted     int
	topology    map[string]int
	// selectors holds the compiled selectors of the marks; see selection.go.
	selectors      []compiled
	newestSelector string
	values         valueTable
	classes        map[string]*class
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
	// uses says by what the names of resources are used; unsized holds the shapes that name a resource without a number
	// and are in no snapshot yet; volumes is the number of resources that count volumes.
	uses    resourceUse
	unsized []*shapeRecord
	volumes int

	// taints are those of nodes and pools.
	taints taintUse

	dirtyNodes map[string]bool
	// roomsOfClaims are the rooms of claims that the last snapshot encoded.
	roomsOfClaims map[claimRoomsKey]*Rooms
	dirtyShapes   map[string]*shapeRecord
	rejectedDirty bool
	poolsDirty    bool
	daemonsDirty  bool
	// daemonsChanged says that DaemonSets may be admitted or set aside.
	daemonsChanged bool
	pdbsDirty      bool
	quotasDirty    bool

	// ledger counts the nodes of the last snapshot that still exist.
	ledger Ledger
	// last is the last returned snapshot; its lists are shared where nothing changed.
	last      *Snapshot
	signature []byte
	classKey  []byte
	labelKeys []string
}

// podRecord is a pod and, while it is pending, its index among the pending pods of its shape.
type podRecord struct {
	pod *Pod
	at  int
}

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

type nodeRecord struct {
	spec   *NodeSpec
	pods   map[string]*Pod
	used   quantity.Vector
	frozen *Node
	// use is what the ledger counts of it.
	use Use
}

type poolRecord struct {
	spec   *PoolSpec
	frozen *Pool
	dirty  bool
	// shown are the labels that its nodes show.
	shown shown
}

type daemonRecord struct {
	request
	// priced is the cost of its rows (admit.go). mentioned says that its values are.
	priced
	mentioned bool
	spec      *DaemonSpec
	frozen    *Daemon
}

// NewBuilder returns an empty builder.
func NewBuilder() *Builder {
	b := &Builder{
		resources: quantity.NewTable(), uses: newResourceUse(), mentions: newMentions(),
		pods: map[string]podRecord{}, shapes: map[string]*shapeRecord{}, nodes: map[string]*nodeRecord{},
		strays: map[string]map[string]*Pod{}, pools: map[string]*poolRecord{}, quotas: map[string]*QuotaSpec{},
		daemons: map[string]*daemonRecord{},
		pdbs:    map[string]*PDBSpec{},
		types:   map[*Catalog]*TypeIndex{}, typeKeys: map[*Catalog]map[string]bool{}, dirtyNodes: map[string]bool{},
		dirtyShapes: map[string]*shapeRecord{},
		last:        &Snapshot{}, markNumbers: map[string]int{}, topology: map[string]int{}, classes: map[string]*class{}, values: valueTable{},
		taints: taintUse{counts: map[Taint]int{}},
		ledger: newLedger(nil, nil, nil, nil),
	}
	return b
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

// UpsertNode adds or replaces the node. Pods that were bound to its name before it was known are now on it.
func (b *Builder) UpsertNode(spec NodeSpec) {
	b.version++
	b.mentionNode(&spec)
	b.uses.offer(1, spec.Capacity, spec.Allocatable, spec.Requests)
	b.taints.add(1, spec.Taints)
	b.dirtyNodes[spec.Name] = true
	for key := range b.topology {
		b.mentionDomain(key, spec.Labels)
	}
	if n := b.nodes[spec.Name]; n != nil {
		b.uses.offer(-1, n.spec.Capacity, n.spec.Allocatable, n.spec.Requests)
		b.taints.add(-1, n.spec.Taints)
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

// mentionNode mentions the requirements and the label keys of a node.
func (b *Builder) mentionNode(spec *NodeSpec) {
	b.offer(spec.Requirements)
	for key := range spec.Labels {
		b.mentions.Carry(key)
	}
}

// offer mentions requirements that nodes will satisfy.
func (b *Builder) offer(reqs []label.Requirement) {
	for _, r := range reqs {
		b.mentions.Carry(r.Key)
		b.mentions.Requirement(r)
	}
}

// DeleteNode removes the node. Its pods are kept for a node with the same name.
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
	b.uses.offer(-1, n.spec.Capacity, n.spec.Allocatable, n.spec.Requests)
	b.taints.add(-1, n.spec.Taints)
	b.ledger.Release(n.use)
	for _, pod := range n.pods {
		b.bind(pod)
	}
}

// UpsertPool adds or replaces the pool.
func (b *Builder) UpsertPool(spec PoolSpec) {
	b.version++
	b.poolsDirty = true
	b.offer(spec.Requirements)
	b.uses.offer(1, limitedResources(spec.Limits))
	b.taints.add(1, spec.knownTaints())
	if spec.Catalog != nil {
		b.mentionCatalog(spec.Catalog)
	}
	p := b.pools[spec.Name]
	if p == nil {
		p = &poolRecord{}
		b.pools[spec.Name] = p
	} else {
		b.uses.offer(-1, limitedResources(p.spec.Limits))
		b.taints.add(-1, p.spec.knownTaints())
	}
	if p.spec == nil || p.spec.Catalog != spec.Catalog || p.spec.Static != spec.Static {
		b.dirtyNodesOf(spec.Name)
	}
	p.spec, p.dirty = &spec, true
}

// machineOffering is what a machine was launched as.
type machineOffering struct{ instanceType, zone, capacityType string }

// OfferPrices adds a catalog from which claims without a pool get their prices if no pool has them.
func (b *Builder) OfferPrices(c *Catalog) {
	b.version++
	if b.prices == nil {
		b.prices = map[machineOffering]int64{}
	}
	for i := range c.Types {
		for _, o := range c.Types[i].Offerings {
			if at := (machineOffering{c.Types[i].Name, o.Zone, o.CapacityType}); b.prices[at] == 0 {
				b.prices[at] = o.Price
			}
		}
	}
	b.repriceOrphans()
}

// mentionCatalog gives every zone, capacity type and reservation in the catalog its own atom: bins are pinned to
// them.
func (b *Builder) mentionCatalog(c *Catalog) {
	if _, known := b.types[c]; known {
		return
	}
	b.types[c] = nil
	for key := range b.topology {
		b.mentionTypes(key, c)
	}
	b.offerTypes(c, 1)
	b.mentionOffers(c)
}

// offerTypes counts the resources of a catalog, once more or once less.
func (b *Builder) offerTypes(c *Catalog, by int) {
	if c == nil {
		return
	}
	for i := range c.Types {
		b.uses.offer(by, c.Types[i].Capacity, c.Types[i].Allocatable)
	}
}

func (b *Builder) mentionOffers(c *Catalog) {
	if c == nil {
		return
	}
	for key := range c.WellKnown {
		b.mentions.Carry(key)
	}
	for i := range c.Types {
		for _, r := range c.Types[i].Requirements {
			b.mentions.Carry(r.Key)
		}
		for _, o := range c.Types[i].Offerings {
			b.mentions.Value(LabelZone, o.Zone)
			b.mentions.Value(LabelCapacityType, o.CapacityType)
			b.offer(o.Requirements)
		}
	}
}

// DeletePool removes the pool.
func (b *Builder) DeletePool(name string) {
	p := b.pools[name]
	if p == nil {
		return
	}
	b.version++
	b.poolsDirty = true
	b.uses.offer(-1, limitedResources(p.spec.Limits))
	b.taints.add(-1, p.spec.knownTaints())
	delete(b.pools, name)
	b.dirtyNodesOf(name)
}

// dirtyNodesOf marks the nodes whose prices and types depend on the pool's catalog as dirty.
func (b *Builder) dirtyNodesOf(pool string) {
	for name, n := range b.nodes {
		if n.spec.Pool == pool {
			b.dirtyNodes[name] = true
		}
	}
}

// UpsertDaemon adds or replaces the DaemonSet.
func (b *Builder) UpsertDaemon(spec DaemonSpec) {
	b.version++
	b.daemonsDirty, b.daemonsChanged = true, true
	if old := b.daemons[spec.UID]; old != nil {
		b.dropDaemon(old, &spec)
	}
	d := &daemonRecord{spec: &spec, request: newRequest(spec.Requests, nil), priced: newPriced(spec.Alternatives, nil, len(spec.Terms), nil)}
	b.uses.ask(1, d.names)
	b.daemons[spec.UID] = d
}

// DeleteDaemon removes the DaemonSet.
func (b *Builder) DeleteDaemon(uid string) {
	if d := b.daemons[uid]; d != nil {
		b.version++
		b.daemonsDirty, b.daemonsChanged = true, true
		b.dropDaemon(d, &DaemonSpec{})
		delete(b.daemons, uid)
	}
}

// dropDaemon releases what a DaemonSet names, which has the new specification now.
func (b *Builder) dropDaemon(d *daemonRecord, spec *DaemonSpec) {
	b.uses.ask(-1, d.names)
	same := func(a, b []label.Requirement) bool {
		return bytes.Equal(appendRequirements(nil, a), appendRequirements(nil, b))
	}
	if d.mentioned && !slices.EqualFunc(d.spec.Alternatives, spec.Alternatives, same) {
		b.releaseMentions(d.spec.Alternatives...)
	}
}

// Snapshot freezes the current state. now becomes Snapshot.Now.
func (b *Builder) Snapshot(now time.Time) *Snapshot {
	b.number()
	b.admit()
	b.admitDaemons()
	b.forget()
	if space := b.mentions.Space(); space != b.space {
		b.space = space
		b.forgetRows()
	}
	b.noticeVolumes()
	b.noticeMarks()
	b.noticeTaints()
	b.noticeShown(now)
	s := *b.last
	s.Now, s.Version, s.Space, s.taints = now, b.version, b.space, b.taints.list
	b.freezeDaemons(&s)
	limits := b.freezeLimits(&s)
	b.freezeLedger(&s, b.freezeNodes(&s), limits)
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
