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
}

// Counts reports whether a node of the row counts, or may count.
func (q *Quota) Counts(space *label.Space, row label.Row) bool {
	return q.Matches && space.Compatible(q.Row, row)
}

// UpsertQuota adds or replaces the quota.
func (b *Builder) UpsertQuota(spec QuotaSpec) {
	b.version++
	b.freezer.quotasDirty = true
	b.shared.offer(spec.Selector)
	b.shared.uses.offer(1, limitedResources(spec.Limits))
	if old := b.quotas[spec.Name]; old != nil {
		b.shared.uses.offer(-1, limitedResources(old.Limits))
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
	b.freezer.quotasDirty = true
	b.shared.uses.offer(-1, limitedResources(old.Limits))
	delete(b.quotas, name)
}

// freezeQuotas encodes and lists the quotas.
func (f *freezer) freezeQuotas(s *Snapshot) {
	s.Quotas = nil
	for _, spec := range f.from.quotas {
		q := &Quota{QuotaSpec: spec}
		q.Row, _, q.Matches = f.shared.space.Encode(spec.Selector)
		s.Quotas = append(s.Quotas, q)
	}
	slices.SortFunc(s.Quotas, func(a, b *Quota) int { return strings.Compare(a.Name, b.Name) })
}

// limitedResources returns the limits without that on the number of nodes.
func limitedResources(limits []quantity.Amount) []quantity.Amount {
	return slices.DeleteFunc(slices.Clone(limits), func(a quantity.Amount) bool { return a.Name == ResourceNodes })
}
