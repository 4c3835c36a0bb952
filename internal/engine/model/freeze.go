package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// How records become what a snapshot shows. Each freeze function replaces one list of the snapshot when something in
// it changed and leaves it shared otherwise. Order matters only in one direction: nodes read the pools' types and the
// daemons, usage reads the nodes.

func (b *Builder) freezePools() {
	if !b.poolsDirty {
		return
	}
	b.dropCatalogues()
	for _, p := range b.pools {
		if p.frozen != nil && !p.dirty && p.frozen.Types == b.types[p.spec.Catalogue] && p.frozen.space() == b.space {
			continue
		}
		p.dirty = true
		p.frozen = encodePool(b, p.spec, b.typesOf(p.spec.Catalogue), b.daemonList())
	}
}

// space is the label space the pool was encoded in.
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

// typesOf returns the index of the catalogue, built once per catalogue and label space.
func (b *Builder) typesOf(c *Catalogue) *TypeIndex {
	if c == nil {
		return nil
	}
	if b.types[c] == nil {
		b.types[c] = newTypeIndex(b, c)
	}
	return b.types[c]
}

// dropCatalogues forgets the catalogues that no pool refers to any more.
func (b *Builder) dropCatalogues() {
	used := map[*Catalogue]bool{}
	for _, p := range b.pools {
		used[p.spec.Catalogue] = true
	}
	for c := range b.types {
		if !used[c] {
			delete(b.types, c)
		}
	}
}

// freezeUsage brings the pools' usage up to date and lists them.
func (b *Builder) freezeUsage(s *Snapshot) {
	changed := b.poolsDirty
	for _, p := range b.pools {
		if !p.dirty {
			continue
		}
		changed, p.dirty = true, false
		fresh := *p.frozen
		fresh.Used, fresh.Nodes = p.used.Clone(), p.nodes
		p.frozen = &fresh
	}
	b.poolsDirty = false
	if !changed {
		return
	}
	s.Pools = make([]*Pool, 0, len(b.pools))
	for _, p := range b.pools {
		s.Pools = append(s.Pools, p.frozen)
	}
	slices.SortFunc(s.Pools, comparePools)
}

// count makes the frozen node part of its pool's usage, in place of what it was before.
func (n *nodeRecord) count(p *poolRecord) {
	if n.frozen.Deleting || p == nil {
		return
	}
	n.counted = p
	p.add(n.frozen.Total, 1)
}

func (n *nodeRecord) uncount() {
	if n.counted != nil {
		n.counted.add(n.frozen.Total, -1)
		n.counted = nil
	}
}

func (p *poolRecord) add(total quantity.Vector, sign int) {
	p.used = grow(p.used, len(total))
	p.used.AddScaled(total, int64(sign))
	p.nodes += sign
	p.dirty = true
}

func (b *Builder) freezeNodes(s *Snapshot) {
	if len(b.dirtyNodes) == 0 {
		return
	}
	fresh := make([]*Node, 0, len(b.dirtyNodes))
	for name := range b.dirtyNodes {
		n := b.nodes[name]
		if n == nil {
			continue
		}
		n.uncount()
		n.frozen = b.encodeNode(n, s.Daemons)
		n.count(b.pools[n.spec.Pool])
		fresh = append(fresh, n.frozen)
	}
	stale := func(n *Node) bool { return b.dirtyNodes[n.Name] }
	s.Nodes = merge(s.Nodes, fresh, stale, compareNodes)
	s.named = merge(s.named, fresh, stale, compareNames)
	fresh = slices.DeleteFunc(fresh, func(n *Node) bool { return n.Claim == "" })
	s.claimed = merge(s.claimed, fresh, stale, compareClaims)
	b.dirtyNodes = map[string]bool{}
}

// compareNodes puts initialised nodes first, then goes by name (core specification 3.6).
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
	n := &Node{NodeSpec: record.spec, Used: record.used.Clone()}
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
		types = b.typesOf(pool.spec.Catalogue)
	}
	switch n.Stage {
	case Launching:
		b.encodeClaim(n, types, daemons)
	case Initialized:
		b.encodeReal(n, types)
	default:
		b.encodeReal(n, types)
		n.Reserved = b.reservation(n, daemons)
	}
	n.weigh()
	return n
}

// encodeReal encodes a node whose machine exists.
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

// nameNode adds to the row of a machine that exists what its labels do not say. One that has not registered will have a
// hostname, because every kubelet sets it; what has registered without one has none. Only then is its name known.
func (b *Builder) nameNode(n *Node) {
	if _, has := n.Labels[LabelHostname]; !has && n.Stage < Registered {
		nameHost(b.space, n.Row)
	}
	if k, known := b.space.Lookup(FieldName); known && n.Stage >= Registered {
		b.space.SetOnly(n.Row, k, b.space.Atom(k, n.Name))
	}
}

// limitVolumes holds a node to its type's word on volumes as long as its drivers have not given theirs.
func (b *Builder) limitVolumes(n *Node, kind quantity.Vector) {
	for r := range n.Usable {
		if name := b.resources.Name(quantity.Resource(r)); IsVolumeResource(name) && !says(n.Allocatable, name) {
			n.Usable[r] = kind.At(quantity.Resource(r))
		}
	}
}

// encodeClaim encodes a claim that is not launched: it may become any of its types in any of its zones and capacity
// types, so it has what the smallest has beside its daemons, costs what the dearest costs, and counts against limits as
// the largest.
func (b *Builder) encodeClaim(n *Node, types *TypeIndex, daemons []*Daemon) {
	wellKnown := func(string) bool { return false }
	if types != nil {
		wellKnown = func(key string) bool { return types.Catalogue.WellKnown[key] }
	}
	n.Row, _, _ = b.space.Template(wellKnown, n.Requirements)
	nameHost(b.space, n.Row)
	for key, value := range n.Labels {
		if k, known := b.space.Lookup(key); known {
			b.space.SetOnly(n.Row, k, b.space.Atom(k, value))
		}
	}
	if types != nil {
		b.settleCustom(n, wellKnown)
	}
	var set bitset.Set
	if types != nil {
		set = types.Compatible(n.Row)
		b.keepNamed(set, types, n.Requirements)
	}
	requests := b.resources.Vector(n.Requests)
	if set.Empty() {
		n.Total, n.Usable = requests, b.capacity(n.Requests)
		n.Reserved = b.reservation(n, daemons)
		return
	}
	n.Row = types.Hull(n.Row, set)
	n.Usable = b.leastUsable(n, types, set, daemons, requests)
	_, classes := types.Offered(n.Row)
	for t := range set.All() {
		n.Types = append(n.Types, types.Catalogue.Types[t].Name)
		n.Total = n.Total.Max(types.Total[t])
		for _, c := range classes {
			if p := types.Classes[c].Price[t]; p != NoPrice {
				n.Price = max(n.Price, p)
			}
		}
	}
}

// settleCustom: a custom label that the claim does not carry and does not require will not be on its node.
func (b *Builder) settleCustom(n *Node, wellKnown func(string) bool) {
	for _, r := range n.Requirements {
		k, known := b.space.Lookup(r.Key)
		_, carried := n.Labels[r.Key]
		if known && !carried && !wellKnown(r.Key) && r.Key != LabelHostname && b.space.AllowsAbsent(n.Row, k) {
			b.space.SetOnly(n.Row, k, b.space.Absent(k))
		}
	}
}

// leastUsable is what any of the types has left beside the daemons that come to it. The daemons are counted type by
// type: what comes to the large ones only must not be missing on the small. The machine will satisfy the requests,
// whatever today's catalogue says of its types.
func (b *Builder) leastUsable(n *Node, types *TypeIndex, set bitset.Set, daemons []*Daemon, requests quantity.Vector) quantity.Vector {
	var least, most quantity.Vector
	row := make(label.Row, b.space.Words())
	first := true
	for t := range set.All() {
		var overhead quantity.Vector
		b.space.And(row, n.Row, types.Rows[t])
		for _, d := range daemons {
			if d.Admits(b.space, row, n.Taints) {
				overhead = overhead.Add(d.Requests)
			}
		}
		most = most.Max(overhead)
		left := types.Usable[t].Sub(overhead)
		if first {
			least, first = left, false
		}
		least = least.Min(left)
	}
	return least.Max(requests.Sub(most))
}

// nameHost says of a node to be that it has a hostname which nobody knows yet. It is no label that the pool must define:
// every kubelet sets it.
func nameHost(space *label.Space, row label.Row) {
	const unknown = "\x00" // no label value
	if k, known := space.Lookup(LabelHostname); known {
		space.SetOnly(row, k, space.Atom(k, unknown))
	}
}

// keepNamed drops the types that the claim's own list does not name. The list is not left to the row because most of
// its names are mentioned nowhere else.
func (b *Builder) keepNamed(set bitset.Set, types *TypeIndex, reqs []label.Requirement) {
	for _, r := range reqs {
		if r.Key != LabelType || r.Operator != label.In {
			continue
		}
		named := make(map[string]bool, len(r.Values))
		for _, v := range r.Values {
			named[v] = true
		}
		for t := range set.Clone().All() {
			if !named[types.Catalogue.Types[t].Name] {
				set.Remove(t)
			}
		}
	}
}

// reservation is what the daemons will ask for that the node admits and that are not on it yet.
func (b *Builder) reservation(n *Node, daemons []*Daemon) quantity.Vector {
	var sum quantity.Vector
	for _, d := range daemons {
		there := slices.ContainsFunc(n.Pods, func(p *Pod) bool { return p.Controller.UID == d.UID })
		if !there && d.Admits(b.space, n.Row, n.Taints) {
			sum = sum.Add(d.Requests)
		}
	}
	return sum
}

func (b *Builder) freezeGroups(s *Snapshot) {
	if len(b.dirtyShapes) == 0 {
		return
	}
	var fresh []*Group
	for signature := range b.dirtyShapes {
		shape := b.shapes[signature]
		if shape == nil {
			continue
		}
		shape.groups = nil
		for _, part := range b.partition(shape.pending) {
			shape.groups = append(shape.groups, encodeGroup(b.space, shape.Shape, part))
		}
		fresh = append(fresh, shape.groups...)
	}
	stale := func(g *Group) bool { _, dirty := b.dirtyShapes[g.Signature]; return dirty }
	s.Groups = merge(s.Groups, fresh, stale, compareGroups)
	b.dirtyShapes = map[string]*shapeRecord{}
}

// encodeGroup encodes pods of one shape and one class of marks.
func encodeGroup(space *label.Space, shape *Shape, part part) *Group {
	g := &Group{Shape: shape, Pods: part.pods, Matches: part.matching.matches, BlockedBy: part.matching.blocked, key: part.matching.key}
	g.Affinity, g.Contradiction = encodeAlternatives(space, shape.Alternatives)
	g.Rows = g.Affinity
	if len(shape.VolumeAlternatives) > 0 {
		g.Rows = g.withVolumes(space)
	}
	for _, p := range shape.Preferred {
		row, _, ok := space.Encode(p.Requirements)
		if !ok {
			row = nil
		}
		g.Preferences = append(g.Preferences, row)
	}
	return g
}

// withVolumes is every affinity alternative with every volume alternative that does not contradict it.
func (g *Group) withVolumes(space *label.Space) []label.Row {
	volumes, contradiction := encodeAlternatives(space, g.VolumeAlternatives)
	if len(volumes) == 0 {
		g.Contradiction = contradiction
	}
	var rows []label.Row
	for _, affinity := range g.Affinity {
		for _, volume := range volumes {
			both := make(label.Row, space.Words())
			if space.And(both, affinity, volume) {
				rows = append(rows, both)
			} else if len(rows) == 0 {
				g.Contradiction, _ = space.Conflict(affinity, volume)
			}
		}
	}
	return rows
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
			r := b.resources.Intern(VolumeResource(v.Driver))
			used = grow(used, int(r)+1)
			used[r]++
		}
	}
	return used
}

// compareGroups goes by signature; groups of one shape, which only marks tell apart, by their first pods.
func compareGroups(a, b *Group) int {
	return cmp.Or(strings.Compare(a.Signature, b.Signature), comparePods(a.Pods[0], b.Pods[0]))
}

func comparePods(a, b *Pod) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
		strings.Compare(a.UID, b.UID))
}

func (b *Builder) freezeRejected(s *Snapshot) {
	if !b.rejectedDirty {
		return
	}
	b.rejectedDirty = false
	s.Rejected = nil
	for _, record := range b.pods {
		if p := record.pod; p.state == Pending && p.Rejected != nil {
			s.Rejected = append(s.Rejected, p)
		}
	}
	slices.SortFunc(s.Rejected, comparePods)
}
