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
func (f *freezer) freezeLimits(s *Snapshot) bool {
	if !f.poolsDirty && !f.quotasDirty {
		return false
	}
	if f.poolsDirty {
		f.freezePools(s)
	}
	f.freezeQuotas(s)
	f.poolsDirty, f.quotasDirty = false, false
	return true
}

func (f *freezer) freezePools(s *Snapshot) {
	used := map[*Catalog]bool{}
	for _, p := range f.from.pools {
		used[p.spec.Catalog] = true
	}
	f.shared.keepCatalogs(used)
	e := poolEncoder{shared: f.shared, daemons: f.daemonList(), rooms: map[roomsKey]*Rooms{}}
	for _, p := range f.from.pools {
		current := p.frozen != nil && !p.dirty && p.frozen.Types == f.shared.types[p.spec.Catalog] && p.frozen.space() == f.shared.space
		if p.dirty = !current; current && p.frozen.Rooms != nil {
			e.rooms[e.roomsKey(p.frozen)] = p.frozen.Rooms
		}
	}
	s.Pools = make([]*Pool, 0, len(f.from.pools))
	for _, p := range f.from.pools {
		if p.dirty {
			p.frozen, p.dirty = e.encode(p, f.shared.typesOf(p.spec.Catalog)), false
		}
		s.Pools = append(s.Pools, p.frozen)
	}
	slices.SortFunc(s.Pools, comparePools)
	var offered []*TypeIndex
	for _, name := range slices.Sorted(maps.Keys(f.from.pools)) {
		if types := f.from.pools[name].frozen.Types; types != nil && !slices.Contains(offered, types) {
			offered = append(offered, types)
		}
	}
	if !slices.Equal(offered, f.offered) {
		f.offered = offered
		f.repriceOrphans()
	}
}

// repriceOrphans marks the nodes of claims without a pool whose price has changed as dirty.
func (f *freezer) repriceOrphans() {
	for name, n := range f.from.nodes {
		if n.frozen != nil && n.spec.Claim != "" && f.from.pools[n.spec.Pool] == nil && f.priceElsewhere(n.frozen) != n.frozen.Price {
			f.dirtyNodes[name] = true
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

func (f *freezer) daemonList() []*Daemon {
	list := make([]*Daemon, 0, len(f.from.daemons))
	for _, d := range f.from.daemons {
		if d.frozen != nil {
			list = append(list, d.frozen)
		}
	}
	return list
}

// freezeLedger charges the ledger for the fresh nodes, or for all nodes if limits have changed.
func (f *freezer) freezeLedger(s *Snapshot, fresh []*nodeRecord, limits bool) {
	if fresh == nil && !limits {
		return
	}
	if limits {
		f.ledger = newLedger(f.shared.space, f.shared.resources, s.Pools, s.Quotas)
		fresh = slices.Collect(maps.Values(f.from.nodes))
	}
	for _, n := range fresh {
		n.use = f.ledger.useOf(n.frozen)
		f.ledger.Charge(n.use)
	}
	s.Ledger = f.ledger.Clone()
}

// freezeNodes returns the nodes that are frozen anew, which the ledger does not count any more; nil if no node has
// changed.
func (f *freezer) freezeNodes(s *Snapshot) []*nodeRecord {
	if len(f.dirtyNodes) == 0 {
		return nil
	}
	fresh, records := make([]*Node, 0, len(f.dirtyNodes)), make([]*nodeRecord, 0, len(f.dirtyNodes))
	f.roomsOfClaims = map[claimRoomsKey]*Rooms{}
	for name := range f.dirtyNodes {
		n := f.from.nodes[name]
		if n == nil {
			continue
		}
		f.ledger.Release(n.use)
		n.frozen = f.encodeNode(n, s.Daemons)
		fresh, records = append(fresh, n.frozen), append(records, n)
	}
	stale := func(n *Node) bool { return f.dirtyNodes[n.Name] }
	s.Nodes = merge(s.Nodes, fresh, stale, compareNodes)
	s.named = merge(s.named, fresh, stale, compareNames)
	fresh = slices.DeleteFunc(fresh, func(n *Node) bool { return n.Claim == "" })
	s.claimed = merge(s.claimed, fresh, stale, compareClaims)
	f.dirtyNodes = map[string]bool{}
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

func (f *freezer) encodeNode(record *nodeRecord, daemons []*Daemon) *Node {
	n := &Node{NodeSpec: record.spec, Used: record.used.Clone(), Reservations: recorded(record.spec)}
	n.Pods = make([]*Pod, 0, len(record.pods))
	for _, p := range record.pods {
		n.Pods = append(n.Pods, p)
	}
	slices.SortFunc(n.Pods, func(a, b *Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
	f.shared.countMarks(n)
	n.Ports, n.Claims = usedTogether(n.Pods)
	n.Used = f.shared.withShared(n.Used, n.Pods)
	var types *TypeIndex
	if pool := f.from.pools[n.Pool]; pool != nil {
		types = f.shared.typesOf(pool.spec.Catalog)
	}
	switch n.Stage {
	case Launching:
		f.encodeClaim(n, types, daemons)
	case Initialized:
		f.encodeReal(n, types)
	default:
		f.encodeReal(n, types)
		f.reserveDaemons(n, daemons)
	}
	if n.Claim != "" && f.from.pools[n.Pool] == nil {
		n.Price = f.priceElsewhere(n)
	}
	if n.cover = f.covers[n.Name]; n.cover != nil {
		n.pay(n.cover)
	}
	n.weigh()
	return n
}

// priceElsewhere returns the price of the node's type, zone and capacity type in the first catalog that has it, 0 for
// none. It is for claims whose pool does not exist: the cloud sells their machines still.
func (f *freezer) priceElsewhere(n *Node) int64 {
	at := machineOffering{n.Labels[LabelType], n.Labels[LabelZone], n.Labels[LabelCapacityType]}
	for _, types := range f.offered {
		if t, known := types.Lookup(at.instanceType); known {
			if price := types.PriceOf(t, at.zone, at.capacityType); price > 0 {
				return price
			}
		}
	}
	return f.prices[at]
}

// encodeReal encodes a node with a machine.
func (f *freezer) encodeReal(n *Node, types *TypeIndex) {
	n.Row = f.shared.space.Labels(n.Labels)
	f.nameNode(n)
	n.Total, n.Usable = f.shared.resources.Vector(n.Capacity), f.shared.capacity(n.Allocatable)
	if types == nil {
		return
	}
	n.ZoneShifted = types.Shifted(n.Labels[LabelZone])
	if t, known := types.Lookup(n.Labels[LabelType]); known {
		n.Price = types.PriceOf(t, n.Labels[LabelZone], n.Labels[LabelCapacityType])
		if n.Stage < Initialized {
			f.limitVolumes(n, types.Usable[t])
		}
	}
}

// nameNode adds information to the row of an existing machine that its labels lack. An unregistered node will have a
// hostname, because every kubelet sets it; a node that registered without one has none. A node that is not initialized
// will be. The name of a node is known only after registration.
func (f *freezer) nameNode(n *Node) {
	if _, has := n.Labels[LabelHostname]; !has && n.Stage < Registered {
		completeRow(f.shared.space, n.Row)
	}
	if n.Stage < Initialized {
		initializeRow(f.shared.space, n.Row)
	}
	if k, known := f.shared.space.Lookup(FieldName); known && n.Stage >= Registered {
		f.shared.space.SetOnly(n.Row, k, f.shared.space.Atom(k, n.Name))
	}
}

// limitVolumes applies the volume limits of the node's type as long as its drivers report none.
func (f *freezer) limitVolumes(n *Node, kind quantity.Vector) {
	for r := range n.Usable {
		if name := f.shared.resources.Name(quantity.Resource(r)); IsVolumeResource(name) && !says(n.Allocatable, name) {
			n.Usable[r] = kind.At(quantity.Resource(r))
		}
	}
}

// reserveDaemons reserves the requests and the host ports of the daemons that the node admits and that are not on it
// yet.
func (f *freezer) reserveDaemons(n *Node, daemons []*Daemon) {
	row := n.Row
	if shown := f.shownOf(n.Pool); shown != nil {
		row = slices.Clone(row)
		shown.add(f.shared.space, row, n.Labels[LabelType])
	}
	for _, d := range daemons {
		if !d.isOn(n) && d.Admits(f.shared.space, row, n.Taints) {
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

func (f *freezer) freezeDaemons(s *Snapshot) {
	if !f.daemonsDirty {
		return
	}
	f.daemonsDirty, f.poolsDirty = false, true
	for _, p := range f.from.pools {
		p.dirty = true
	}
	s.Daemons, s.DaemonsAside = make([]*Daemon, 0, len(f.from.daemons)), nil
	for _, d := range f.from.daemons {
		if d.aside != nil {
			s.DaemonsAside = append(s.DaemonsAside, AsideDaemon{d.spec, d.aside})
			continue
		}
		if d.frozen == nil {
			rows, _ := encodeAlternatives(f.shared.space, d.spec.Alternatives)
			requests, _ := f.shared.sized(&d.request)
			d.frozen = &Daemon{DaemonSpec: d.spec, Rows: rows, Requests: requests}
		}
		s.Daemons = append(s.Daemons, d.frozen)
	}
	slices.SortFunc(s.Daemons, func(a, b *Daemon) int { return compareDaemons(a.DaemonSpec, b.DaemonSpec) })
	slices.SortFunc(s.DaemonsAside, func(a, b AsideDaemon) int { return compareDaemons(a.DaemonSpec, b.DaemonSpec) })
	for name, n := range f.from.nodes {
		if n.spec.Stage != Initialized {
			f.dirtyNodes[name] = true
		}
	}
}

func compareDaemons(a, b *DaemonSpec) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
}

func (f *freezer) freezeRejected(s *Snapshot) {
	if !f.rejectedDirty {
		return
	}
	f.rejectedDirty = false
	s.Rejected = nil
	for _, record := range f.from.pods {
		if p := record.pod; p.state == Pending && p.Rejected != nil && p.Virtual == "" {
			s.Rejected = append(s.Rejected, p)
		}
	}
	slices.SortFunc(s.Rejected, comparePods)
}
