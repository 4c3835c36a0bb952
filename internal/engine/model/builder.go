package model

import (
	"bytes"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Builder accepts changes of the cluster, one at a time, and freezes its state into Snapshots. It has a record for each
// object. What objects have in common is in the interner, and what snapshots share in the freezer.
//
// A Builder is not safe for concurrent use.
type Builder struct {
	*records
	shared  *interner
	freezer *freezer
	version uint64
	// daemonsChanged says that DaemonSets may be admitted or set aside.
	daemonsChanged bool
}

// records are the objects of the cluster, with the sum of the usage of its pods on each node.
type records struct {
	pods  map[string]podRecord
	nodes map[string]*nodeRecord
	// strays holds pods that are bound to unknown nodes, by node name.
	strays  map[string]map[string]*Pod
	pools   map[string]*poolRecord
	quotas  map[string]*QuotaSpec
	daemons map[string]*daemonRecord
	pdbs    map[string]*PDBSpec
}

// podRecord is a pod and, while it is pending, its index among the pending pods of its shape.
type podRecord struct {
	pod *Pod
	at  int
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
	r := &records{
		pods: map[string]podRecord{}, nodes: map[string]*nodeRecord{}, strays: map[string]map[string]*Pod{},
		pools: map[string]*poolRecord{}, quotas: map[string]*QuotaSpec{}, daemons: map[string]*daemonRecord{}, pdbs: map[string]*PDBSpec{},
	}
	shared := newInterner()
	return &Builder{records: r, shared: shared, freezer: newFreezer(r, shared)}
}

// Expect makes room for pods in a builder without any, so that it does not grow pod by pod.
func (b *Builder) Expect(pods int) { b.pods = make(map[string]podRecord, pods) }

// UpsertNode adds or replaces the node. Pods that were bound to its name before it was known are now on it.
func (b *Builder) UpsertNode(spec NodeSpec) {
	b.version++
	b.shared.mentionNode(&spec)
	b.shared.uses.offer(1, spec.Capacity, spec.Allocatable, spec.Requests)
	b.shared.taints.add(1, spec.Taints)
	b.freezer.dirtyNodes[spec.Name] = true
	if n := b.nodes[spec.Name]; n != nil {
		b.shared.uses.offer(-1, n.spec.Capacity, n.spec.Allocatable, n.spec.Requests)
		b.shared.taints.add(-1, n.spec.Taints)
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

// DeleteNode removes the node. Its pods are kept for a node with the same name.
func (b *Builder) DeleteNode(name string) {
	n := b.nodes[name]
	if n == nil {
		return
	}
	b.version++
	delete(b.nodes, name)
	b.freezer.dirtyNodes[name] = true
	b.shared.releaseDomains(n.spec.Labels)
	b.shared.uses.offer(-1, n.spec.Capacity, n.spec.Allocatable, n.spec.Requests)
	b.shared.taints.add(-1, n.spec.Taints)
	b.freezer.ledger.Release(n.use)
	for _, pod := range n.pods {
		b.bind(pod)
	}
}

// UpsertPool adds or replaces the pool.
func (b *Builder) UpsertPool(spec PoolSpec) {
	b.version++
	b.freezer.poolsDirty = true
	b.shared.offer(spec.Requirements)
	b.shared.uses.offer(1, limitedResources(spec.Limits))
	b.shared.taints.add(1, spec.knownTaints())
	if spec.Catalog != nil {
		b.shared.mentionCatalog(spec.Catalog)
	}
	p := b.pools[spec.Name]
	if p == nil {
		p = &poolRecord{}
		b.pools[spec.Name] = p
	} else {
		b.shared.uses.offer(-1, limitedResources(p.spec.Limits))
		b.shared.taints.add(-1, p.spec.knownTaints())
	}
	if p.spec == nil || p.spec.Catalog != spec.Catalog || p.spec.Static != spec.Static {
		b.freezer.dirtyNodesOf(spec.Name)
	}
	p.spec, p.dirty = &spec, true
}

// OfferPrices adds a catalog from which claims without a pool get their prices if no pool has them.
func (b *Builder) OfferPrices(c *Catalog) {
	b.version++
	b.freezer.offerPrices(c)
}

// DeletePool removes the pool.
func (b *Builder) DeletePool(name string) {
	p := b.pools[name]
	if p == nil {
		return
	}
	b.version++
	b.freezer.poolsDirty = true
	b.shared.uses.offer(-1, limitedResources(p.spec.Limits))
	b.shared.taints.add(-1, p.spec.knownTaints())
	delete(b.pools, name)
	b.freezer.dirtyNodesOf(name)
}

// UpsertDaemon adds or replaces the DaemonSet.
func (b *Builder) UpsertDaemon(spec DaemonSpec) {
	b.version++
	b.freezer.daemonsDirty, b.daemonsChanged = true, true
	if old := b.daemons[spec.UID]; old != nil {
		b.dropDaemon(old, &spec)
	}
	d := &daemonRecord{spec: &spec, request: newRequest(spec.Requests, nil), priced: newPriced(spec.Alternatives, nil, len(spec.Terms), nil)}
	b.shared.uses.ask(1, d.names)
	b.daemons[spec.UID] = d
}

// DeleteDaemon removes the DaemonSet.
func (b *Builder) DeleteDaemon(uid string) {
	if d := b.daemons[uid]; d != nil {
		b.version++
		b.freezer.daemonsDirty, b.daemonsChanged = true, true
		b.dropDaemon(d, &DaemonSpec{})
		delete(b.daemons, uid)
	}
}

// dropDaemon releases what a DaemonSet names, which has the new specification now.
func (b *Builder) dropDaemon(d *daemonRecord, spec *DaemonSpec) {
	b.shared.uses.ask(-1, d.names)
	same := func(a, b []label.Requirement) bool {
		return bytes.Equal(appendRequirements(nil, a), appendRequirements(nil, b))
	}
	if d.mentioned && !slices.EqualFunc(d.spec.Alternatives, spec.Alternatives, same) {
		b.shared.releaseMentions(d.spec.Alternatives...)
	}
}

// Snapshot freezes the current state. now becomes Snapshot.Now.
func (b *Builder) Snapshot(now time.Time) *Snapshot {
	b.size()
	b.turn(b.shared.admit())
	b.admitDaemons()
	b.forget()
	b.mentionDomains()
	return b.freezer.freeze(now, b.version)
}

// mentionDomains gives every value of new topology keys that nodes and types have its own atom, because domains are
// atoms.
func (b *Builder) mentionDomains() {
	for _, key := range b.shared.newKeys {
		for _, n := range b.nodes {
			b.shared.mentionDomain(key, n.spec.Labels)
		}
		for c := range b.shared.types {
			b.shared.mentionTypes(key, c)
		}
	}
	b.shared.newKeys = nil
}
