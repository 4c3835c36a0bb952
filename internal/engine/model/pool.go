package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Pool is an encoded pool with its types.
type Pool struct {
	*PoolSpec
	// Start is the row that a new bin of the pool starts with. If the pool's requirements contradict each other,
	// Valid is false and Contradiction is the key.
	Start         label.Row
	Valid         bool
	Contradiction label.Key
	// Types is the index of the catalog; nil if the pool has none.
	Types *TypeIndex
	// Eligible are the types that satisfy the pool's requirements, whether or not they are available now.
	Eligible bitset.Set
	// Net is, by type, the room for pods net of the daemons on the pool's nodes of the type.
	Net []quantity.Vector
	// Daemons is, by type, the sum of the requests of these daemons.
	Daemons []quantity.Vector
	// DaemonPorts holds, by type, the host ports of these daemons; nil if none uses any.
	DaemonPorts [][]HostPort
	// atLeast[r] holds which types have at least a given amount of r, by Net.
	atLeast []suffixSets
	// Used is the capacity of the pool's nodes that are not being deleted; Nodes is their number.
	Used  quantity.Vector
	Nodes int
	// Limit per resource, NoLimit for none; NodeLimit likewise.
	Limit     []int64
	NodeLimit int64
}

// NoLimit represents a limit that is not set.
const NoLimit = -1

// suffixSets holds, for ascending distinct amounts, the set of types that have at least that much.
type suffixSets struct {
	amounts []int64
	sets    []bitset.Set
}

// WithAtLeast keeps in set the types whose Net is at least need, resource by resource. It returns the first resource
// that leaves no type, or -1.
func (p *Pool) WithAtLeast(set bitset.Set, need quantity.Vector) quantity.Resource {
	for r, n := range need {
		if n <= 0 {
			continue
		}
		if r >= len(p.atLeast) {
			clear(set)
			return quantity.Resource(r)
		}
		s := &p.atLeast[r]
		at, _ := slices.BinarySearch(s.amounts, n)
		if at == len(s.amounts) {
			clear(set)
			return quantity.Resource(r)
		}
		set.AndWith(s.sets[at])
		if set.Empty() {
			return quantity.Resource(r)
		}
	}
	return -1
}

// LimitOf returns the limit of a resource, NoLimit if there is none.
func (p *Pool) LimitOf(r quantity.Resource) int64 {
	if int(r) < len(p.Limit) {
		return p.Limit[r]
	}
	return NoLimit
}

func comparePools(a, b *Pool) int {
	return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(b.Name, a.Name))
}

// encodePool encodes everything except the usage, which changes with every node.
func encodePool(b *Builder, spec *PoolSpec, types *TypeIndex, daemons []*Daemon) *Pool {
	p := &Pool{PoolSpec: spec, Types: types, NodeLimit: NoLimit}
	p.setLimits(b.resources)
	wellKnown := func(string) bool { return false }
	if spec.Catalog != nil {
		wellKnown = func(key string) bool { return spec.Catalog.WellKnown[key] }
	}
	p.Start, p.Contradiction, p.Valid = b.space.Template(wellKnown, spec.Requirements)
	nameHost(b.space, p.Start)
	if !p.Valid || types == nil {
		return p
	}
	p.Eligible = types.Compatible(p.Start)
	p.Net, p.Daemons = netOf(b.space, p, daemons)
	if slices.ContainsFunc(daemons, func(d *Daemon) bool { return len(d.HostPorts) > 0 }) {
		p.DaemonPorts = portsOf(b.space, p, daemons)
	}
	for r := range b.resources.Len() {
		p.atLeast = append(p.atLeast, newSuffixSets(p.Net, quantity.Resource(r), p.Eligible))
	}
	return p
}

func (p *Pool) setLimits(resources *quantity.Table) {
	for _, a := range p.Limits {
		if a.Name == ResourceNodes {
			p.NodeLimit = a.Value
			continue
		}
		r := resources.Intern(a.Name)
		for len(p.Limit) <= int(r) {
			p.Limit = append(p.Limit, NoLimit)
		}
		p.Limit[r] = a.Value
	}
}

// netOf subtracts, from each type's resources, the requests of the daemons on a node of the pool. A daemon counts if
// the labels that the pool leaves open may admit it: the node may run it.
func netOf(space *label.Space, p *Pool, daemons []*Daemon) (net, overhead []quantity.Vector) {
	net, overhead = slices.Clone(p.Types.Usable), make([]quantity.Vector, p.Types.Len())
	row := make(label.Row, space.Words())
	for t := range p.Eligible.All() {
		if !space.And(row, p.Start, p.Types.Rows[t]) {
			continue
		}
		for _, d := range daemons {
			if d.Admits(space, row, p.Taints) {
				overhead[t] = overhead[t].Add(d.Requests)
			}
		}
		net[t] = net[t].Sub(overhead[t])
	}
	return net, overhead
}

// portsOf returns, by type, the host ports of the daemons that its node will run, or may run.
func portsOf(space *label.Space, p *Pool, daemons []*Daemon) [][]HostPort {
	ports := make([][]HostPort, p.Types.Len())
	row := make(label.Row, space.Words())
	for t := range p.Eligible.All() {
		if !space.And(row, p.Start, p.Types.Rows[t]) {
			continue
		}
		for _, d := range daemons {
			if len(d.HostPorts) > 0 && d.Admits(space, row, p.Taints) {
				ports[t] = append(ports[t], d.HostPorts...)
			}
		}
	}
	return ports
}

// PortsFree reports whether no daemon on a node of the type uses one of the ports.
func (p *Pool) PortsFree(t int, ports []HostPort) bool {
	if p.DaemonPorts == nil {
		return true
	}
	return !slices.ContainsFunc(ports, func(port HostPort) bool { return slices.ContainsFunc(p.DaemonPorts[t], port.Conflicts) })
}

func newSuffixSets(net []quantity.Vector, r quantity.Resource, among bitset.Set) suffixSets {
	order := slices.Collect(among.All())
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(net[b].At(r), net[a].At(r)), cmp.Compare(a, b))
	})
	var s suffixSets
	set := bitset.New(len(net))
	for i, t := range order {
		set.Add(t)
		if i+1 == len(order) || net[order[i+1]].At(r) != net[t].At(r) {
			s.amounts = append(s.amounts, net[t].At(r))
			s.sets = append(s.sets, set.Clone())
		}
	}
	slices.Reverse(s.amounts)
	slices.Reverse(s.sets)
	return s
}
