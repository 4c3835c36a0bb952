package placement

import (
	"encoding/binary"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Conversion of a bin to a claim of the plan.

// listClaims adds the claims of the bins to the result.
func (r *run) listClaims() {
	r.result.Claims = make([]plan.NewClaim, 0, len(r.bins))
	for _, b := range r.bins {
		r.result.Claims = append(r.result.Claims, r.claim(b))
	}
}

func (r *run) claim(b *bin) plan.NewClaim {
	m := b.market
	said := r.said(b)
	c := plan.NewClaim{Pool: m.pool.Name, PoolUID: m.pool.UID, Labels: said.labels, Options: said.options,
		Requirements: said.requirements, MinValuesRelaxed: said.relaxed, Requests: r.requests(said, b), Pods: b.allPods()}
	c.Name = plan.ClaimName(c.Pool, c.PoolUID, c.Pods, func(name string) bool {
		return r.names[name] || r.snap.Claim(name) != nil
	})
	r.names[c.Name] = true
	return c
}

// saying is the common part of claims with the same row and the same types.
type saying struct {
	options      []plan.Option
	requirements []label.Requirement
	labels       map[string]string
	relaxed      bool
	daemons      quantity.Vector
}

// said returns the common part of the bin's claim. It is computed once for all bins with the same likeness.
func (r *run) said(b *bin) *saying {
	m := b.market
	like := r.likeness(b)
	if known := m.sayings[string(like)]; known != nil {
		return known
	}
	key := string(like)
	s := &saying{labels: r.openLabels(m, b.row), daemons: m.leastDaemons(b.kinds)}
	s.options = make([]plan.Option, 0, b.kinds.Count())
	for p := range m.cheapestFirst(b.kinds, b.row) {
		class := &m.pool.Types.Classes[p.class]
		s.options = append(s.options, plan.Option{Type: m.pool.Types.Catalogue.Types[p.kind].Name, Zone: class.Zone,
			CapacityType: class.CapacityType, Price: p.price})
	}
	s.requirements = r.requirements(m, b, s.options)
	s.relaxed = r.opts.RelaxMinValues && !m.diverse(b.kinds).OK()
	m.sayings[key] = s
	return s
}

// likeness returns a key that is equal for bins of one pool with the same row and types. The next call overwrites it.
func (r *run) likeness(b *bin) []byte {
	key := append(r.scratch.key[:0], b.market.pool.Name...)
	for _, words := range [][]uint64{b.row, b.kinds} {
		for _, w := range words {
			key = binary.LittleEndian.AppendUint64(key, w)
		}
	}
	r.scratch.key = key
	return key
}

// leastDaemons returns the daemon requests that are common to all of the types.
func (m *market) leastDaemons(kinds bitset.Set) quantity.Vector {
	var least quantity.Vector
	first := true
	for t := range kinds.All() {
		if first {
			least, first = m.pool.Daemons[t], false
		}
		least = least.Min(m.pool.Daemons[t])
	}
	return least
}

// requirements returns the claim's requirements: the bin's row, its list of types, and their capacity types.
func (r *run) requirements(m *market, b *bin, options []plan.Option) []label.Requirement {
	var reqs []label.Requirement
	for _, req := range r.snap.Space.Requirements(b.row, r.unsaid(m)) {
		if req.Key != model.LabelType && req.Key != model.LabelCapacityType && req.Key != model.LabelHostname {
			reqs = append(reqs, req)
		}
	}
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = o.Type
	}
	reqs = append(reqs,
		label.Requirement{Key: model.LabelCapacityType, Operator: label.In, Values: r.capacityTypes(m, b)},
		label.Requirement{Key: model.LabelType, Operator: label.In, Values: names})
	return m.withMinimums(reqs, b.kinds)
}

// withMinimums adds the pool's minValues to the requirements, lowered to what the types have where that is allowed. A
// list of values is never shorter than its minValues: the API would refuse the claim.
func (m *market) withMinimums(reqs []label.Requirement, kinds bitset.Set) []label.Requirement {
	for i := range m.minimums {
		n := &m.minimums[i]
		at := slices.IndexFunc(reqs, func(req label.Requirement) bool { return req.Key == n.key })
		if at < 0 {
			at = len(reqs)
			reqs = append(reqs, label.Requirement{Key: n.key, Operator: label.Exists})
		}
		least := min(n.need, n.have(kinds))
		if reqs[at].Operator == label.In {
			least = min(least, len(reqs[at].Values))
		}
		reqs[at].MinValues = max(reqs[at].MinValues, least)
	}
	return reqs
}

// capacityTypes returns those in which some type of the bin is available.
func (r *run) capacityTypes(m *market, b *bin) []string {
	var values []string
	_, classes := m.pool.Types.Offered(b.row)
	for _, i := range classes {
		c := &m.pool.Types.Classes[i]
		if c.Types.Intersects(b.kinds) && !slices.Contains(values, c.CapacityType) {
			values = append(values, c.CapacityType)
		}
	}
	slices.Sort(values)
	return values
}

// unsaid returns the row of a pool without requirements. Keys with equal values need no requirement.
func (r *run) unsaid(m *market) label.Row {
	row, _, _ := r.snap.Space.Template(func(key string) bool { return m.pool.Catalogue.WellKnown[key] }, nil)
	return row
}

// openLabels returns a value, the smallest, for every custom label that the pool defines and the pods leave open.
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

// requests returns the requests of the pods and of the daemons that run on every type.
func (r *run) requests(said *saying, b *bin) []quantity.Amount {
	amounts := make([]quantity.Amount, 0, len(b.used))
	for i, n := range b.used.Add(said.daemons) {
		if n > 0 && !model.IsVolumeResource(r.snap.Resources[i]) {
			amounts = append(amounts, quantity.Amount{Name: r.snap.Resources[i], Value: n})
		}
	}
	return amounts
}
