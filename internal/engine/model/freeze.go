package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Conversion of records to the lists of a snapshot. Each freeze function replaces one list of the snapshot if
// something in it changed, and shares it otherwise. The order matters only in one direction: nodes read the pools'
// types and the daemons, the ledger reads the nodes.

// freezeLimits encodes and lists the pools and quotas, and reports whether any has changed.
func (b *Builder) freezeLimits(s *Snapshot) bool {
	if !b.poolsDirty && !b.quotasDirty {
		return false
	}
	if b.poolsDirty {
		b.freezePools(s)
	}
	b.freezeQuotas(s)
	b.poolsDirty, b.quotasDirty = false, false
	return true
}

func (b *Builder) freezePools(s *Snapshot) {
	b.dropCatalogs()
	e := poolEncoder{Builder: b, daemons: b.daemonList(), rooms: map[roomsKey]*Rooms{}}
	for _, p := range b.pools {
		current := p.frozen != nil && !p.dirty && p.frozen.Types == b.types[p.spec.Catalog] && p.frozen.space() == b.space
		if p.dirty = !current; current && p.frozen.Rooms != nil {
			e.rooms[e.roomsKey(p.frozen)] = p.frozen.Rooms
		}
	}
	s.Pools = make([]*Pool, 0, len(b.pools))
	for _, p := range b.pools {
		if p.dirty {
			p.frozen, p.dirty = e.encode(p, b.typesOf(p.spec.Catalog)), false
		}
		s.Pools = append(s.Pools, p.frozen)
	}
	slices.SortFunc(s.Pools, comparePools)
	var offered []*TypeIndex
	for _, name := range slices.Sorted(maps.Keys(b.pools)) {
		if types := b.pools[name].frozen.Types; types != nil && !slices.Contains(offered, types) {
			offered = append(offered, types)
		}
	}
	if !slices.Equal(offered, b.offered) {
		b.offered = offered
		b.repriceOrphans()
	}
}

// repriceOrphans marks the nodes of claims without a pool whose price has changed as dirty.
func (b *Builder) repriceOrphans() {
	for name, n := range b.nodes {
		if n.frozen != nil && n.spec.Claim != "" && b.pools[n.spec.Pool] == nil && b.priceElsewhere(n.frozen) != n.frozen.Price {
			b.dirtyNodes[name] = true
		}
	}
}

// space returns the label space in which the pool was encoded.
func (p *Pool) space() *label.Space {
	if p.Types == nil {
		return nil
	}
	return p.Types.space
}

func (b *Builder) daemonList() []*Daemon {
	list := make([]*Daemon, 0, len(b.daemons))
	for _, d := range b.daemons {
		if d.frozen != nil {
			list = append(list, d.frozen)
		}
	}
	return list
}

// typesOf returns the index of the catalog, built once per catalog and label space.
func (b *Builder) typesOf(c *Catalog) *TypeIndex {
	if c == nil {
		return nil
	}
	if b.types[c] == nil {
		b.types[c] = newTypeIndex(b, c)
	}
	return b.types[c]
}

// dropCatalogs removes the catalogs that no pool references any more.
func (b *Builder) dropCatalogs() {
	used := map[*Catalog]bool{}
	for _, p := range b.pools {
		used[p.spec.Catalog] = true
	}
	for c := range b.types {
		if !used[c] {
			b.offerTypes(c, -1)
			delete(b.types, c)
			delete(b.typeKeys, c)
		}
	}
}

// freezeLedger charges the ledger for the fresh nodes, or for all nodes if limits have changed.
func (b *Builder) freezeLedger(s *Snapshot, fresh []*nodeRecord, limits bool) {
	if fresh == nil && !limits {
		return
	}
	if limits {
		b.ledger = newLedger(b.space, b.resources, s.Pools, s.Quotas)
		fresh = slices.Collect(maps.Values(b.nodes))
	}
	for _, n := range fresh {
		n.use = b.ledger.useOf(n.frozen)
		b.ledger.Charge(n.use)
	}
	s.Ledger = b.ledger.Clone()
}

// freezeNodes returns the nodes that are frozen anew, which the ledger does not count any more; nil if no node has
// changed.
func (b *Builder) freezeNodes(s *Snapshot) []*nodeRecord {
	if len(b.dirtyNodes) == 0 {
		return nil
	}
	fresh, records := make([]*Node, 0, len(b.dirtyNodes)), make([]*nodeRecord, 0, len(b.dirtyNodes))
	b.roomsOfClaims = map[claimRoomsKey]*Rooms{}
	for name := range b.dirtyNodes {
		n := b.nodes[name]
		if n == nil {
			continue
		}
		b.ledger.Release(n.use)
		n.frozen = b.encodeNode(n, s.Daemons)
		fresh, records = append(fresh, n.frozen), append(records, n)
	}
	stale := func(n *Node) bool { return b.dirtyNodes[n.Name] }
	s.Nodes = merge(s.Nodes, fresh, stale, compareNodes)
	s.named = merge(s.named, fresh, stale, compareNames)
	fresh = slices.DeleteFunc(fresh, func(n *Node) bool { return n.Claim == "" })
	s.claimed = merge(s.claimed, fresh, stale, compareClaims)
	b.dirtyNodes = map[string]bool{}
	return records
}

// compareNodes orders initialized nodes first, then by name.
func compareNodes(a, b *Node) int {
	return cmp.Or(-cmp.Compare(bit(a.Stage == Initialized), bit(b.Stage == Initialized)), strings.Compare(a.Name, b.Name))
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// merge returns sorted without its stale members and with the fresh ones, as a new slice. It sorts fresh.
func merge[T any](sorted, fresh []T, stale func(T) bool, compare func(a, b T) int) []T {
	slices.SortFunc(fresh, compare)
	merged := make([]T, 0, len(sorted)+len(fresh))
	for _, old := range sorted {
		if stale(old) {
			continue
		}
		for len(fresh) > 0 && compare(fresh[0], old) < 0 {
			merged, fresh = append(merged, fresh[0]), fresh[1:]
		}
		merged = append(merged, old)
	}
	return append(merged, fresh...)
}

func (b *Builder) encodeNode(record *nodeRecord, daemons []*Daemon) *Node {
	n := &Node{NodeSpec: record.spec, Used: record.used.Clone(), Reservations: recorded(record.spec)}
	n.Pods = make([]*Pod, 0, len(record.pods))
	for _, p := range record.pods {
		n.Pods = append(n.Pods, p)
	}
	slices.SortFunc(n.Pods, func(a, b *Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
	b.countMarks(n)
	n.Ports, n.Claims = usedTogether(n.Pods)
	n.Used = b.withShared(n.Used, n.Pods)
	var types *TypeIndex
	if pool := b.pools[n.Pool]; pool != nil {
		types = b.typesOf(pool.spec.Catalog)
	}
	switch n.Stage {
	case Launching:
		b.encodeClaim(n, types, daemons)
	case Initialized:
		b.encodeReal(n, types)
	default:
		b.encodeReal(n, types)
		b.reserveDaemons(n, daemons)
	}
	if n.Claim != "" && b.pools[n.Pool] == nil {
		n.Price = b.priceElsewhere(n)
	}
	n.weigh()
	return n
}

// priceElsewhere returns the price of the node's type, zone and capacity type in the first catalog that has it, 0 for
// none. It is for claims whose pool does not exist: the cloud sells their machines still.
func (b *Builder) priceElsewhere(n *Node) int64 {
	at := machineOffering{n.Labels[LabelType], n.Labels[LabelZone], n.Labels[LabelCapacityType]}
	for _, types := range b.offered {
		if t, known := types.Lookup(at.instanceType); known {
			if price := types.PriceOf(t, at.zone, at.capacityType); price > 0 {
				return price
			}
		}
	}
	return b.prices[at]
}

// encodeReal encodes a node with a machine.
func (b *Builder) encodeReal(n *Node, types *TypeIndex) {
	n.Row = b.space.Labels(n.Labels)
	b.nameNode(n)
	n.Total, n.Usable = b.resources.Vector(n.Capacity), b.capacity(n.Allocatable)
	if types == nil {
		return
	}
	if t, known := types.Lookup(n.Labels[LabelType]); known {
		n.Price = types.PriceOf(t, n.Labels[LabelZone], n.Labels[LabelCapacityType])
		if n.Stage < Initialized {
			b.limitVolumes(n, types.Usable[t])
		}
	}
}

// nameNode adds information to the row of an existing machine that its labels lack. An unregistered node will have a
// hostname, because every kubelet sets it; a node that registered without one has none. A node that is not initialized
// will be. The name of a node is known only after registration.
func (b *Builder) nameNode(n *Node) {
	if _, has := n.Labels[LabelHostname]; !has && n.Stage < Registered {
		completeRow(b.space, n.Row)
	}
	if n.Stage < Initialized {
		initializeRow(b.space, n.Row)
	}
	if k, known := b.space.Lookup(FieldName); known && n.Stage >= Registered {
		b.space.SetOnly(n.Row, k, b.space.Atom(k, n.Name))
	}
}

// limitVolumes applies the volume limits of the node's type as long as its drivers report none.
func (b *Builder) limitVolumes(n *Node, kind quantity.Vector) {
	for r := range n.Usable {
		if name := b.resources.Name(quantity.Resource(r)); IsVolumeResource(name) && !says(n.Allocatable, name) {
			n.Usable[r] = kind.At(quantity.Resource(r))
		}
	}
}

// reserveDaemons reserves the requests and the host ports of the daemons that the node admits and that are not on it
// yet.
func (b *Builder) reserveDaemons(n *Node, daemons []*Daemon) {
	row := n.Row
	if shown := b.shownOf(n.Pool); shown != nil {
		row = slices.Clone(row)
		shown.add(b.space, row, n.Labels[LabelType])
	}
	for _, d := range daemons {
		if !d.isOn(n) && d.Admits(b.space, row, n.Taints) {
			n.Reserved = n.Reserved.Add(d.Requests)
			n.reservePorts(d.HostPorts)
		}
	}
}

func (n *Node) reservePorts(ports []HostPort) {
	for _, port := range ports {
		if !slices.Contains(n.Ports, port) {
			n.Ports = append(n.Ports, port)
		}
	}
}

func (d *Daemon) isOn(n *Node) bool {
	return slices.ContainsFunc(n.Pods, func(p *Pod) bool { return p.Controller.UID == d.UID })
}

func (b *Builder) freezeDaemons(s *Snapshot) {
	if !b.daemonsDirty {
		return
	}
	b.daemonsDirty, b.poolsDirty = false, true
	for _, p := range b.pools {
		p.dirty = true
	}
	s.Daemons, s.DaemonsAside = make([]*Daemon, 0, len(b.daemons)), nil
	for _, d := range b.daemons {
		if d.aside != nil {
			s.DaemonsAside = append(s.DaemonsAside, AsideDaemon{d.spec, d.aside})
			continue
		}
		if d.frozen == nil {
			rows, _ := encodeAlternatives(b.space, d.spec.Alternatives)
			requests, _ := b.sized(&d.request)
			d.frozen = &Daemon{DaemonSpec: d.spec, Rows: rows, Requests: requests}
		}
		s.Daemons = append(s.Daemons, d.frozen)
	}
	slices.SortFunc(s.Daemons, func(a, b *Daemon) int { return compareDaemons(a.DaemonSpec, b.DaemonSpec) })
	slices.SortFunc(s.DaemonsAside, func(a, b AsideDaemon) int { return compareDaemons(a.DaemonSpec, b.DaemonSpec) })
	for name, n := range b.nodes {
		if n.spec.Stage != Initialized {
			b.dirtyNodes[name] = true
		}
	}
}

func compareDaemons(a, b *DaemonSpec) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
}

// capacity returns the vector of a node's or type's amounts. Volumes without a limit are unlimited.
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

// withShared adds the shared volumes of the pods, each once.
func (b *Builder) withShared(used quantity.Vector, pods []*Pod) quantity.Vector {
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
			if r, known := b.resources.Lookup(VolumeResource(v.Driver)); known {
				used = grow(used, int(r)+1)
				used[r]++
			}
		}
	}
	return used
}

func (b *Builder) freezeRejected(s *Snapshot) {
	if !b.rejectedDirty {
		return
	}
	b.rejectedDirty = false
	s.Rejected = nil
	for _, record := range b.pods {
		if p := record.pod; p.state == Pending && p.Rejected != nil && p.Virtual == "" {
			s.Rejected = append(s.Rejected, p)
		}
	}
	slices.SortFunc(s.Rejected, comparePods)
}
