package model

import (
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// ResourceUSD is the resource that limits the price of nodes: in limits of pools and in quotas USD per hour, in the
// engine nano-USD per hour.
const ResourceUSD = "karpenter-go.github.io/usd-per-hour"

// QuotaSpec is the input for a CapacityQuota: a limit on the nodes with certain labels.
type QuotaSpec struct {
	Name string
	// Selector are the requirements on the labels of a node; none for all nodes.
	Selector []label.Requirement
	// Limits by resource name, including ResourceNodes and ResourceUSD.
	Limits []quantity.Amount
}

// Quota is an encoded quota.
type Quota struct {
	*QuotaSpec
	// Row are the labels of the nodes that count. Matches is false if no labels satisfy the selector.
	Row     label.Row
	Matches bool
	// Used is the capacity of the nodes that count and that are not being deleted, Nodes their number. A claim that is not
	// launched counts as its largest type, if it may get the labels.
	Used  quantity.Vector
	Nodes int
	// Limit per resource, NoLimit for none; NodeLimit likewise.
	Limit     []int64
	NodeLimit int64
}

// Counts reports whether a node of the row counts, or may count.
func (q *Quota) Counts(space *label.Space, row label.Row) bool {
	return q.Matches && space.Compatible(q.Row, row)
}

// UpsertQuota adds or replaces the quota.
func (b *Builder) UpsertQuota(spec QuotaSpec) {
	b.version++
	b.offer(spec.Selector)
	b.uses.offer(1, limitedResources(spec.Limits))
	if old := b.quotas[spec.Name]; old != nil {
		b.uses.offer(-1, limitedResources(old.Limits))
	}
	b.quotas[spec.Name] = &spec
}

// DeleteQuota removes the quota.
func (b *Builder) DeleteQuota(name string) {
	old := b.quotas[name]
	if old == nil {
		return
	}
	b.version++
	b.uses.offer(-1, limitedResources(old.Limits))
	delete(b.quotas, name)
}

// freezeQuotas encodes the quotas and sums what the nodes use. Its cost is that of all nodes for each quota.
func (b *Builder) freezeQuotas(s *Snapshot) {
	s.Quotas = nil
	for _, spec := range b.quotas {
		q := &Quota{QuotaSpec: spec}
		q.Row, _, q.Matches = b.space.Encode(spec.Selector)
		q.Limit, q.NodeLimit = limitVector(b.resources, spec.Limits)
		q.Used = make(quantity.Vector, b.resources.Len())
		for _, n := range s.Nodes {
			if !n.Deleting && q.Counts(b.space, n.Row) {
				q.Used.AddScaled(n.Total, 1)
				q.Nodes++
			}
		}
		s.Quotas = append(s.Quotas, q)
	}
	slices.SortFunc(s.Quotas, func(a, b *Quota) int { return strings.Compare(a.Name, b.Name) })
}

// quotasWith returns the quotas with the usage that they have with the nodes (by 1), or without them (by -1).
func (s *Snapshot) quotasWith(nodes []*Node, by int) []*Quota {
	if len(s.Quotas) == 0 {
		return nil
	}
	quotas := slices.Clone(s.Quotas)
	for i, q := range quotas {
		fresh := *q
		fresh.Used = grow(q.Used.Clone(), len(s.Resources))
		for _, n := range nodes {
			if !n.Deleting && q.Counts(s.Space, n.Row) {
				fresh.Used.AddScaled(n.Total, int64(by))
				fresh.Nodes += by
			}
		}
		quotas[i] = &fresh
	}
	return quotas
}

// QuotasWith returns the quotas with the usage of additional nodes.
func (s *Snapshot) QuotasWith(nodes []*Node) []*Quota { return s.quotasWith(nodes, 1) }

// QuotasWithout returns the quotas with the usage that they have when the nodes are removed.
func (s *Snapshot) QuotasWithout(gone []*Node) []*Quota { return s.quotasWith(gone, -1) }

// UseLimits takes over what limits and quotas count in another snapshot: nodes that are to leave count until they are
// gone.
func (s *Snapshot) UseLimits(of *Snapshot) { s.Pools, s.Quotas = of.Pools, of.Quotas }

// LimitsUSD reports whether a pool or a quota limits the price of nodes, and the number of that resource.
func (s *Snapshot) LimitsUSD() (quantity.Resource, bool) {
	at := slices.Index(s.Resources, ResourceUSD)
	return quantity.Resource(at), at >= 0
}

// priceTotal makes the price a part of the capacity of the node if prices are limited.
func (n *Node) priceTotal(usd quantity.Resource, limited bool) {
	if limited {
		n.Total = grow(n.Total.Clone(), int(usd)+1)
		n.Total[usd] = n.Price
	}
}

// limitVector returns the limits by resource, and the limit on the number of nodes.
func limitVector(resources *quantity.Table, limits []quantity.Amount) (vector []int64, nodes int64) {
	nodes = NoLimit
	for _, a := range limits {
		if a.Name == ResourceNodes {
			nodes = a.Value
			continue
		}
		r := resources.Intern(a.Name)
		for len(vector) <= int(r) {
			vector = append(vector, NoLimit)
		}
		vector[r] = a.Value
	}
	return vector, nodes
}

// limitedResources returns the limits without that on the number of nodes.
func limitedResources(limits []quantity.Amount) []quantity.Amount {
	return slices.DeleteFunc(slices.Clone(limits), func(a quantity.Amount) bool { return a.Name == ResourceNodes })
}

// Exceeded returns the first resource of which a node with the capacity would exceed the limit, with what is left. A
// resource that the node lacks is not exceeded.
func Exceeded(limit []int64, used, total quantity.Vector) (r quantity.Resource, left int64, exceeded bool) {
	for r, most := range limit {
		if most == NoLimit {
			continue
		}
		r := quantity.Resource(r)
		if left := max(0, most-used.At(r)); total.At(r) > left {
			return r, left, true
		}
	}
	return 0, 0, false
}

// HighestPrice returns the highest price, nano-USD per hour, of the types in the offerings that the row admits.
func (x *TypeIndex) HighestPrice(row label.Row, kinds func(func(int) bool)) int64 {
	_, classes := x.Offered(row)
	var highest int64
	for t := range kinds {
		for _, i := range classes {
			if p := x.Classes[i].Price[t]; p != NoPrice {
				highest = max(highest, p)
			}
		}
	}
	return highest
}
