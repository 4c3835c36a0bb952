package placement

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// commit turns the bin into claims: as many as its pattern can be filled and the limits bear. It reports whether there
// was one.
func (r *run) commit(m *market, b *bin) bool {
	options, types := r.options(m, b)
	if len(options) == 0 {
		return false
	}
	var largest quantity.Vector
	for t := range types.All() {
		largest = largest.Max(m.pool.Types.Total[t])
	}
	claim := plan.NewClaim{
		Pool: m.pool.Name, PoolUID: m.pool.UID, Options: options,
		Requirements: r.requirements(m, b, options), Labels: r.openLabels(m, b.row),
		Requests: r.requests(m, b, types),
	}
	done := false
	for repeat := b.repeats(); repeat > 0 && m.nodes != 0; repeat-- {
		if _, ok := m.within(largest); !ok {
			break
		}
		m.charge(largest)
		r.result.Claims = append(r.result.Claims, r.claim(claim, b))
		done = true
	}
	return done
}

// repeats is how often the groups of the bin can fill it as they do now.
func (b *bin) repeats() int {
	n := len(b.parts[0].left) / b.parts[0].count
	for _, p := range b.parts[1:] {
		n = min(n, len(p.left)/p.count)
	}
	return n
}

// claim fills a copy of the claim with the bin's pods.
func (r *run) claim(c plan.NewClaim, b *bin) plan.NewClaim {
	for _, p := range b.parts {
		c.Pods = append(c.Pods, p.take(p.count)...)
	}
	c.Name = plan.ClaimName(c.Pool, c.PoolUID, c.Pods, func(name string) bool {
		return r.names[name] || r.snap.Claim(name) != nil
	})
	r.names[c.Name] = true
	return c
}

// options lists everything that can hold what is in the bin, cheapest first. In a pool with limits it is no larger in
// what is limited than the type that was chosen: the limit counts the largest type of the list.
func (r *run) options(m *market, b *bin) ([]plan.Option, bitset.Set) {
	x := m.pool.Types
	set := x.Compatible(b.row)
	set.AndWith(m.pool.Eligible)
	if !m.special.Has(b.kind) {
		set.AndNotWith(m.special)
	}
	m.pool.WithAtLeast(set, b.used)
	onSale, classes := x.Offered(b.row)
	set.AndWith(onSale)
	if m.limited() {
		m.dropLarger(set, x.Total[b.kind])
	}
	options := make([]plan.Option, 0, set.Count())
	kinds := make([]purchase, 0, set.Count())
	for t := range set.All() {
		class := x.Cheapest(t, classes)
		kinds = append(kinds, purchase{kind: t, class: class, price: x.Classes[class].Price[t]})
	}
	slices.SortFunc(kinds, func(a, b purchase) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.kind, b.kind))
	})
	for i, k := range kinds {
		if i >= plan.MaxTypes {
			set.Remove(k.kind)
			continue
		}
		c := &x.Classes[k.class]
		options = append(options, plan.Option{Type: x.Catalogue.Types[k.kind].Name, Zone: c.Zone, CapacityType: c.CapacityType, Price: k.price})
	}
	return options, set
}

func (m *market) dropLarger(set bitset.Set, chosen quantity.Vector) {
	for t := range set.Clone().All() {
		total := m.pool.Types.Total[t]
		for r, left := range m.remaining {
			if left != model.NoLimit && total.At(quantity.Resource(r)) > chosen.At(quantity.Resource(r)) {
				set.Remove(t)
			}
		}
	}
}

// requirements is what the claim says: the bin's row, its list of types, and the capacity types they are on sale as.
func (r *run) requirements(m *market, b *bin, options []plan.Option) []label.Requirement {
	var reqs []label.Requirement
	for _, req := range r.snap.Space.Requirements(b.row, r.unsaid(m)) {
		if req.Key != model.LabelType && req.Key != model.LabelCapacityType && req.Key != model.LabelHostname {
			reqs = append(reqs, req)
		}
	}
	names := make([]string, len(options))
	var capacityTypes []string
	_, classes := m.pool.Types.Offered(b.row)
	for _, c := range classes {
		if ct := m.pool.Types.Classes[c].CapacityType; !slices.Contains(capacityTypes, ct) {
			capacityTypes = append(capacityTypes, ct)
		}
	}
	slices.Sort(capacityTypes)
	for i, o := range options {
		names[i] = o.Type
	}
	return append(reqs,
		label.Requirement{Key: model.LabelCapacityType, Operator: label.In, Values: capacityTypes},
		label.Requirement{Key: model.LabelType, Operator: label.In, Values: names})
}

// unsaid is the row of a pool that requires nothing: what equals it need not be written down.
func (r *run) unsaid(m *market) label.Row {
	row, _, _ := r.snap.Space.Template(func(key string) bool { return m.pool.Catalogue.WellKnown[key] }, nil)
	return row
}

// openLabels gives every custom label that the pool defines and the pods leave open its value: the smallest.
func (r *run) openLabels(m *market, row label.Row) map[string]string {
	labels := map[string]string{}
	for k := label.Key(0); int(k) < r.snap.Space.Len(); k++ {
		key := r.snap.Space.Name(k)
		if m.pool.Catalogue.WellKnown[key] || key == model.LabelPool || key == model.LabelHostname || r.snap.Space.AllowsAbsent(row, k) {
			continue
		}
		if value, ok := r.snap.Space.Pick(row, k); ok {
			labels[key] = value
		}
	}
	return labels
}

// requests are those of the pods, and of the daemons as far as every type runs them.
func (r *run) requests(m *market, b *bin, types bitset.Set) []quantity.Amount {
	var daemons quantity.Vector
	first := true
	for t := range types.All() {
		if first {
			daemons, first = m.pool.Daemons[t], false
		}
		daemons = daemons.Min(m.pool.Daemons[t])
	}
	sum := b.used.Add(daemons)
	var amounts []quantity.Amount
	for i, n := range sum {
		if n > 0 {
			amounts = append(amounts, quantity.Amount{Name: r.snap.Resources[i], Value: n})
		}
	}
	return amounts
}
