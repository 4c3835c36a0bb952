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

// claimWriter converts bins to claims.
type claimWriter struct {
	snap  *model.Snapshot
	opts  *Options
	fleet *fleet
	names map[string]bool
	// renamed is the Renamed of the plan.
	renamed map[string]string
	// memory is that of the last key.
	memory []byte
}

// all returns the claims of the bins.
func (w *claimWriter) all() []plan.NewClaim {
	claims := make([]plan.NewClaim, 0, len(w.fleet.bins))
	for _, b := range w.fleet.bins {
		claims = append(claims, w.claim(b))
	}
	return claims
}

func (w *claimWriter) claim(b *bin) plan.NewClaim {
	ps := w.fleet.poolOf(b)
	parts := w.partsOf(b)
	c := plan.NewClaim{Pool: ps.spec.Name, PoolUID: ps.spec.UID, Labels: parts.labels, Options: parts.options,
		Requirements: parts.requirements, MinValuesRelaxed: parts.relaxed, Requests: w.requests(parts, b), Pods: b.allPods()}
	c.Reservation = b.reservation
	c.Name = w.name(ps.spec.PoolSpec, &c)
	w.names[c.Name] = true
	return c
}

// name returns the name of a claim: the one that it had in the previous plan, otherwise the first of the pool's series
// that is free. A name that has become free meanwhile, or that is of a later series, is not used: if the claim was
// created under its other name and the reply was lost, a second claim would be created for the same pods.
func (w *claimWriter) name(pool *model.PoolSpec, c *plan.NewClaim) string {
	taken := func(name string) bool { return w.names[name] || w.snap.Claim(name) != nil }
	first := plan.ClaimName(&model.PoolSpec{Name: pool.Name, UID: pool.UID}, c.Pods, func(string) bool { return false })
	name := first
	switch earlier, had := w.snap.ClaimNames[first]; {
	case had && !taken(earlier):
		name = earlier
	case taken(first) || pool.ClaimSeries != "":
		name = plan.ClaimName(pool, c.Pods, taken)
	}
	if name == first {
		return name
	}
	if w.renamed == nil {
		w.renamed = map[string]string{}
	}
	w.renamed[first] = name
	return name
}

// claimParts is the common part of claims with the same row and the same types.
type claimParts struct {
	options      []plan.Option
	requirements []label.Requirement
	labels       map[string]string
	relaxed      bool
	daemons      quantity.Vector
}

// partsOf returns the common part of the bin's claim. It is computed once for all bins with the same key.
func (w *claimWriter) partsOf(b *bin) *claimParts {
	ps := w.fleet.poolOf(b)
	like := w.key(b)
	if known := ps.claimParts[string(like)]; known != nil {
		return known
	}
	key := string(like)
	s := &claimParts{labels: w.openLabels(ps, b.row), daemons: ps.leastDaemons(b.kinds, b.row)}
	s.options = make([]plan.Option, 0, b.kinds.Count())
	list := ps.cheapestFirst(b.kinds, b.row)
	if b.reservation != "" { // which the claims of the plan may have used up
		_, classes := ps.spec.Types.Offered(b.row)
		list = ps.cheapestOf(b.kinds, classes)
	}
	for p := range list {
		class := &ps.spec.Types.Classes[p.class]
		s.options = append(s.options, plan.Option{Type: ps.spec.Types.Catalog.Types[p.kind].Name, Zone: class.Zone,
			CapacityType: class.CapacityType, Price: p.price})
	}
	s.requirements = w.requirements(ps, b, s.options)
	s.relaxed = w.opts.RelaxMinValues && ps.lacking(b, b.kinds, b.row)
	ps.claimParts[key] = s
	return s
}

// key returns a key that is equal for bins of one pool with the same row and types. The next call overwrites it.
func (w *claimWriter) key(b *bin) []byte {
	key := append(w.memory[:0], w.fleet.poolOf(b).spec.Name...)
	for _, words := range [][]uint64{b.row, b.kinds} {
		for _, word := range words {
			key = binary.LittleEndian.AppendUint64(key, word)
		}
	}
	w.memory = key
	return key
}

// requirements returns the claim's requirements: the bin's row, its list of types, and their capacity types.
func (w *claimWriter) requirements(ps *poolState, b *bin, options []plan.Option) []label.Requirement {
	var reqs []label.Requirement
	for _, req := range w.snap.Space.Requirements(b.row, w.emptyRow(ps)) {
		if req.Key != model.LabelType && req.Key != model.LabelCapacityType && req.Key != model.FieldCommitment && !model.OnEveryNode(req.Key) {
			reqs = append(reqs, req)
		}
	}
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = o.Type
	}
	reqs = append(reqs,
		label.Requirement{Key: model.LabelCapacityType, Operator: label.In, Values: w.capacityTypes(ps, b)},
		label.Requirement{Key: model.LabelType, Operator: label.In, Values: names})
	return ps.withMinimums(reqs, b)
}

// capacityTypes returns those in which some type of the bin is available.
func (w *claimWriter) capacityTypes(ps *poolState, b *bin) []string {
	var values []string
	_, classes := ps.spec.Types.Offered(b.row)
	for _, i := range classes {
		c := &ps.spec.Types.Classes[i]
		if c.Types.Intersects(b.kinds) && !slices.Contains(values, c.CapacityType) {
			values = append(values, c.CapacityType)
		}
	}
	slices.Sort(values)
	return values
}

// emptyRow returns the row of a pool without requirements. Keys with equal values need no requirement.
func (w *claimWriter) emptyRow(ps *poolState) label.Row {
	row, _, _ := w.snap.Space.Template(func(key string) bool { return ps.spec.Catalog.WellKnown[key] }, nil)
	return row
}

// openLabels returns a value, the smallest, for every custom label that the pool defines and the pods leave open.
func (w *claimWriter) openLabels(ps *poolState, row label.Row) map[string]string {
	labels := map[string]string{}
	for k := label.Key(0); int(k) < w.snap.Space.Len(); k++ {
		key := w.snap.Space.Name(k)
		if ps.spec.Catalog.WellKnown[key] || key == model.LabelPool || model.OnEveryNode(key) || w.snap.Space.AllowsAbsent(row, k) {
			continue
		}
		if value, ok := w.snap.Space.Pick(row, k); ok {
			labels[key] = value
		}
	}
	return labels
}

// requests returns the requests of the pods and of the daemons that run on every type.
func (w *claimWriter) requests(parts *claimParts, b *bin) []quantity.Amount {
	amounts := make([]quantity.Amount, 0, len(b.used))
	for i, n := range b.used.Add(parts.daemons) {
		if n > 0 && !model.IsVolumeResource(w.snap.Resources[i]) {
			amounts = append(amounts, quantity.Amount{Name: w.snap.Resources[i], Value: n})
		}
	}
	return amounts
}

// resolved returns the bin's row as its claim will state it, so that this plan counts the node as the next one does:
// with one of its types, the capacity types of the claim, and the custom labels of the node.
func (w *claimWriter) resolved(b *bin) label.Row {
	space, ps, row := w.snap.Space, w.fleet.poolOf(b), slices.Clone(b.row)
	w.nameCapacityTypes(ps, b, row)
	for k := label.Key(0); int(k) < space.Len(); k++ {
		if ps.spec.Catalog.WellKnown[space.Name(k)] || domainOf(space, row, k) >= 0 {
			continue
		}
		atom := space.Absent(k)
		if !space.AllowsAbsent(row, k) {
			value, ok := space.Pick(row, k)
			if !ok {
				continue
			}
			atom = space.Atom(k, value)
		}
		space.SetOnly(row, k, atom)
	}
	return ps.spec.Types.Hull(row, b.kinds)
}

// nameCapacityTypes narrows the row to the capacity types that the bin's claim lists.
func (w *claimWriter) nameCapacityTypes(ps *poolState, b *bin, row label.Row) {
	space := w.snap.Space
	key, known := space.Lookup(model.LabelCapacityType)
	if !known {
		return
	}
	named := bitset.New(space.Atoms(key))
	for _, value := range w.capacityTypes(ps, b) {
		named.Add(space.Atom(key, value))
	}
	from, to := space.Span(key)
	bitset.Set(row[from:to]).AndWith(named)
}
